"""The paper to the letter: the literal network, its presets, and studies that are told by their settings."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from fewer.core.engines.base import Training
from fewer.core.engines.evaluate import predictor
from fewer.core.engines.plain import Plain
from fewer.core.engines.state import fresh_modules
from fewer.core.errors import UserError
from fewer.core.system import imported
from fewer.run.options import job_of
from fewer.studies.order import Order
from fewer.systems.cellfree.presets import PRESETS
from fewer.systems.cellfree.studies import selectors as study_of_selectors
from fewer.systems.cellfree.studies import worlds
from fewer.systems.cellfree.studies.limits import ceiling
from fewer.systems.cellfree.studies.paper import fig2
from fewer.systems.cellfree.studies.selectors import KNOWS, selectors
from fewer.systems.cellfree.studies.statistics import statistics
from fewer.systems.cellfree.system import SYSTEM
from fewer.systems.cellfree.task.models.cached import cached_predictor
from fewer.systems.cellfree.task.settings import Settings
from fewer.systems.cellfree.task.survey import World
from fewer.systems.cellfree.task.task import CellFree, Phones

SMALL = {"access_points": 20, "side_m": 450.0, "candidates": 6, "train_phones": 300, "test_phones": 200}


def literal(**changes: object) -> CellFree:
    return CellFree(Settings(**{**SMALL, "model": "sage-literal", "gain_at_1km_db": -35.3, **changes}))


def test_the_literal_network_has_l_inputs_in_raw_decibels_and_zero_where_nothing_was_measured() -> None:
    task = literal()
    survey = task.survey("test")
    expected = np.zeros((len(survey), 20), dtype=np.float32)
    np.put_along_axis(expected, task.world.clusters.measured[survey.master], survey.rsrp_db.astype(np.float32), axis=1)
    batch = task.data("test").take(torch.arange(len(survey)))
    assert np.array_equal(task.node_features(task.inputs(batch)).numpy(), expected)
    assert ((expected != 0).sum(axis=1) == 3).all()
    points = task.constants["features"].numpy()
    near = task.world.deployment.near(task.world.deployment.access_points, 6)[:, 1:]
    assert points.shape == (20, 20) and (points != 0).sum() == near.size
    gain = task.world.deployment.gain_db(task.world.deployment.access_points)  # (heard at, heard from)
    assert points[near[3, 0], 3] == pytest.approx(gain[3, near[3, 0]], rel=1e-5)


def test_the_literal_network_descends_with_the_optimiser_of_the_training() -> None:
    assert literal().objectives()[0].optimizer is None
    assert job_of("cellfree", PRESETS["paper"]).training.optimizer.lr == 1e-3


@pytest.mark.parametrize("model", ["sage", "sage-literal"])
def test_cached_access_points_answer_as_the_whole_network_does(model: str) -> None:
    task = literal(model=model)
    engine = Plain(task, Training(steps=40, batch=50), 0)
    engine.advance(40)  # fresh ones are sure of everything
    modules = engine.state.modules_of(0)
    batch = task.data("test").take(torch.arange(50))
    whole, kept = predictor(task, modules)(batch), cached_predictor(task, modules)
    assert torch.allclose(whole, kept(batch), atol=1e-6) and whole.std() > 0.1
    alone = [kept(Phones(*(leaf[row : row + 1] for leaf in batch))) for row in range(50)]
    assert torch.allclose(torch.cat(alone), whole, atol=1e-5)
    local = CellFree(Settings(**SMALL))
    with pytest.raises(UserError, match="model=sage"):
        cached_predictor(local, fresh_modules(local, 0))


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_is_a_job_and_builds_a_world(preset: str) -> None:
    job = job_of("cellfree", PRESETS[preset])
    settings = Settings(**PRESETS[preset].get("settings", {}))
    small = dataclasses.replace(settings, pixel_m=50.0, train_phones=50)
    assert len(World.make(small).survey(20, part="p")) == 20
    assert job.training.steps * job.training.batch in (5000 * 100, 1000 * 100, 100 * 100, 10_000 * 400)


def test_the_readings_of_the_areas_are_those_of_the_papers_setup_and_of_its_densities() -> None:
    def per_square_kilometre(preset: str) -> float:
        settings = Settings(**PRESETS[preset]["settings"])
        return settings.access_points / (settings.side_m / 1000) ** 2

    found = [per_square_kilometre(name) for name in ("paper", "paper-50", "paper-density", "paper-density-50")]
    assert found == [100, 12.5, 25, 50]


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Networks of seconds: coarse maps, few phones, a handful of updates."""
    small = {"pixel_m": 100.0, "train_phones": 60, "test_phones": 60, "validation_phones": 10}
    for words in PRESETS.values():
        monkeypatch.setitem(words, "settings", {**words.get("settings", {}), **small})
        monkeypatch.setitem(words, "steps", 10)
    monkeypatch.setattr(study_of_selectors, "STEPS", 10)
    monkeypatch.setattr(study_of_selectors, "TRAIN", 60)
    return tmp_path


