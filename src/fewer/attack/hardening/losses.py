"""Losses of hardening that need the scores themselves: TRADES and MART."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from fewer.attack.attack_loss import kl_divergence, logits_and_labels
from fewer.core.task import Nets, Noise, Task

__all__ = ["Pair", "mart", "trades"]

Pair = Callable[[Nets, Any, Any, Noise], Tensor]  # (nets, clean batch, attacked batch, noise) -> scalar


def trades(task: Task[Any], loss: Callable[[Nets, Any, Noise], Tensor], beta: float) -> Pair:
    """loss(x) + beta * KL(f(x) || f(x')) (Zhang et al. 2019, equation 5)."""
    both = logits_and_labels(task, "TRADES")

    def pair(nets: Nets, clean: Any, attacked: Any, noise: Noise) -> Tensor:
        before = F.log_softmax(both(nets, clean, noise)[0], 1)
        after = F.log_softmax(both(nets, attacked, noise)[0], 1)
        return loss(nets, clean, noise) + beta * kl_divergence(before, after).mean()

    return pair


def mart(task: Task[Any], beta: float) -> Pair:
    """BCE(x') + beta * KL(p || p') * (1 - p_y) (Wang et al. 2020, equation 11): weight goes where x is unsure."""
    both = logits_and_labels(task, "MART")

    def pair(nets: Nets, clean: Any, attacked: Any, noise: Noise) -> Tensor:
        scores, labels = both(nets, attacked, noise)
        before, after = F.log_softmax(both(nets, clean, noise)[0], 1), F.log_softmax(scores, 1)
        right = F.one_hot(labels, scores.shape[1]).to(torch.bool)
        runner_up = after.exp().masked_fill(right, 0.0).amax(1)
        # the small term keeps the logarithm finite when a wrong class takes all
        boosted = F.nll_loss(after, labels, reduction="none") - torch.log(1 - runner_up + 1e-4)
        unsure = 1 - before.exp().gather(1, labels[:, None])[:, 0]
        return (boosted + beta * kl_divergence(before, after) * unsure).mean()

    return pair
