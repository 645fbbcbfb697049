"""Which wrong classes a targeted attack tries, and what it increases towards one of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from fewer.attack.attack_loss import AttackLoss, wrong
from fewer.core.task import Nets, Noise

__all__ = ["count_targets", "lead", "ratio", "targets_of"]

Scores = Callable[[Nets, Any, Noise], tuple[Tensor, Tensor]]  # logits and labels of a batch


def count_targets(logits: Tensor, wanted: int) -> int:
    """How many wrong classes there are to try."""
    return min(wanted, logits.shape[1] - 1)


def targets_of(logits: Tensor, labels: Tensor, wanted: int) -> Tensor:
    """(batch, targets): the likeliest wrong classes, best first."""
    right = F.one_hot(labels, logits.shape[1]).to(torch.bool)
    return logits.masked_fill(right, -torch.inf).topk(count_targets(logits, wanted), dim=1).indices


def _pair(logits: Tensor, labels: Tensor, target: Tensor) -> Tensor:
    """The target's score less the label's."""
    return (logits.gather(1, target[:, None]) - logits.gather(1, labels[:, None]))[:, 0]


def lead(both: Scores, target: Tensor) -> AttackLoss:
    """The target's lead over the label."""

    def attack_loss(nets: Nets, batch: Any, noise: Noise) -> tuple[Tensor, Tensor]:
        logits, labels = both(nets, batch, noise)
        return _pair(logits, labels, target), wrong(logits, labels)

    return attack_loss


def ratio(both: Scores, target: Tensor) -> AttackLoss:
    """Targeted difference-of-logits ratio: the lead over z_1 - (z_3 + z_4) / 2, blind to the scale of the logits.

    With fewer than four classes there is no such spread, and the lead itself is taken.
    """

    def attack_loss(nets: Nets, batch: Any, noise: Noise) -> tuple[Tensor, Tensor]:
        logits, labels = both(nets, batch, noise)
        gap, fooled = _pair(logits, labels, target), wrong(logits, labels)
        if logits.shape[1] < 4:
            return gap, fooled
        z = logits.topk(4, dim=1).values
        return gap / (z[:, 0] - (z[:, 2] + z[:, 3]) / 2 + 1e-12), fooled

    return attack_loss
