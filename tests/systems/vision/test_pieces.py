"""Pieces: replicas in cohorts and alone, saved and found again, and what their rows say."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fewer.attack.audit import Audit, Report
from fewer.core.engines.cohort import Cohort
from fewer.core.engines.nets import NetworkSet
from fewer.core.errors import UserError
from fewer.core.files.run_folder import Folder
from fewer.core.seed import Stream
from fewer.pruning.pruning import Pruning
from fewer.studies.remarks import remarks_on
from fewer.studies.study import Result, studies
from fewer.systems.vision.studies import (
    capacity as vision_capacity,
)
from fewer.systems.vision.studies import (
    full as vision_full,
)
from fewer.systems.vision.studies import (
    lightest as vision_lightest,
)
from fewer.systems.vision.studies import (
    lottery as vision_lottery,
)
from fewer.systems.vision.studies import (
    measure as vision_measure,
)
from fewer.systems.vision.studies import (
    pieces as vision_pieces,
)
from fewer.systems.vision.studies import (
    suite as vision_suite,
)
from fewer.systems.vision.studies.measure import signs, troubles
from fewer.systems.vision.studies.pieces import DENSE, Piece, Place, cured, gradual, images, read_modules, run_piece
from fewer.systems.vision.task.digits import read_digits


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Six hundred digits to train with and a hundred to test."""
    arrays = {}
    for prefix, split, count in (("", "train", 600), ("test_", "test", 100)):
        pixels, labels = read_digits(split)
        arrays |= {f"{prefix}images": pixels[:count, 0], f"{prefix}labels": labels[:count]}
    path = tmp_path_factory.mktemp("few") / "digits.npz"
    np.savez(path, **arrays)
    return str(path)


def quiet(line: str) -> None:
    """Says nothing."""


