"""What could make the paper's tables: changes of a training, other ways to attack, and what is said of them."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
import torch

from fewer.attack.attacks.fgsm import fgsm
from fewer.attack.hardening.harden import harden
from fewer.core.engines.nets import NetworkSet
from fewer.core.engines.state import fresh_modules
from fewer.core.seed import Stream
from fewer.studies.order import Order
from fewer.studies.remarks import remarks_on
from fewer.systems.vision.studies import mismatch as vision_mismatch
from fewer.systems.vision.studies import variants as vision_variants
from fewer.systems.vision.studies.changes import Alternating, Injected, Unclipped
from fewer.systems.vision.studies.place import Place
from fewer.systems.vision.studies.recipe import Recipe
from fewer.systems.vision.studies.remarks import explained
from tests.systems.vision.small import quiet


def short(pieces: dict[str, Recipe], **changes: object) -> dict[str, Recipe]:
    return {name: dataclasses.replace(piece, steps=4, batch=8, points=1, **changes) for name, piece in pieces.items()}


def test_every_other_epoch_is_clean(place: Place) -> None:
    task = place.task("cnn0")
    hardened = harden(task, "fgsm:0.3,ramp=0")
    (turned,) = Alternating(task, hardened, 5).objectives()
    nets, batch = NetworkSet(fresh_modules(task, 0)), task.data("train").take(torch.arange(6))
    for step, other in ((0, hardened), (4, hardened), (5, task), (9, task), (10, hardened)):
        noise = Stream(torch.tensor(0), torch.tensor(step))
        assert turned.loss(nets, batch, noise).equal(other.objectives()[0].loss(nets, batch, noise))


def test_injected_images_are_all_images_clean_and_moved_by_the_budget(place: Place) -> None:
    task = place.task("cnn0")
    before, after = task.data("train").samples, Injected(task, fresh_modules(task, 0), 0.3).data("train").samples
    count = len(before.label)
    assert after.pixels[:count].equal(before.pixels) and after.label.equal(torch.cat([before.label, before.label]))
    moved = (after.pixels[count:] - before.pixels).abs()
    assert float(moved.max()) == pytest.approx(0.3) and 0 <= float(after.pixels.min()) <= float(after.pixels.max()) <= 1


def test_an_unclipped_attack_moves_every_pixel_by_the_budget_also_out_of_the_range(place: Place) -> None:
    task = place.task("cnn0")
    batch = task.data("train").take(torch.arange(4))
    nets, noise = NetworkSet(fresh_modules(task, 0), training=False), Stream(torch.tensor(0), torch.tensor(0))
    clipped, unclipped = (fgsm(each, 0.3)(nets, batch, noise).pixels for each in (task, Unclipped(task)))
    assert unclipped.clamp(0, 1).equal(clipped) and float(unclipped.min()) == pytest.approx(-0.3)


@pytest.mark.parametrize("together", [0, 2])
def test_every_candidate_is_trained_judged_and_put_beside_the_paper(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, together: int
) -> None:
    originals = vision_mismatch.mismatch_pieces("quick"), vision_mismatch.standard_pieces("quick")
    candidates, standards = (short(pieces, seeds=(0, 1), together=together) for pieces in originals)
    monkeypatch.setattr(vision_mismatch, "mismatch_pieces", lambda scale: candidates)
    monkeypatch.setattr(vision_mismatch, "standard_pieces", lambda scale: standards)
    monkeypatch.setattr(vision_mismatch, "where", lambda *_: place)
    result = vision_mismatch.mismatch(Order("vision/mismatch", "quick", tmp_path, quiet))
    assert [row[2] for row in result.rows if row[0] == "fgsm"] == list(vision_mismatch.CANDIDATES)
    assert all(len(row) == len(result.columns) and "" not in row for row in result.rows)
    assert {row[-1] for row in result.rows} == {"94.57 / 5.74", "89.67 / 5.5"}
    said = remarks_on("vision/mismatch", json.loads(json.dumps(result.record())))
    assert len(said) == 2 and said[0].startswith("Table III, 1 small scales: of ")
    monkeypatch.setattr(vision_mismatch, "where", lambda *_: dataclasses.replace(place, source=""))
    again = vision_mismatch.mismatch(Order("vision/mismatch", "quick", tmp_path, quiet))
    assert again.rows == result.rows  # put together without images


def test_a_candidate_explains_a_scale_only_with_both_numbers_close() -> None:
    def row(clean: float, fgsm: float) -> dict[str, object]:
        return {"clean": clean, "fgsm": fgsm, "pgd40": 0.0, "points": [{"step": 9, "clean": 0.95, "fgsm": 0.06}]}

    details = {
        "mismatch-budget-fgsm-cnn0": [row(0.95, 0.05)],  # the paper's 94.57 / 5.74
        "mismatch-budget-fgsm-cnn1": [row(0.99, 0.25)],
        "mismatch-budget-fgsm-cnn3": [row(0.99, 0.25)],
    }
    found = explained({"details": details})
    assert found["fgsm", "budget, its own attack"] == {0: True, 1: False, 3: False}
    assert found["fgsm", "budget, pgd-40"] == {0: False, 1: False, 3: False}
    assert found["fgsm", "budget, stopped at the nearest moment"] == {0: True, 1: True, 3: False}


def test_deeper_and_wider_networks_stand_beside_plain_ones(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces = short(vision_variants.variant_pieces("quick"), hardening="fgsm:0.3,ramp=0")
    monkeypatch.setattr(vision_variants, "variant_pieces", lambda scale: pieces)
    monkeypatch.setattr(vision_variants, "where", lambda *_: place)
    result = vision_variants.deeper(Order("vision/deeper", "quick", tmp_path, quiet))
    assert [row[1:3] for row in result.rows] == [["plain", 5590], ["deep", 5770], ["wide", 11090]]
    assert len(remarks_on("vision/deeper", result.record())) == 2


def test_table_one_has_the_papers_filters_and_counts(tmp_path: Path) -> None:
    rows = vision_variants.table1(Order("vision/table1", "quick", tmp_path, quiet)).rows
    assert rows[0] == [0, 2, 4, 100, 50, 5590, 5656, "5590"]
    assert [row[3] for row in rows] == [100, 200, 400, 800, 1600, 3200]
    assert rows[5][5:] == [5_210_304, 5_212_106, "4.8m"]
