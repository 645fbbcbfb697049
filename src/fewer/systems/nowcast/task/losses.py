"""What models descend: every loss a mean over pixels that a radar saw, finite also where none did or nothing fell."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

__all__ = ["LOSSES", "cross_entropy", "dice_focal", "soft_iou", "valid_mean"]

_OTHERS, _THEIR_IOU = 0.1, 0.1  # as a share of the valid pixels, what other batches would add to a union; their IoU
_SMOOTH = 0.01  # share of the valid pixels; keeps Dice, and its gradient, alive where no rain fell at all
_FOCUS = 2.0  # exponent of the focal loss


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
    wrong = chance + wet - 2 * chance * wet  # 1 - the probability given to what happened
    focal = valid_mean(wrong.pow(_FOCUS) * cross_entropy(logits, wet, positive_weight), valid)
    return 1 - (2 * both + smooth) / (total + smooth) + focal


LOSSES: dict[str, Callable[[Tensor, Tensor, Tensor, float], Tensor]] = {
    "bce": _entropy_loss,
    "dice_focal": dice_focal,
    "iou": soft_iou,
}