@pytest.fixture(autouse=True)
def shorter_attack(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four steps of PGD instead of forty."""
    monkeypatch.setattr(vision_measure, "ATTACKS", "fgsm:0.3+pgd:0.3,steps=4,step=0.1")


def tiny(name: str = "tiny", **changes: object) -> Piece:
    base = cured(name, "cnn0", steps=10, batch=16, hardening="pgd:0.3,steps=2", seeds=(0, 1))
    return dataclasses.replace(base, **{"prunings": (DENSE, gradual(0.1, 10)), **changes})


@pytest.fixture
def place(few: str, tmp_path: Path) -> Place:
    return Place(tmp_path, few, limit=30, log=quiet)


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
    with pytest.raises(UserError, match="no FEWER_MNIST"):
        images("full")
    monkeypatch.setenv("FEWER_MNIST", str(tmp_path))
    with pytest.raises(UserError, match="four idx files"):
        images("full")
    (tmp_path / "train-images-idx3-ubyte.gz").touch()
    assert images("full") == str(tmp_path)
    assert images("quick") == "digits"


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


def whole(result: Result) -> None:
    assert result.rows
    assert all(len(row) == len(result.columns) for row in result.rows)
    json.dumps(result.record(), allow_nan=False)


def shortened(pieces: dict[str, Piece]) -> dict[str, Piece]:
    return {
        name: dataclasses.replace(
            piece, steps=4, batch=8, network="cnn0", points=1,
            hardening=piece.hardening if "fgsm" in piece.hardening else "fgsm:0.3,ramp=0.5",
        )
        for name, piece in pieces.items()
    }  # fmt: skip


def test_the_capacity_tables_and_curves_share_their_pieces(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = vision_capacity.capacity_pieces
    monkeypatch.setattr(vision_capacity, "capacity_pieces", lambda *words: shortened(original(*words)))
    monkeypatch.setattr(vision_capacity, "where", lambda *_: place)
    table = vision_capacity.table2("quick", tmp_path, quiet)
    whole(table)
    assert [row[2] for row in table.rows] == ["cured", "paper"] * 2
    assert table.rows[0][-2:] == [89.67, 5.5]
    trained = {path.stat().st_mtime_ns for path in tmp_path.glob("pieces/*pgd*/*/metrics.json")}
    whole(vision_capacity.table3("quick", tmp_path, quiet))
    curves = vision_capacity.curves("quick", tmp_path, quiet)
    whole(curves)
    assert curves.metrics["vision-fig2-3.png"].startswith(b"\x89PNG")
    assert {path.stat().st_mtime_ns for path in tmp_path.glob("pieces/*pgd*/*/metrics.json")} == trained


def test_full_pieces_are_the_papers_and_the_recipe_that_works() -> None:
    pieces = vision_capacity.capacity_pieces("pgd", "full")
    assert len(pieces) == 12
    paper, cure = pieces["paper-pgd-cnn3"], pieces["cured-pgd-cnn3"]
    assert (paper.steps, paper.batch, paper.hardening, paper.optimizer.kind) == (23438, 128, "paper:0.3", "sgd")
    assert (cure.steps, cure.batch, cure.optimizer.warmup, cure.optimizer.decay_from) == (9400, 256, 200, 0.5)
    assert len(cure.replicas) == 12
    light = vision_lightest.small_pieces("full")
    kept = {name: round(311_600 * (1 - piece.prunings[0].sparsity)) for name, piece in light.items()}
    assert kept["small-1"] == kept["margin-1"] == 3116
    assert kept["small-3"] == kept["margin-3"] == kept["contrast-3"] == 9348
    assert kept["lamp-1"] == 3197 and light["lamp-1"].prunings[0].method == "lamp"
    assert (kept["small-10"], kept["small-dense"]) == (30848, 311_600)


def test_the_lightest_study_puts_every_recipe_into_one_table(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = dataclasses.replace(tiny("light"), hardening="fgsm:0.3,ramp=0.5", seeds=(0,), steps=6)
    small = {
        name: dataclasses.replace(base, prunings=(pruning,))
        for name, pruning in (("small-3", gradual(0.3, 6)), ("small-dense", DENSE))
    }
    monkeypatch.setattr(vision_lightest, "small_pieces", lambda scale: small)
    monkeypatch.setattr(vision_lightest, "where", lambda *_: place)
    monkeypatch.setitem(vision_lightest.SUITE, "quick", "fgsm:0.3+pgd:0.3,steps=3,step=0.1")
    monkeypatch.setitem(vision_lightest.SHORT, "quick", ((0.3,), 2, 2, 20))
    result = vision_lightest.lightest("quick", tmp_path, quiet)
    whole(result)
    recipes = {row[1] for row in result.rows}
    assert {"dense", "gradual magnitude", "start snip", "start grasp", "learned hydra", "features robust"} <= recipes
    audited = [row for row in result.rows if row[-1]]
    assert [row[1] for row in audited] == ["gradual magnitude"]
    assert float(audited[0][-1]) <= float(audited[0][6])  # the worst case is never above the clean accuracy
    sizes = {row[1]: [other[3] for other in result.rows if other[1] == row[1]] for row in result.rows}
    assert sizes["features robust"] == sizes["features magnitude"] == sizes["features random"]
    monkeypatch.setattr(vision_lightest, "where", lambda *_: dataclasses.replace(place, source=""))
    assert vision_lightest.lightest("quick", tmp_path, quiet).rows == result.rows  # put together without images


def test_lottery_rounds_become_a_table_and_a_figure(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = dataclasses.replace(vision_lottery.QUICK, rounds=1, rate=0.95)
    training = vision_pieces.Training(4, 8)
    monkeypatch.setattr(vision_lottery, "_schedule", lambda scale, device: (settings, training, (0,)))
    monkeypatch.setattr(vision_lottery, "where", lambda *_: place)
    monkeypatch.setattr(vision_lottery, "TRAININGS", {"normal": "", "fgsm": "fgsm:0.3,mix=0.5,ramp=0"})
    result = vision_lottery.tickets("quick", tmp_path, quiet)
    whole(result)
    assert [row[:2] for row in result.rows] == [["normal", 0], ["normal", 1], ["fgsm", 0], ["fgsm", 1]]
    assert (
        sum("the first weights beat new ones at" in one for one in remarks_on("vision/fig9-12", result.record())) == 3
    )
    read = vision_lottery.train_tickets("fgsm", "quick", dataclasses.replace(place, source=""))
    assert read == result.details["fgsm"]
    empty = dataclasses.replace(place, source="", out=tmp_path / "empty")
    monkeypatch.setattr(vision_lottery, "where", lambda *_: empty)
    with pytest.raises(UserError, match="none of this study's pieces"):
        vision_lottery.tickets("quick", tmp_path, quiet)


def test_pieces_are_listed_and_unknown_ones_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert vision_full.main(["--list", "--seeds", "0"]) == 0
    listed = capsys.readouterr().out
    assert "small-3                  small-cnn, 1 replicas, 1 in a cohort: 9400 cohort steps" in listed
    assert all(name in listed for name in ("suite-small-1", "hydra", "features", "lottery-pgd", "paper-fgsm-cnn5"))
    assert vision_full.main(["smal-3"]) == 2
    assert "small-3" in capsys.readouterr().err
    assert vision_full.main(["small-3", "--seeds", "a"]) == 2
    monkeypatch.delenv("FEWER_MNIST", raising=False)
    assert vision_full.main(["small-3", "--out", "nowhere"]) == 2


def test_a_piece_runs_from_the_command_line(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vision_full, "where", lambda *_: place)
    monkeypatch.setattr(vision_full, "images", lambda scale: place.source)
    monkeypatch.setattr(vision_full, "small_pieces", lambda scale: {"small-3": tiny(prunings=(gradual(0.1, 10),))})
    assert vision_full.main(["small-3", "--seeds", "5", "--out", str(place.out)]) == 0
    assert Folder(place.out / "pieces" / "tiny" / "magnitude-10-seed5").finished


def test_every_registered_vision_study_can_be_imported() -> None:
    import importlib

    for name, (where, _) in studies().items():
        if name.startswith("vision/"):
            module, function = where.split(":")
            assert callable(getattr(importlib.import_module(module), function))
