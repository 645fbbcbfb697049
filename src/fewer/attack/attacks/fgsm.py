"""The fast gradient (sign) method."""

from __future__ import annotations

import math
from typing import Any

from fewer.attack.attack_loss import AttackLoss
from fewer.attack.attacks.pgd import pgd
from fewer.attack.ball import Budget
from fewer.attack.iteration import Attack
from fewer.core.task import Task

__all__ = ["fgsm"]


def fgsm(task: Task[Any], budget: Budget, *, norm: float = math.inf, attack_loss: AttackLoss | None = None) -> Attack:
    """x' = clip(x + budget * sign(gradient)): one step of PGD that reaches the edge (Goodfellow et al. 2015)."""
    return pgd(task, budget, steps=1, step=budget, norm=norm, start="centre", attack_loss=attack_loss)
