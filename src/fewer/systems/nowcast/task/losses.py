"""What models descend: ours are means over pixels that a radar saw, finite also where none did or nothing fell.

The paper's own, `..._paper`, are as its code has them: what no radar saw counts as a logit of 0 that should have been
dry, Dice is taken sample by sample, and the IoU of a dry sample is 0 whatever is forecast.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

__all__ = ["CURED", "LOSSES", "cross_entropy", "dice_focal", "soft_iou", "valid_mean"]

_OTHERS, _THEIR_IOU = 0.1, 0.1  # as a share of the valid pixels, what other batches would add to a union; their IoU
_SMOOTH = 0.01  # share of the valid pixels; keeps Dice, and its gradient, alive where no rain fell at all
_FOCUS = 2.0  # exponent of the focal loss
_NEXT_TO_NOTHING = 1e-5  # MONAI's smoothing of Dice


def valid_mean(values: Tensor, valid: Tensor, axes: tuple[int, ...] | None = None) -> Tensor:
    """The mean over valid pixels, of all axes or of those given; 0 where no pixel is valid."""
    dims = tuple(range(values.ndim)) if axes is None else axes
    return (values * valid).sum(dims) / valid.sum(dims).clamp(min=1.0)


def cross_entropy(logits: Tensor, wet: Tensor, positive_weight: float) -> Tensor:
    """Per pixel: -(w y ln p + (1 - y) ln(1 - p)), from logits."""
    log_dry = -functional.softplus(logits)  # ln(1 - p)
    return -(positive_weight * wet * (log_dry + logits) + (1 - wet) * log_dry)


def _entropy_loss(logits: Tensor, wet: Tensor, valid: Tensor, positive_weight: float) -> Tensor:
    return valid_mean(cross_entropy(logits, wet, positive_weight), valid)


def soft_iou(logits: Tensor, wet: Tensor, valid: Tensor, positive_weight: float = 1.0) -> Tensor:
    """How far sum p y / sum (p + y - p y) is below the best it could be, pooled over the batch and over others.

    Sample by sample a dry one would give 1 whatever is forecast, and no gradient. A batch of few windows may be dry as
    well, so that others are pooled in, a tenth of the pixels with an IoU of a tenth: what always saying rain would
    have. With 1 instead, dry batches teach never to say rain, louder than wet ones contradict.
    """
    chance, wet = torch.sigmoid(logits) * valid, wet * valid
    both, fallen, others = (chance * wet).sum(), wet.sum(), _OTHERS * valid.sum().clamp(min=1.0)

    def pooled(hits: Tensor, union: Tensor) -> Tensor:
        return (hits + _THEIR_IOU * others) / (union + others)

    return pooled(fallen, fallen) - pooled(both, chance.sum() + fallen - both)


def dice_focal(logits: Tensor, wet: Tensor, valid: Tensor, positive_weight: float) -> Tensor:
    """Dice pooled over the batch, plus cross entropy that forgets pixels which are already right."""
    chance = torch.sigmoid(logits)
    both, smooth = (chance * wet * valid).sum(), _SMOOTH * valid.sum().clamp(min=1.0)
    total = (chance * valid).sum() + (wet * valid).sum()
    focal = valid_mean(_focused(chance, wet) * cross_entropy(logits, wet, positive_weight), valid)
    return 1 - (2 * both + smooth) / (total + smooth) + focal


def _focused(chance: Tensor, wet: Tensor) -> Tensor:
    """(1 - the probability given to what happened) to the power of the focal loss."""
    return (chance + wet - 2 * chance * wet).pow(_FOCUS)


def _entropy_loss_paper(logits: Tensor, wet: Tensor, valid: Tensor, positive_weight: float) -> Tensor:
    """The starter kit's: ln 2 for every pixel that no radar saw, which only scales the gradient of the others."""
    return cross_entropy(logits * valid, wet * valid, positive_weight).mean()


def _soft_iou_paper(logits: Tensor, wet: Tensor, valid: Tensor, positive_weight: float = 1.0) -> Tensor:
    """1 - sum p y / sum (p + y - p y), sample by sample; a dry sample costs 1 and teaches nothing."""
    chance, wet = torch.sigmoid(logits) * valid, wet * valid
    axes = tuple(range(1, wet.ndim))
    both, union = (chance * wet).sum(axes), (chance + wet - chance * wet).sum(axes)
    return 1 - (both / torch.where(union > 0, union, 1.0)).mean()


def _dice_focal_paper(logits: Tensor, wet: Tensor, valid: Tensor, positive_weight: float) -> Tensor:
    """MONAI's DiceFocalLoss(sigmoid=True, focal_weight=[w]): the weight is on the whole focal part, not on rain."""
    logits, wet = logits * valid, wet * valid
    chance, axes = torch.sigmoid(logits), tuple(range(1, wet.ndim))
    both, total = (chance * wet).sum(axes), (chance + wet).sum(axes)
    dice = 1 - (2 * both + _NEXT_TO_NOTHING) / (total + _NEXT_TO_NOTHING)
    return dice.mean() + positive_weight * (_focused(chance, wet) * cross_entropy(logits, wet, 1.0)).mean()


CURED: dict[str, Callable[[Tensor, Tensor, Tensor, float], Tensor]] = {
    "bce": _entropy_loss,
    "dice_focal": dice_focal,
    "iou": soft_iou,
}
LOSSES = CURED | {
    "bce_paper": _entropy_loss_paper,
    "dice_focal_paper": _dice_focal_paper,
    "iou_paper": _soft_iou_paper,
}
