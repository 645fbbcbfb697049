"""Tables and figures that are put together from pieces."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from fewer.core.engines.base import Training
from fewer.core.errors import UserError
from fewer.studies.order import Order
from fewer.studies.remarks import remarks_on
from fewer.studies.study import Result
from fewer.systems.vision.studies import capacity as vision_capacity
from fewer.systems.vision.studies import lottery as vision_lottery
from fewer.systems.vision.studies.light import lightest as vision_lightest
from fewer.systems.vision.studies.place import Place
from fewer.systems.vision.studies.recipe import DENSE, Recipe, gradual
from tests.systems.vision.small import quiet, tiny


def whole(result: Result) -> None:
    assert result.rows
    assert all(len(row) == len(result.columns) for row in result.rows)
    json.dumps(result.record(), allow_nan=False)


def shortened(pieces: dict[str, Recipe]) -> dict[str, Recipe]:
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
    table = vision_capacity.table2(Order("vision/table2", "quick", tmp_path, quiet))
    whole(table)
    assert [row[2] for row in table.rows] == ["standard", "cured", "paper"] * 2
    assert (table.rows[0][-2:], table.rows[1][-2:]) == (["", ""], [89.67, 5.5])
    trained = {path.stat().st_mtime_ns for path in tmp_path.glob("pieces/*pgd*/*/metrics.json")}
    whole(vision_capacity.table3(Order("vision/table3", "quick", tmp_path, quiet)))
    curves = vision_capacity.curves(Order("vision/fig2-3", "quick", tmp_path, quiet))
    whole(curves)
    assert curves.figures["vision-fig2-3.png"].startswith(b"\x89PNG")
    assert {path.stat().st_mtime_ns for path in tmp_path.glob("pieces/*pgd*/*/metrics.json")} == trained


def test_full_pieces_are_the_papers_and_the_recipe_that_works() -> None:
    pieces = vision_capacity.capacity_pieces("pgd", "full")
    assert len(pieces) == 18
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
    result = vision_lightest.lightest(Order("vision/lightest", "quick", tmp_path, quiet))
    whole(result)
    recipes = {row[1] for row in result.rows}
    assert {"dense", "gradual magnitude", "start snip", "start grasp", "learned hydra", "features robust"} <= recipes
    audited = [row for row in result.rows if row[-1]]
    assert [row[1] for row in audited] == ["gradual magnitude"]
    assert float(audited[0][-1]) <= float(audited[0][6])  # the worst case is never above the clean accuracy
    sizes = {row[1]: [other[3] for other in result.rows if other[1] == row[1]] for row in result.rows}
    assert sizes["features robust"] == sizes["features magnitude"] == sizes["features random"]
    monkeypatch.setattr(vision_lightest, "where", lambda *_: dataclasses.replace(place, source=""))
    again = vision_lightest.lightest(Order("vision/lightest", "quick", tmp_path, quiet))
    assert again.rows == result.rows  # put together without images


def test_lottery_rounds_become_a_table_and_a_figure(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {
        name: dataclasses.replace(
            game, settings=dataclasses.replace(game.settings, rounds=1, rate=0.95), training=Training(4, 8)
        )
        for name, game in vision_lottery.games("quick").items()
        if game.kind != "pgd"
    }
    monkeypatch.setattr(vision_lottery, "games", lambda scale: asked)
    monkeypatch.setattr(vision_lottery, "SHOWN", (0, 1))
    monkeypatch.setattr(vision_lottery, "where", lambda *_: place)
    result = vision_lottery.tickets(Order("vision/fig9-12", "quick", tmp_path, quiet))
    whole(result)
    assert [row[1:3] for row in result.rows] == [["normal", 0], ["normal", 1], ["fgsm", 0], ["fgsm", 1]]
    said = remarks_on("vision/fig9-12", result.record())
    assert sum("the first weights beat new ones at" in line for line in said) == 3
    read = vision_lottery.train_tickets(asked["lottery-half-fgsm"], dataclasses.replace(place, source=""))
    assert read == result.details["half-fgsm"]
    empty = dataclasses.replace(place, source="", out=tmp_path / "empty")
    monkeypatch.setattr(vision_lottery, "where", lambda *_: empty)
    with pytest.raises(UserError, match="none of this study's pieces"):
        vision_lottery.tickets(Order("vision/fig9-12", "quick", tmp_path, quiet))
