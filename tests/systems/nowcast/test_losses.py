"""Losses by hand: means over valid pixels, finite on dry and on blind samples, with gradients the right way."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from fewer.core.seed import Stream
from fewer.systems.nowcast.task.augment import turned
from fewer.systems.nowcast.task.losses import CURED, LOSSES, cross_entropy, soft_iou, valid_mean
from fewer.systems.nowcast.task.windows import FACTOR, LEADS, SEEN, Windows, center

torch.set_num_threads(1)


def example(seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Logits, wet and valid of three samples, a quarter of the pixels blind."""
    torch.manual_seed(seed)
    shape = (3, 4, 6, 6)
    return (
        torch.randn(shape, dtype=torch.float64),
        (torch.rand(shape) < 0.3).double(),
        (torch.rand(shape) < 0.75).double(),
    )


def test_cross_entropy_is_torchs_and_survives_large_logits() -> None:
    logits, wet, _ = example()
    expected = functional.binary_cross_entropy_with_logits(
        logits, wet, pos_weight=torch.tensor(2.5).double(), reduction="none"
    )
    assert torch.allclose(cross_entropy(logits, wet, 2.5), expected, rtol=0, atol=1e-12)
    far = torch.tensor([500.0, -500.0])
    assert torch.equal(cross_entropy(far, torch.tensor([0.0, 1.0]), 1.0), torch.tensor([500.0, 500.0]))


@pytest.mark.parametrize("name", LOSSES)
def test_what_no_radar_saw_changes_nothing(name: str) -> None:
    """The starter kit set such logits to 0 and still counted them, ln 2 each."""
    logits, wet, valid = example()
    changed = torch.where(valid > 0, logits, 37.0), torch.where(valid > 0, wet, 1 - wet)
    assert float(LOSSES[name](logits, wet, valid, 2.5)) == pytest.approx(float(LOSSES[name](*changed, valid, 2.5)))


def test_the_mean_is_over_valid_pixels() -> None:
    logits, wet, valid = example()
    chosen = cross_entropy(logits, wet, 2.5)[valid > 0]
    assert float(LOSSES["bce"](logits, wet, valid, 2.5)) == pytest.approx(float(chosen.mean()))
    each = valid_mean(wet, valid, (1, 2, 3))
    assert float(each[1]) == pytest.approx(float(wet[1][valid[1] > 0].mean()))


@pytest.mark.parametrize("name", CURED)
@pytest.mark.parametrize("blind", [False, True], ids=["dry", "blind"])
def test_dry_and_blind_batches_give_finite_losses_and_gradients(name: str, blind: bool) -> None:
    logits = torch.zeros(2, 4, 6, 6, requires_grad=True)
    valid = torch.zeros(2, 4, 6, 6) if blind else torch.ones(2, 4, 6, 6)
    loss = LOSSES[name](logits, torch.zeros(2, 4, 6, 6), valid, 2.5)
    (gradient,) = torch.autograd.grad(loss, logits)
    assert math.isfinite(loss.item()) and bool(torch.isfinite(gradient).all())
    # where it was dry everything pushes towards no rain; where nobody looked nothing is pushed
    assert bool((gradient == 0).all()) if blind else bool((gradient > 0).all())


def test_a_dry_sample_beside_a_wet_one_still_learns_that_it_is_dry() -> None:
    logits = torch.zeros(2, 1, 8, 8, requires_grad=True)
    wet = torch.zeros(2, 1, 8, 8)
    wet[0] = 1.0
    (gradient,) = torch.autograd.grad(soft_iou(logits, wet, torch.ones_like(wet)), logits)
    assert bool((gradient[0] < 0).all()) and bool((gradient[1] > 0).all())
    assert float(gradient[1].mean()) > 0.1 * -float(gradient[0].mean())


@pytest.mark.parametrize("name", CURED)
def test_a_perfect_forecast_costs_nothing_and_its_opposite_much(name: str) -> None:
    _, wet, valid = example()
    right = (2 * wet - 1) * 30
    assert float(LOSSES[name](right, wet, valid, 2.5)) < 1e-9
    # of what IoU could reach a part is others', pooled in
    assert float(LOSSES[name](-right, wet, valid, 2.5)) > (0.7 if name == "iou" else 0.9)


def test_soft_iou_of_certain_forecasts_is_what_the_iou_lacks_with_others_pooled_in() -> None:
    wet = torch.zeros(1, 1, 40, 40)
    wet[..., :20] = 1
    logits = torch.full_like(wet, -40.0)
    logits[..., 10:30] = 40.0
    others = 0.1 * wet.numel()
    expected = (800 + 0.1 * others) / (800 + others) - (400 + 0.1 * others) / (1200 + others)
    assert float(soft_iou(logits, wet, torch.ones_like(wet))) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("chance", [0.01, 0.05, 0.3])
