"""A preset is words under one name: expanded the same through every door, and given way to what is said beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import fewer
from fewer.cli import main, parser
from fewer.cli.about.completion import script
from fewer.core.errors import UserError
from fewer.core.registry import systems
from fewer.core.system import Description, System
from fewer.run.options import job_of
from fewer.sweep.grid import grid_of
from tests.run.test_options import DOORS

BLOBS = "tests.toys:Blobs"
PAPER = {"steps": 7, "batch": 5, "optimizer": "sgd,lr=0.5,momentum=0.9", "prune": "snip", "sparsity": 0.75}
WIDE = {"settings": {"network": "cnn0", "validation": 0.25}, "steps": 3}
EVERY = [(task, preset) for task, system in systems().items() for preset in system.presets]


@pytest.fixture(autouse=True)
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two systems: one without settings, one whose presets have some."""
    blobs = System("blobs", BLOBS, Description("Blobs", ""), presets={"paper": PAPER, "plain": {"steps": 2}})
    digits = System("digits", systems()["vision"].task, Description("Digits", ""), presets={"wide": WIDE})
    monkeypatch.setitem(systems(), "blobs", blobs)
    monkeypatch.setitem(systems(), "digits", digits)


@pytest.mark.parametrize(("task", "preset"), EVERY)
def test_every_preset_of_every_system_makes_a_job(task: str, preset: str) -> None:
    words = systems()[task].presets[preset]
    assert not {"device", "start_from", "preset"} & words.keys(), "these are the user's"
    assert "sparsity=" not in str(words.get("prune", "")), "in a word of its own, so that --sparsity can change it"
    assert job_of(task, {"preset": preset}) == job_of(task, words)


SAID: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("blobs", {}, PAPER),
    ("blobs", {"steps": 9}, {**PAPER, "steps": 9}),
    ("blobs", {"optimizer": "adam"}, {**PAPER, "optimizer": "adam"}),
    ("blobs", {"prune": "grasp"}, {**PAPER, "prune": "grasp"}),
    ("blobs", {"sparsity": 0.5}, {**PAPER, "sparsity": 0.5}),
    ("blobs", {"prune": "grasp,sparsity=0.5"}, {**PAPER, "prune": "grasp", "sparsity": 0.5}),
    ("blobs", {"prune": "dense"}, {key: PAPER[key] for key in ("steps", "batch", "optimizer")}),
]


@pytest.mark.parametrize(("task", "more", "meant"), SAID, ids=str)
def test_words_beside_a_preset_win_through_every_door(
    task: str, more: dict[str, Any], meant: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = job_of(task, meant)
    assert [door(task, {"preset": "paper", **more}, monkeypatch) for door in DOORS] == [expected] * 3


def test_settings_are_merged_key_by_key() -> None:
    job = job_of("digits", {"preset": "wide", "settings": ["network=mlp", "contrast=2"]})
    assert job.settings == ("validation=0.25", "network=mlp", "contrast=2")
    assert job.training.steps == 3


def test_a_point_of_a_preset_has_the_name_of_the_same_point_in_full() -> None:
    (short,) = grid_of({"base": {"task": "digits", "preset": "wide", "set": {"network": "mlp"}}}).points
    (whole,) = grid_of({"base": {"task": "digits", "steps": 3, "set": {"validation": 0.25, "network": "mlp"}}}).points
    assert short.name == whole.name and "preset" not in short.to_json()["labels"]


def test_presets_are_an_axis_whose_values_label_the_points() -> None:
    grid = grid_of({"base": {"task": "blobs"}, "axes": {"preset": ["paper", "plain"], "optimizer.lr": [0.1, 0.2]}})
    assert [(point.labels["preset"], point.job.training.steps) for point in grid.points] == [
        ("paper", 7), ("paper", 7), ("plain", 2), ("plain", 2),
    ]  # fmt: skip
    assert [point.job.training.optimizer.lr for point in grid.points] == [0.1, 0.2, 0.1, 0.2]
    assert grid.points[0].job.training.optimizer.momentum == 0.9


def test_a_run_folder_holds_the_words_and_not_the_name(tmp_path: Path) -> None:
    fewer.train("blobs", tmp_path / "run", preset="plain")
    config = (tmp_path / "run" / "config.json").read_text()
    assert json.loads(config)["training"]["steps"] == 2 and "preset" not in config


@pytest.mark.parametrize(
    ("task", "preset", "told"),
    [
        ("blobs", "papr", "preset 'papr'; expected one that `fewer tasks blobs` lists; did you mean 'paper'?"),
        (BLOBS, "paper", f"preset 'paper' of {BLOBS}; expected a task that has presets"),
        ("blbs", "paper", "did you mean 'blobs'?"),
    ],
)
def test_a_preset_that_is_not_there_is_one_line(
    task: str, preset: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for door in DOORS:
        with pytest.raises(UserError) as error:
            door(task, {"preset": preset}, monkeypatch)
        assert told in str(error.value) and "\n" not in str(error.value)


def test_presets_are_listed_with_their_words_and_completed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "blobs"]) == 0
    said = capsys.readouterr().out
    assert "--preset paper" in said and "--optimizer sgd,lr=0.5,momentum=0.9 --prune snip --sparsity 0.75" in said
    assert main(["tasks", "digits", "--json"]) == 0
    last = json.loads(capsys.readouterr().out)[-1]
    assert last["name"] == "--preset wide" and last["help"] == "--set network=cnn0 --set validation=0.25 --steps 3"
    assert "paper" in parser().verbs["train"].format_help() and "wide" in script("bash")
