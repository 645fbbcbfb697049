"""How small a trained network at 95 % sparsity becomes, and what rounding costs it."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import torch

from fewer.bench.sparse import Trained, trained
from fewer.packs.pack import load, write
from fewer.packs.trace.trace import trace


@pytest.fixture(scope="module")
def actor() -> Trained:
    return trained((17, 400, 300, 6), steps=400)


def packed(actor: Trained, path: Path, values: str) -> tuple[float, float]:
    """How many times smaller than torch's file, and the share of variance that is not explained."""
    program, tensors = trace(actor.net, [actor.inputs[:2]])
    masks = {name: mask.numpy() for name, mask in actor.masks.items()}
    length = write(path, program, tensors, masks=masks, values=values, calibration=[actor.inputs[:500].numpy()])
    buffer = io.BytesIO()
    torch.save(actor.net.state_dict(), buffer)
    return len(buffer.getvalue()) / length, actor.loss(load(path).predict(actor.inputs.numpy()))


def test_the_layers_keep_what_snip_keeps(actor: Trained) -> None:
    kept = [int(mask.sum()) for mask in actor.masks.values()]
    assert sum(kept) == round(0.05 * (17 * 400 + 400 * 300 + 300 * 6))
    assert 0.2 < kept[0] / 6800 < 0.4 and kept[1] / 120_000 < 0.04 and kept[2] / 1800 > 0.3


def test_files_are_as_small_as_promised_and_rounding_costs_next_to_nothing(actor: Trained, tmp_path: Path) -> None:
    exact, loss = packed(actor, tmp_path / "a.pack", "float32")
    half, loss_half = packed(actor, tmp_path / "b.pack", "float16")
    eighth, loss_eighth = packed(actor, tmp_path / "c.pack", "int8")
    assert exact > 18 and half > 30 and eighth > 45
    with torch.no_grad():
        assert loss == pytest.approx(actor.loss(actor.net(actor.inputs)), rel=1e-4)
    assert loss_half == pytest.approx(loss, rel=1e-3) and loss_eighth == pytest.approx(loss, rel=0.03)
