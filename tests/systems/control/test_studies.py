"""The control paper's studies: its bytes, cohorts of unlike recipes, and a cohort that goes on after a kill."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from fewer.cli import main
from fewer.core.engines.loop import Loop
from fewer.core.engines.state import fresh_modules
from fewer.studies.order import Order
from fewer.studies.pieces import silent
from fewer.systems.control.studies import figures
from fewer.systems.control.studies import memory as control_memory
from fewer.systems.control.studies.training import catalogue as control_catalogue
from fewer.systems.control.studies.training import cohorts as control_cohorts
from fewer.systems.control.studies.training.cohorts import train_agents
from fewer.systems.control.studies.training.scales import Curves, Place
from fewer.systems.control.task.settings import Settings

SMALL = Settings(
    policy="both", transitions=300, hidden=(24, 24), autoencoder_hidden=(24, 24), episodes=2, horizon=8, candidates=3
)
WANTED = [("dense", 0.0), ("snip", 0.5), ("rigl", 0.5), ("gradual", 0.5)]


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEWER_CACHE", str(tmp_path_factory.getbasetemp() / "fewer"))


def place(out: Path, steps: int = 8) -> Place:
    curves = Curves(3, 2, ("dense", "snip"), (0.0, 0.5))
    return Place(out, steps, SMALL, log=lambda line: None, curves=curves)


def test_files_in_the_papers_formats_have_the_papers_bytes() -> None:
    task = control_memory.task_of(Order("control/table1", "full", Path(), silent))
    modules = fresh_modules(task, 0)
    for method, within in (("SNIP", 0.01), ("GraSP", 0.03)):
        masks = control_memory.masks_of(task, modules, method.lower(), 0.95)
        for part, names in control_memory.PARTS.items():
            size = control_memory._coordinates(control_memory._tensors(modules, names, masks)) / 1e6
            assert size == pytest.approx(control_memory.PAPER[part, f"{method} 95 % as COO"], rel=within)
    for part, names in control_memory.PARTS.items():
        tensors = control_memory._tensors(modules, names, {})
        assert control_memory._saved(tensors) / 1e6 == pytest.approx(control_memory.PAPER[part, "dense"], rel=0.01)
        size = control_memory._coordinates(tensors) / 1e6
        assert size == pytest.approx(control_memory.PAPER[part, "dense as COO"], rel=0.01)


def test_unlike_recipes_train_as_one_cohort_and_keep_exactly_what_they_should(tmp_path: Path) -> None:
    rows = train_agents(place(tmp_path), "hopper", WANTED, (0, 1))
    assert [(row["recipe"], row["seed"]) for row in rows] == [(name, seed) for name, _ in WANTED for seed in (0, 1)]
    for row in rows:
        assert {"score", "bc_score"} <= row.keys(), row.get("refused")
        for network in ("actor", "critic", "encoder", "decoder"):
            counts = [pair for layer, pair in row["kept"].items() if layer.startswith(f"{network}.")]
            kept, weights = (sum(column) for column in zip(*counts))
            assert kept == (weights if row["recipe"] == "dense" else round(0.5 * weights))


def test_scores_on_the_way_are_of_the_chosen_agents_alone_and_change_nothing(tmp_path: Path) -> None:
    scored = train_agents(place(tmp_path / "scored"), "hopper", WANTED, (0, 1))
    for row in scored:
        assert ("curve" in row) == (row["recipe"] in ("dense", "snip"))
    curve = scored[1]["curve"]
    assert curve["updates"] == [3, 6, 8] and len(curve["score"]) == len(curve["bc_score"]) == 3
    assert len(set(curve["score"])) == 3 and curve["score"] != scored[0]["curve"]["score"]
    blind = train_agents(dataclasses.replace(place(tmp_path / "blind"), curves=None), "hopper", WANTED, (0, 1))
    assert [row["score"] for row in blind] == [row["score"] for row in scored]


def test_agents_that_are_finished_are_not_trained_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = train_agents(place(tmp_path), "hopper", WANTED[:2], (0,))
    monkeypatch.setattr(control_cohorts, "_train", lambda *_, **__: pytest.fail("trained again"))
    assert train_agents(place(tmp_path), "hopper", WANTED[:2], (0,)) == first


def test_an_agent_trained_alone_on_its_kept_weights_is_the_one_of_the_cohort(tmp_path: Path) -> None:
    wanted = [("snip", 0.9), ("set", 0.9)]
    wide = dataclasses.replace(SMALL, autoencoder_hidden=(96, 96))
    cohort = train_agents(dataclasses.replace(place(tmp_path / "cohort"), settings=wide), "hopper", wanted, (0,))
    by_itself = dataclasses.replace(place(tmp_path / "alone"), settings=wide, alone=True)
    alone = train_agents(by_itself, "hopper", wanted, (0,))
    for one, same in zip(cohort, alone):
        assert (one["cohort"], same["cohort"]) == (2, 1)
        assert one["kept"] == same["kept"]
        assert one["bc_return"] == pytest.approx(same["bc_return"], rel=1e-3)
        assert one["return"] == pytest.approx(same["return"], rel=1e-2)


def test_a_recipe_whose_mask_is_refused_is_told_and_not_trained(tmp_path: Path) -> None:
    rows = train_agents(place(tmp_path), "hopper", [("random", 0.999), ("snip", 0.5)], (0, 1))
    assert [("refused" in row, row.get("cohort")) for row in rows] == [(True, None)] * 2 + [(False, 2)] * 2
    alone = train_agents(place(tmp_path / "alone"), "hopper", [("snip", 0.5)], (0, 1))
    assert [row["score"] for row in rows[2:]] == [row["score"] for row in alone]
    only = train_agents(place(tmp_path / "only"), "hopper", [("random", 0.999)], (0,))
    assert "refused" in only[0]


def test_a_cohort_that_was_killed_ends_with_the_same_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = train_agents(place(tmp_path / "whole"), "hopper", WANTED, (0,))

    class Killed(Exception):
        pass

    def killed(line: Mapping[str, Any]) -> None:
        if line["step"] == 5:
            raise Killed

    monkeypatch.setattr(control_cohorts, "_loop", lambda *_: Loop(log_every=1, save_seconds=0.0, on_log=killed))
    with pytest.raises(Killed):
        train_agents(place(tmp_path / "cut"), "hopper", WANTED, (0,))
    assert not list((tmp_path / "cut").glob("agents/*/*.json"))
    states = list((tmp_path / "cut" / "cohorts").glob("*/state.safetensors"))
    assert len(states) == 1
    monkeypatch.undo()
    monkeypatch.setenv("FEWER_CACHE", str(tmp_path.parent / "fewer"))
    again = train_agents(place(tmp_path / "cut"), "hopper", WANTED, (0,))
    for one, other in zip(whole, again):
        assert one["score"] == other["score"] and one["bc_score"] == other["bc_score"] and one["kept"] == other["kept"]
        assert one.get("curve") == other.get("curve")
    assert not states[0].exists()


def test_the_figure_is_put_together_from_finished_agents_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for recipe, sparsity, score in (("dense", 0.0, 80.0), ("snip", 0.95, 76.0), ("snip", 0.5, 20.0)):
        for seed in range(5 if sparsity != 0.5 else 4):
            path = tmp_path / "agents" / "walker2d" / f"{recipe}-{sparsity}-{seed}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            row = {"environment": "walker2d", "recipe": recipe, "sparsity": sparsity, "seed": seed, "steps": 5}
            path.write_text(json.dumps({**row, "episodes": 20, "score": score + seed, "bc_score": score}))
    result = figures.fig1(Order("control/fig1", "full", tmp_path, silent))
    rows = {(row[0], row[1]): dict(zip(result.columns, row)) for row in result.rows}
    bcq = rows["Walker2d", "BCQ"]
    assert bcq["0 %"].startswith("82.0 (") and bcq["95 %"].startswith("78.0 (") and bcq["50 %"] == "not trained"
    assert bcq["95 % in % of dense"] == f"{100 * 78 / 82:.0f}" and rows["Hopper", "BC"]["0 %"] == "not trained"
    assert len(result.figures["control-fig1.png"]) > 1000


def test_a_recipe_that_nobody_knows_is_refused_in_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["reproduce", "control/fig1", "--pieces", "hopper", "--out", str(tmp_path)]
    assert main([*words, "--set", "recipes=snipe:0.9"]) == 2
    assert "did you mean 'snip'" in capsys.readouterr().err
    assert main([*words, "--set", "recipes=snip:most"]) == 2
    assert "snip:0.95" in capsys.readouterr().err


def test_pieces_of_a_figure_are_the_agents_that_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_catalogue, "where", lambda order: place(order.out))
    words = ["reproduce", "control/fig2", "--pieces", "hopper", "--seeds", "3", "--out", str(tmp_path)]
    assert main([*words, "--set", "recipes=dense,snip:0.5", "--set", "steps=4", "--set", "save=yes"]) == 0
    files = sorted(path.name for path in (tmp_path / "agents" / "hopper").iterdir())
    assert files == ["dense-seed3.json", "snip-50-seed3.json"]
    assert json.loads((tmp_path / "agents" / "hopper" / files[0]).read_text())["steps"] == 4
