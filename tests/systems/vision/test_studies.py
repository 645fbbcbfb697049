"""The vision studies run end to end at a tiny size; their numbers are in range and their pictures are drawn."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
import torch

from fewer.studies.order import Order
from fewer.studies.pieces import silent
from fewer.studies.study import Result
from fewer.systems.vision.studies import (
    boundaries as vision_boundaries,
)
from fewer.systems.vision.studies import (
    features as vision_features,
)
from fewer.systems.vision.studies.light import rivals as vision_rivals
from fewer.systems.vision.studies.light import shrink as vision_shrink
from fewer.systems.vision.studies.place import Place
from fewer.systems.vision.task.networks import Normalise, mlp
from fewer.systems.vision.task.task import Settings, Vision
from tests.systems.vision.small import digits_file


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Three hundred digits to train with and sixty to test, small enough for a study in seconds."""
    return digits_file(tmp_path_factory.mktemp("few"), 300, 60)


def shorten(monkeypatch, module, name: str, few: str, out: Path) -> None:
    """Two steps of eight images for each of the study's trainings."""
    pieces = {
        key: dataclasses.replace(piece, steps=2, batch=8, hardening=piece.hardening and "fgsm:0.3,ramp=0")
        for key, piece in getattr(module, name)("quick").items()
    }
    monkeypatch.setattr(module, name, lambda scale: pieces)
    monkeypatch.setattr(module, "where", lambda *_: Place(out, few, limit=30, log=silent))


def whole(result: Result, out: Path) -> None:
    """Rows fit the columns, everything is JSON, every figure is a picture."""
    assert all(len(row) == len(result.columns) for row in result.rows)
    json.dumps(result.record(), allow_nan=False)
    assert result.figures and all(content.startswith(b"\x89PNG") for content in result.figures.values())
    assert not list(out.glob("*.png")), "figures are written with their table, by reproduce"


def test_figures_five_to_eight_are_measured_and_drawn(monkeypatch, few: str, tmp_path: Path) -> None:
    shorten(monkeypatch, vision_features, "feature_pieces", few, tmp_path)
    monkeypatch.setitem(vision_features.SAMPLES, "quick", 20)
    monkeypatch.setattr(vision_features, "REACHES", {"10 x 0.05": vision_features.Reach(step=0.1, steps=1)})
    result = vision_features.features(Order("vision/fig5-8", "quick", tmp_path, silent))
    whole(result, tmp_path)
    assert len(result.rows) == 5
    for (numbers,) in result.details.values():
        robust = torch.tensor(numbers["robust"]["10 x 0.05"]["robust_raw"])
        assert (robust <= torch.tensor(numbers["raw"])).all()
        assert len(robust) == 100


def test_boundaries_are_drawn_for_both_networks(monkeypatch, few: str, tmp_path: Path) -> None:
    shorten(monkeypatch, vision_boundaries, "boundary_pieces", few, tmp_path)
    monkeypatch.setitem(vision_boundaries.IMAGES, "quick", 12)
    monkeypatch.setattr(vision_boundaries, "_SIDE", 7)
    result = vision_boundaries.boundaries(Order("vision/fig4", "quick", tmp_path, silent))
    whole(result, tmp_path)
    assert [row[0] for row in result.rows[1:]] == ["standard", "hardened"]


def test_a_slice_shows_the_image_at_its_centre_and_the_fgsm_example_at_its_corner() -> None:
    task = Vision(Settings(network="mlp", classes="3,7"))
    torch.manual_seed(0)
    net = mlp((20,), task.shape, 2).requires_grad_(True)
    net.normalise = Normalise(
        torch.tensor([0.1]), torch.tensor([0.02])
    )  # steep, so that the plane is not all one class
    batch = task.data("test").take(torch.arange(12))
    maps = vision_boundaries.slices(task, {"net": net}, batch)
    middle = vision_boundaries._SIDE // 2
    with torch.no_grad():
        assert maps[:, middle, middle].equal(net(batch.pixels).argmax(1))
    pixels = batch.pixels.clone().requires_grad_(True)
    (slope,) = torch.autograd.grad(torch.nn.functional.cross_entropy(net(pixels), batch.label, reduction="sum"), pixels)
    corner = (batch.pixels + vision_boundaries._REACH * slope.sign()).clamp(0, 1)
    with torch.no_grad():
        assert maps[:, -1, -1].equal(net(corner).argmax(1))
    assert len(maps.unique()) == 2


def test_the_measures_of_a_slice_are_those_of_a_square_drawn_by_hand() -> None:
    side, reach = vision_boundaries._SIDE, vision_boundaries._REACH
    line = torch.linspace(-reach, reach, side)
    maps = (line[None] > 0.2).long().expand(1, side, side)  # class 0 up to a = 0.2, class 1 beyond
    kept, distance = vision_boundaries._measured(maps, torch.tensor([0]))
    inside = line[line.abs() <= 0.3 + 1e-6]
    assert kept == pytest.approx((inside <= 0.2).float().mean().item())
    assert distance == pytest.approx(float(line[line > 0.2][0]))


def test_shrinking_compares_all_measures_at_equal_sizes(monkeypatch, few: str, tmp_path: Path) -> None:
    base = dataclasses.replace(vision_shrink.shrink_base("quick"), steps=3, batch=8, hardening="fgsm:0.3,ramp=0")
    monkeypatch.setattr(vision_shrink, "shrink_base", lambda scale: base)
    monkeypatch.setattr(vision_shrink, "where", lambda *_: Place(tmp_path, few, limit=30, log=silent))
    monkeypatch.setitem(vision_shrink.SHORT, "quick", (1, 10))
    monkeypatch.setattr(vision_rivals, "LEAST", 30)
    result = vision_shrink.shrinking(Order("vision/shrink", "quick", tmp_path, silent))
    whole(result, tmp_path)
    assert [row[0] for row in result.rows] == [100, 50, 30]
    assert [row[1] for row in result.rows] == [36 + 288 + 210 * features for features in (100, 50, 30)]