def test_a_dry_batch_does_not_drown_what_a_wet_one_teaches(chance: float) -> None:
    """Or a model trained on IoU ends up never saying rain."""
    pushes = []
    for share in (0.0, 0.3):
        logits = torch.full((4, 1, 10, 10), math.log(chance / (1 - chance)), requires_grad=True)
        wet = torch.zeros(4, 1, 10, 10)
        wet[:, :, : int(10 * share)] = 1.0
        pushes.append(float(torch.autograd.grad(soft_iou(logits, wet, torch.ones_like(wet)), logits)[0].sum()))
    dry, rainy = pushes
    assert dry > 0 > rainy and dry < 2 * -rainy


@pytest.mark.parametrize("name", ["bce_paper", "dice_focal_paper", "iou_paper"])
@pytest.mark.parametrize("blind", [False, True], ids=["dry", "blind"])
def test_the_papers_losses_are_finite_too_and_dry_samples_teach_nothing_about_iou(name: str, blind: bool) -> None:
    logits = torch.zeros(2, 4, 6, 6, requires_grad=True)
    valid = torch.zeros(2, 4, 6, 6) if blind else torch.ones(2, 4, 6, 6)
    loss = LOSSES[name](logits, torch.zeros(2, 4, 6, 6), valid, 2.5)
    (gradient,) = torch.autograd.grad(loss, logits)
    assert math.isfinite(loss.item()) and bool(torch.isfinite(gradient).all())
    assert bool((gradient == 0).all()) is (blind or name == "iou_paper")


def test_the_papers_cross_entropy_counts_what_no_radar_saw_as_ln_2() -> None:
    logits, wet, valid = example()
    whole = functional.binary_cross_entropy_with_logits(
        logits * valid, wet * valid, pos_weight=torch.tensor(2.577389).double()
    )
    assert float(LOSSES["bce_paper"](logits, wet, valid, 2.577389)) == pytest.approx(float(whole))
    unseen = float(1 - valid.mean())
    rest = float(LOSSES["bce"](logits, wet, valid, 2.577389)) * (1 - unseen)
    assert float(whole) == pytest.approx(rest + unseen * math.log(2))


def test_the_papers_iou_loss_is_a_mean_over_samples_and_ours_is_pooled() -> None:
    logits, wet, valid = example()
    chance, fell = torch.sigmoid(logits) * valid, wet * valid
    each = [float((p * y).sum() / (p + y - p * y).sum()) for p, y in zip(chance, fell)]
    assert float(LOSSES["iou_paper"](logits, wet, valid, 1.0)) == pytest.approx(1 - sum(each) / 3)


def test_the_papers_dice_and_focal_loss_is_monais() -> None:
    monai = pytest.importorskip("monai.losses")
    logits, wet, valid = (part.float() for part in example())
    volume, fell = (logits * valid)[:, None], (wet * valid)[:, None]  # one channel, as theirs
    theirs = monai.DiceLoss(sigmoid=True)(volume, fell) + 2.577389 * monai.FocalLoss()(volume, fell)
    assert float(LOSSES["dice_focal_paper"](logits, wet, valid, 2.577389)) == pytest.approx(float(theirs), rel=1e-5)


def test_turns_keep_both_grids_registered() -> None:
    """A marked satellite pixel and the 36 radar pixels below it stay above each other, in all eight turns."""
    size, count = 36, 64
    satellite, rate = torch.zeros(count, SEEN, 2, size, size), torch.zeros(count, LEADS, size, size)
    row, column = 0, 4
    inner = center(size).start
    satellite[:, :, :, inner + row, inner + column] = 1
    rate[:, :, FACTOR * row : FACTOR * (row + 1), FACTOR * column : FACTOR * (column + 1)] = 1
    batch = Windows(satellite, satellite[:, :, 0], rate, rate.clone(), torch.arange(count))
    made = turned(batch, Stream(torch.tensor(0), torch.tensor(0)))
    above = made.satellite[:, 0, 0, center(size), center(size)]
    below = functional.avg_pool2d(made.rate[:, :1], FACTOR)[:, 0]
    assert torch.equal(above, below)
    assert torch.equal(made.rate, made.valid) and torch.equal(made.missing[:, 0], made.satellite[:, 0, 0])
    assert len(above.flatten(1).argmax(1).unique()) == 8
    assert torch.equal(made.place, batch.place)
