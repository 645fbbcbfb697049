"""The control chapter of a report: the policy at work, and a task with fewer and shorter episodes."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import torch

from fewer.core.engines.evaluate import predictor
from fewer.report.page import words
from fewer.report.png import data_address
from fewer.run.load import Trained
from fewer.systems.control.picture import WHY_NOT, film
from fewer.systems.control.task.task import Control

__all__ = ["acting", "shortened"]

_EPISODES, _HORIZON = 4, 400


def acting(run: Trained, attack: str) -> str:
    """The policy at work in its world, as an animated picture."""
    task = run.task
    assert isinstance(task, Control)
    if task.world is None:
        return words("Learnt from logs alone: there is no world to show the policy in.")
    predict, question = predictor(task, run.modules, run.job.seeds[0]), task.data("test").take(torch.tensor([0]))
    actions = task.world.actions  # of a prediction with two policies side by side, those of the first

    def policy(observation: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> Any:
        return predict(question._replace(observation=torch.from_numpy(observation)))[:, :actions].cpu().numpy()

    picture = film(policy, task.world)
    if picture is None:
        return words(WHY_NOT)
    caption = f"The policy at work in {task.world.gymnasium}, at its own pace."
    address = data_address(picture)
    return f'<figure><img width="320" alt="{caption}" src="{address}"><figcaption>{caption}</figcaption></figure>'


def shortened(task: Control, limit: int) -> Control:
    """A few episodes, cut short; logs are judged as they are."""
    settings = task.settings
    if not settings.rolls_out:
        return task
    horizon = min(settings.horizon or _HORIZON, _HORIZON)
    less = dataclasses.replace(settings, episodes=min(settings.episodes, _EPISODES), horizon=horizon)
    return Control(less, logs=task.logs)
