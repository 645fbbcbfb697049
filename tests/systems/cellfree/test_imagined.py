"""Phones imagined on the map that real ones drew, and the network that learns kriging's answer from them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from fewer.systems.cellfree.task.imagined import Imagined
from fewer.systems.cellfree.task.selectors.kriging import Kriging
from fewer.systems.cellfree.task.selectors.trained import Trained
from fewer.systems.cellfree.task.settings import Settings
from fewer.systems.cellfree.task.statistics import calibration_error, metrics
from fewer.systems.cellfree.task.survey import Survey, World
from fewer.systems.cellfree.task.task import CellFree

SMALL = Settings(access_points=25, side_m=500.0, candidates=8, train_phones=300, deployment_seed=5, learn_missing=0.0)


@pytest.fixture(scope="module")
def world() -> World:
    return World.make(SMALL)


@pytest.fixture(scope="module")
def train(world: World) -> Survey:
    return world.survey(300, part="train")


def test_imagined_phones_are_as_kriging_believes(world: World, train: Survey) -> None:
    phones = Imagined(world, train).lot(0)
    scores = Kriging().fit(world, survey=train).scores(phones.master, phones.rsrp_db, phones.reported)
    serves = phones.serves(10.0)
    # among phones that kriging gives 70 %, 70 % are served: nobody who sees the reports alone knows more
    assert calibration_error(scores[:, 1:].ravel(), serves[:, 1:].ravel()) < 0.02
    assert metrics(scores, phones, 10.0)["other_average_precision"] > 0.7


def test_a_map_is_known_where_a_phone_stood_and_open_far_from_all(world: World, train: Survey) -> None:
    known = Kriging().fit(world, survey=train).map
    at_phones, open_share = known.at(train.phones[:50])
    assert np.abs(at_phones - world.deployment.gain_db(train.phones[:50])).mean() < 0.3 and open_share.max() < 0.02
    assert known.at(train.phones[:1] + 5000.0)[1][0] > 0.99


def test_of_a_long_record_no_more_phones_are_imagined_than_memory_holds(
    world: World, train: Survey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fewer.systems.cellfree.task.imagined._MOST", 5000)
    phones = Imagined(world, train)
    assert phones.count == 5000 == len(phones.all())


def test_lots_are_the_same_again_and_examples_come_without_making_all(world: World, train: Survey) -> None:
    phones = Imagined(world, train)
    assert phones.count == 40 * 300
    again = Imagined(world, train).lot(1)
    assert np.array_equal(phones.lot(1).rsrp_db, again.rsrp_db)
    assert not np.array_equal(phones.lot(0).rsrp_db, again.rsrp_db)
    task = CellFree(replace(SMALL, model="distilled"), world=world, survey=train)
    data = task.data("train")
    few = data.take(torch.arange(2))
    assert "samples" not in vars(data) and len(data) == phones.count
    assert torch.equal(data.samples.rsrp_db[:2], few.rsrp_db) and len(data.samples.master) == phones.count  # type: ignore[attr-defined]
    assert len(task.data("test")) == SMALL.test_phones  # judged by real phones


def test_reports_of_imagined_phones_are_disturbed_as_the_settings_say(train: Survey) -> None:
    settings = replace(SMALL, quantum_db=1.0, missing=0.3, stale=0.5)
    world = World.make(settings)
    phones = Imagined(world, world.survey(300, part="train")).lot(0)
    heard = phones.rsrp_db[phones.reported]
    assert np.array_equal(heard, heard.round()) and phones.reported[:, 0].all()
    assert abs((~phones.reported[:, 1:]).mean() - 0.3) < 0.03


def test_phones_of_a_log_are_imagined_beside_its_places(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    points, places = random.uniform(0, 300, (12, 2)), random.uniform(0, 300, (200, 2))
    apart = np.linalg.norm(places[:, None] - points[None], axis=-1)
    heard = -60 - 30 * np.log10(apart / 10 + 1) + random.normal(0, 3, apart.shape)
    np.savez(tmp_path / "drive.npz", access_points=points + 5e5, phones=places + 5e5, rsrp_db=heard)
    world = World.make(Settings(maps=str(tmp_path / "drive.npz"), candidates=5))
    phones = Imagined(world, world.survey(140, part="train")).lot(0)
    away = np.linalg.norm(phones.phones[:, None] - (places + 5e5)[None], axis=-1).min(axis=1)
    assert len(np.unique(phones.phones, axis=0)) == 4000 and 0 < np.median(away) < 50


def test_the_distilled_network_is_better_than_one_that_learns_from_the_phones_alone(
    world: World, train: Survey
) -> None:
    test = world.survey(1500, part="test")
    found = {
        name: Trained(name, steps=500, changes={"width": 64}).fit(world, survey=train).metrics(test)
        for name in ("local", "distilled")
    }
    better = found["distilled"]["other_average_precision"] - found["local"]["other_average_precision"]
    assert better > 0.02 and found["distilled"]["calibration_error"] < found["local"]["calibration_error"]
