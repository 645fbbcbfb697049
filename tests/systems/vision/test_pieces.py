"""Pieces: replicas in cohorts and alone, saved and found again, and what their rows say."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from fewer.attack.audit import Audit, Report
from fewer.core.engines.cohort import Cohort
from fewer.core.engines.nets import NetworkSet
from fewer.core.errors import UserError
from fewer.core.files.run_folder import Folder
from fewer.core.seed import Stream
from fewer.pruning.pruning import Pruning
from fewer.studies.order import Order
from fewer.systems.vision.studies import pieces as vision_pieces
from fewer.systems.vision.studies.light import suite as vision_suite
from fewer.systems.vision.studies.measure import signs, troubles
from fewer.systems.vision.studies.pieces import read_modules, run_piece
from fewer.systems.vision.studies.place import Place, images
from fewer.systems.vision.studies.recipe import DENSE
from tests.systems.vision.small import tiny


def test_every_density_with_every_seed_is_trained_and_counted(place: Place) -> None:
    rows = run_piece(tiny(together=4, points=2), place)
    assert [(row["seed"], row["kept"]) for row in rows] == [(0, 5590), (1, 5590), (0, 559), (1, 559)]
    assert all((row["weights"], row["biases"], row["cohort"], row["images"]) == (5590, 66, 4, 30) for row in rows)
    assert [point["step"] for point in rows[0]["points"]] == [5, 10]
    assert all(0 <= row["pgd40"] <= row["clean"] <= 1 for row in rows)


def test_saved_networks_give_the_saved_figures_again(place: Place) -> None:
    piece = tiny()
    row = run_piece(piece, place)[2]
    folder = place.folder(piece, piece.prunings[1], 0)
    modules = read_modules(folder, "cnn0")
    assert sum(int((p != 0).sum()) for p in modules["net"].parameters() if p.ndim > 1) <= 559
    task = place.task("cnn0")
    batch = task.data("test").samples
    answer = NetworkSet(modules, training=False).net(batch.pixels[:30])
    assert float((answer.argmax(1) == batch.label[:30]).double().mean()) == pytest.approx(row["clean"])


def test_a_replica_ends_with_the_same_figures_alone_and_in_a_cohort(place: Place, tmp_path: Path) -> None:
    alone = run_piece(tiny(), place)
    together = run_piece(tiny(together=4), dataclasses.replace(place, out=tmp_path / "cohort"))
    for one, other in zip(alone, together):
        assert one["losses"][-1][1] == pytest.approx(other["losses"][-1][1], abs=1e-3)


def test_finished_replicas_are_only_read(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run_piece(tiny(prunings=(DENSE,)), place)

    def refuse(*_: object) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr(vision_pieces, "_train", refuse)
    assert run_piece(tiny(prunings=(DENSE,)), place) == first
    with pytest.raises(AssertionError):
        run_piece(tiny(), place)


def test_without_images_only_what_is_finished_is_read(place: Place) -> None:
    run_piece(tiny(prunings=(DENSE,), seeds=(0,)), place)
    assert len(run_piece(tiny(), dataclasses.replace(place, source=""))) == 1
    assert run_piece(tiny("other"), dataclasses.replace(place, source="")) == []


def test_another_recipe_in_the_same_folder_is_refused(place: Place) -> None:
    run_piece(tiny(prunings=(DENSE,), seeds=(0,)), place)
    with pytest.raises(UserError, match="another recipe"):
        run_piece(tiny(steps=11), place)


def test_masks_before_training_are_scored_under_the_whole_budget(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    moved: list[float] = []
    original = vision_pieces.mask_for

    def spy(task, modules, pruning, *, seed):  # type: ignore[no-untyped-def]
        loss = task.objectives()[0].loss
        batch = task.data("train").take(torch.arange(8))
        zero = torch.zeros((), dtype=torch.int64)
        noise = Stream(zero, zero - 1)  # as before the first step, where a ramp has not begun
        nets, seen = NetworkSet(modules), []
        loss(dataclasses.replace(nets, on_call=lambda _, a: seen.append(a[0].detach())), batch, noise)
        moved.append(float((seen[-1] - batch.pixels).abs().max()))
        return original(task, modules, pruning, seed=seed)

    monkeypatch.setattr(vision_pieces, "mask_for", spy)
    piece = tiny(prunings=(Pruning("snip", 0.5, "global"),), seeds=(0,))
    assert run_piece(piece, place)[0]["kept"] == 2795
    assert moved == [pytest.approx(0.3, abs=1e-6)]


def test_a_mask_that_leaves_a_useless_network_is_a_row_and_not_a_crash(place: Place) -> None:
    rows = run_piece(tiny(prunings=(Pruning("snip", 0.999, "global"), Pruning("snip", 0.5, "global"))), place)
    assert "refused" in rows[0]
    assert "pgd40" in rows[2]


def test_full_studies_ask_for_the_images(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("FEWER_MNIST", raising=False)
    order = Order("vision/table2", "full", tmp_path)
    with pytest.raises(UserError, match="no FEWER_MNIST"):
        images(order)
    monkeypatch.setenv("FEWER_MNIST", str(tmp_path))
    with pytest.raises(UserError, match="four idx files"):
        images(order)
    (tmp_path / "train-images-idx3-ubyte.gz").touch()
    assert images(order) == str(tmp_path)
    assert images(dataclasses.replace(order, data="own")) == "own"
    assert images(dataclasses.replace(order, scale="quick")) == "digits"


def test_a_plateau_and_a_gap_are_said_with_their_step() -> None:
    row = {"steps": 1000, "fgsm": 0.9, "pgd40": 0.0, "losses": [[200, 2.30], [400, 2.31], [600, 1.0], [1000, 0.5]]}
    said = signs(row, 10)
    assert said[0].startswith("until step 400 of 1000 the loss has stood at 2.31")
    assert "catastrophic overfitting" in said[1]
    well = {**row, "losses": [[500, 1.0], [1000, 0.5]], "pgd40": 0.85}
    assert signs(well, 10) == []
    rows = [{**row, "seed": 0}, {**well, "seed": 1}, {**row, "seed": 2}]
    plateaus, gaps = troubles(rows, 10)
    assert plateaus.endswith("until step 400 of 1000 (seed 0), 400 of 1000 (seed 2)")
    assert gaps.endswith("90 and 0 % (seed 0), 90 and 0 % (seed 2)")
    assert troubles(rows[1:2], 10) == []


def test_a_piece_of_before_a_setting_existed_is_found_again_and_another_recipe_refused(place: Place) -> None:
    piece = tiny(prunings=(DENSE,), seeds=(0,))
    rows = run_piece(piece, place)
    root = Folder(place.out / "pieces" / piece.name)
    config = root.read_json("config.json")
    del config["contrast"], config["optimizer"]["clip_value"]
    root.write_json("config.json", config)
    assert run_piece(piece, place) == rows
    for changed in ({"contrast": 20.0}, {"optimizer": dataclasses.replace(piece.optimizer, clip_value=1.0)}):
        with pytest.raises(UserError, match="another recipe"):
            run_piece(dataclasses.replace(piece, **changed), place)


def test_a_training_that_is_cut_off_goes_on_to_the_same_networks_and_figures(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    piece = tiny(together=4, points=2, steps=10)
    whole = run_piece(piece, dataclasses.replace(place, out=place.out / "whole"))
    monkeypatch.setattr(vision_pieces, "SAVE_SECONDS", 0.0)
    advance, stops = Cohort.advance, [7]

    def cut_off(engine: Cohort, steps: int) -> None:
        if stops and engine.count >= stops[0]:
            stops.pop()
            raise KeyboardInterrupt
        advance(engine, steps)

    monkeypatch.setattr(Cohort, "advance", cut_off)
    with pytest.raises(KeyboardInterrupt):
        run_piece(piece, place)
    (saved,) = (place.out / "unfinished").iterdir()
    assert (saved / "state.safetensors").exists() and not any(run_piece(piece, dataclasses.replace(place, source="")))
    steps: list[int] = []
    monkeypatch.setattr(Cohort, "advance", lambda engine, count: (steps.append(engine.count), advance(engine, count)))
    again = run_piece(piece, place)
    assert min(steps) == 7 and not saved.exists()
    assert [{**row, "seconds": 0} for row in again] == [{**row, "seconds": 0} for row in whole]


def test_a_suite_that_is_cut_off_goes_on_with_the_next_attack(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    piece = tiny(prunings=(DENSE,), seeds=(0, 1), contrast=20.0)
    run_piece(piece, place)
    attacks, unbroken = "fgsm:0.1+pgd:0.1,steps=3+square:0.1,queries=5", vision_suite.robust
    asked: list[int] = []

    def cut(*words: Any, done: Report | None, after_each: Callable[[Report], None]) -> Report:
        def keep(part: Report) -> None:
            after_each(part)
            asked.append(len(part.lines))
            if len(asked) == 2:
                raise KeyboardInterrupt

        return unbroken(*words, done=done, after_each=keep)

    monkeypatch.setattr(vision_suite, "robust", cut)
    with pytest.raises(KeyboardInterrupt):
        vision_suite.audit_saved(piece, place, attacks)
    found = vision_suite.audit_saved(piece, place, attacks)
    assert asked == [1, 2, 3, 1, 2, 3]
    for row, (pruning, seed) in zip(found, piece.replicas):
        folder = place.folder(piece, pruning, seed)
        nets = NetworkSet(read_modules(folder, "cnn0", contrast=20.0), training=False)
        assert row["robust"] == unbroken(place.task("cnn0", contrast=20.0), nets, attacks, Audit(limit=30)).robust
        assert not list(folder.path.glob("*part*"))
