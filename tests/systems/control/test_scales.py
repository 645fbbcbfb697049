"""What an order stands for: the paper's own scale, the user's files, logs that are not an expert's, plans."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from fewer.core.errors import UserError
from fewer.studies.order import Order, studies
from fewer.studies.pieces import silent
from fewer.studies.plan import planned
from fewer.systems.control.studies import data as control_data
from fewer.systems.control.studies.training import logs as control_logs
from fewer.systems.control.studies.training.scales import about, file_of, wanted, where
from fewer.systems.control.task.logs import d4rl, experts
from fewer.systems.control.task.logs.source import transitions
from fewer.systems.control.task.task import Control


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEWER_CACHE", str(tmp_path_factory.getbasetemp() / "fewer"))


def order(study: str, scale: str, out: Path, data: str = "") -> Order:
    return Order(study, scale, out, silent, data=data)


def test_the_papers_scale_is_the_preset_to_the_letter(tmp_path: Path) -> None:
    found = about(order("control/fig1", "paper", tmp_path))
    assert (found["updates"], found["batch"], found["seeds"]) == (1_000_000, 100, [0, 1, 2, 3, 4])
    assert (found["optimizer"]["lr"], found["optimizer"]["decay_from"]) == (1e-3, 1.0)
    task = found["task"]
    assert (task["twin"], task["normalise"], task["sampled"], task["transitions"]) == ("copy", False, True, 1_000_000)
    assert found["unchecked masks"] and found["recipes"][1] == "snip:0.1" and found["recipes"][-1] == "snip:0.95"


@pytest.mark.parametrize("study", [name for name in studies() if name.startswith("control/")])
@pytest.mark.parametrize("scale", ["quick", "full", "paper"])
def test_settings_are_what_a_file_holds_and_asking_makes_nothing(study: str, scale: str, tmp_path: Path) -> None:
    from fewer.core.system import imported

    asked = imported(studies()[study].settings)
    found = asked(order(study, scale, tmp_path))
    assert found == json.loads(json.dumps(found))
    assert not list(tmp_path.iterdir())


def test_full_figures_show_the_sparsities_that_are_asked_of_them() -> None:
    shares = [round(100 * sparsity) for _, sparsity in wanted("control/fig2", "full")]
    assert shares == [0, 10, 30, 50, 70, 80, 90, 95, 98, 99]


def test_a_folder_of_d4rl_files_serves_every_study(tmp_path: Path) -> None:
    for name in ("hopper_expert-v2", "hopper_medium-expert-v2", "hopper_medium-v2", "walker2d-expert"):
        (tmp_path / f"{name}.hdf5").touch()
    assert file_of(str(tmp_path), "hopper", "expert").name == "hopper_expert-v2.hdf5"
    assert file_of(str(tmp_path), "hopper", "medium-expert").name == "hopper_medium-expert-v2.hdf5"
    assert file_of(str(tmp_path), "walker2d", "expert").name == "walker2d-expert.hdf5"
    with pytest.raises(UserError, match="halfcheetah_expert-v2"):
        file_of(str(tmp_path), "halfcheetah", "expert")
    with pytest.raises(UserError, match="a folder of HDF5 files"):
        file_of(str(tmp_path / "nowhere"), "hopper", "expert")


def test_agents_learn_from_the_users_file(tmp_path: Path) -> None:
    steps = experts.collect("hopper", 150, seed=3)
    d4rl.write(tmp_path / "hopper_expert-v2.hdf5", steps)
    place = where(order("control/fig1", "paper", tmp_path / "out", str(tmp_path)))
    assert place.data("hopper") == "hopper_expert-v2.hdf5"
    task: Control = place.task("hopper")
    assert np.array_equal(task.logs.reward, steps.reward) and not task.settings.normalise


def test_logs_that_are_not_an_experts_are_made_once_and_worse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_logs, "CLONED", 500)
    monkeypatch.setattr(control_logs, "UPDATES", 20)
    sources = {kind: control_logs.made(tmp_path, "hopper", kind, count=400, noise=0.1) for kind in control_logs.KINDS}
    found = {kind: transitions(source, "hopper") for kind, source in sources.items()}
    assert {len(steps.reward) for steps in found.values()} == {400}
    assert np.array_equal(found["mixed"].reward[:200], found["expert"].reward[:200])
    falls = {kind: int(steps.terminal.sum()) for kind, steps in found.items()}
    assert falls["medium"] > falls["mixed"] > falls["expert"]
    monkeypatch.setattr(control_logs, "_medium", lambda *_: pytest.fail("made again"))
    assert control_logs.made(tmp_path, "hopper", "medium", count=400, noise=0.1) == sources["medium"]


def test_the_experts_agents_of_the_data_study_are_those_of_the_figures(tmp_path: Path) -> None:
    places = control_data._places(order("control/data", "full", tmp_path))
    assert places["expert"].out == tmp_path and places["noisy"].out == tmp_path / "noisy"
    assert list(places) == ["expert", "noisy", "medium", "mixed"]


@pytest.mark.parametrize("study", ["control/fig1", "control/data"])
def test_every_training_of_the_papers_scale_starts(study: str, tmp_path: Path) -> None:
    trainings = planned(order(study, "paper", tmp_path))
    assert sum(one.times for one in trainings) >= 3 and {one.updates for one in trainings} == {1_000_000}
    for one in [trainings[0], trainings[-1]]:  # dense, and the sparsest: with raw observations no mask is refused
        engine = one.engine()
        engine.advance(1)
        assert engine.count == 1 and bool(engine.state.finite().all())


def test_a_scale_of_the_paper_trains_masks_that_cut_an_input_off(tmp_path: Path) -> None:
    from fewer.systems.control.studies.training.cohorts import pruning_of

    literal = where(order("control/fig1", "paper", tmp_path))
    pruning = pruning_of(literal, ("snip", 0.95))
    checked = pruning_of(dataclasses.replace(literal, unchecked=False), ("snip", 0.95))
    assert pruning is not None and pruning.unchecked and checked is not None and not checked.unchecked
