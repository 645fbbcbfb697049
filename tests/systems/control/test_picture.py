"""A policy as an animated picture; where nothing can draw, said and skipped."""

from __future__ import annotations

import io
import os
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from fewer.report.png import data_address
from fewer.systems.control import picture, report
from fewer.systems.control.report import acting
from fewer.systems.control.task.logs import experts
from fewer.systems.control.task.task import Control, Settings


def pushing(observation: np.ndarray) -> np.ndarray:
    return np.tile(np.float32([1, -1] * 3), (len(observation), 1))


def test_the_film_moves_is_small_and_the_same_again() -> None:
    if "MUJOCO_GL" in os.environ and os.environ["MUJOCO_GL"] != "egl":
        pytest.skip("MUJOCO_GL chooses otherwise")
    made = picture.film(pushing, "halfcheetah", seed=1, seconds=0.3, skip=0.0)
    if made is None:
        pytest.skip(picture.WHY_NOT)
    film = Image.open(io.BytesIO(made))
    assert film.format == "GIF" and film.size == (160, 120) and film.n_frames == 6 and film.info["duration"] == 50
    frames = []
    for number in range(film.n_frames):
        film.seek(number)
        frames.append(np.asarray(film.convert("RGB"), dtype=np.float64))
    assert (np.abs(frames[0] - frames[-1]).max(axis=2) > 20).mean() > 0.01, "what pushes moves"
    assert frames[0].std() > 10, "there is something to see"
    assert len(made) < 400_000 * 6 / 60
    assert picture.film(pushing, "halfcheetah", seed=1, seconds=0.3, skip=0.0) == made
    assert data_address(made).startswith("data:image/gif;base64,")


def test_the_camera_runs_along() -> None:
    made = picture.film(experts.policy("halfcheetah"), "halfcheetah", seconds=0.1, skip=3.0)  # tens of metres on
    if made is None:
        pytest.skip(picture.WHY_NOT)
    pixels = np.asarray(Image.open(io.BytesIO(made)).convert("RGB"), dtype=np.int64)
    assert (pixels[..., 0] - pixels[..., 2] > 25).sum() > 100, "the body is the only thing that is reddish"


def test_without_egl_there_is_no_film_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setitem(sys.modules, "mujoco.egl", None)  # importing it now fails, as where the library is missing
    assert picture.film(pushing, "halfcheetah") is None
    assert "MUJOCO_GL" not in os.environ


def test_a_user_who_switches_drawing_off_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUJOCO_GL", "disable")
    assert picture.film(pushing, "halfcheetah") is None


def test_the_report_films_the_policy_that_was_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    logs = experts.collect("halfcheetah", 60, act=pushing)
    task = Control(Settings(environment="halfcheetah", algorithm="plain-bc"), logs=logs)
    run: Any = SimpleNamespace(task=task, modules=task.networks(), job=SimpleNamespace(seeds=(0,)))
    asked = []

    def filmed(policy: experts.Policy, world: object) -> bytes:
        asked.append(policy(logs.observation[:1]))
        return b"GIF89a"

    monkeypatch.setattr(report, "film", filmed)
    assert 'src="data:image/gif;base64,' in acting(run, "")
    assert asked[0].shape == (1, 6) and np.abs(asked[0]).max() <= 1
    monkeypatch.setattr(report, "film", lambda *_: None)
    assert picture.WHY_NOT in acting(run, "")