def test_a_figure_shows_every_reading_beside_the_paper_and_trains_each_network_once(tiny: Path) -> None:
    said: list[str] = []
    order = Order("cellfree/fig2", "quick", tiny, said.append)
    first = fig2(order)
    assert first.columns[3:] == ["paper", *(name for name, _ in imported(
        "fewer.systems.cellfree.studies.paper:SHOWN").values())]  # fmt: skip
    assert first.rows[0][:4] == [100, 10, "precision", "0.83"] and list(first.figures) == ["cellfree-fig2.png"]
    trained = len(said)
    assert trained == 3 * 4 * 2 and fig2(order).rows == first.rows and len(said) == trained
    assert SYSTEM.studies["cellfree/fig2"].remarks
    settings = imported(SYSTEM.studies["cellfree/fig2"].settings)(order)
    assert settings["paper"]["training"]["steps"] == 2
    assert settings["paper-density"]["networks"]["L=50 c=20"]["settings"]["side_m"] == 1000.0


def test_studies_run_on_a_drive_test(tiny: Path) -> None:
    random = np.random.default_rng(0)
    points, phones = random.uniform(0, 300, (12, 2)), random.uniform(0, 300, (400, 2))
    apart = np.linalg.norm(phones[:, None] - points[None], axis=-1)
    np.savez(tiny / "drive.npz", access_points=points, phones=phones, rsrp_db=-60 - 30 * np.log10(apart / 10 + 1))
    data = str(tiny / "drive.npz")
    found = statistics(Order("cellfree/statistics", "quick", tiny, str, data=data))
    assert {row[0] for row in found.rows} == {12} and found.columns[4:] == ["measured"]
    assert [row[:2] for row in fig2(Order("cellfree/fig2", "quick", tiny, str, data=data)).rows[::4]] == [[12, 10]]
    with pytest.raises(UserError, match="true map"):
        ceiling(Order("cellfree/ceiling", "quick", tiny, str, data=data))
    told = selectors(Order("cellfree/selectors", "quick", tiny, str, data=data))
    assert {row[3] for row in told.rows} == set(KNOWS) - {"ceiling"} and all(row[4] for row in told.rows)
    assert "access_points" not in json.dumps([row[4] for row in told.rows])


@pytest.mark.parametrize("scale", ["quick", "full", "paper"])
def test_the_settings_of_every_study_are_json_and_change_with_the_scale(scale: str, tmp_path: Path) -> None:
    for name, study in SYSTEM.studies.items():
        settings = imported(study.settings)(Order(name, scale, tmp_path))
        assert json.loads(json.dumps(settings)) == settings and settings


def test_more_deployments_are_judged_at_larger_scales(tmp_path: Path) -> None:
    counts = [len(worlds.seeds_of(Order("cellfree/fig2", scale, tmp_path))) for scale in ("quick", "full", "paper")]
    assert counts == [2, 5, 10]
