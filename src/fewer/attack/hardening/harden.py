"""Adversarial training as composition: a task whose losses see attacked batches.

Nothing else about the task changes, so a hardened task trains, prunes, packs and votes like any other, and SNIP or
GraSP on it score with attacked inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from fewer.attack import attack_loss as attack_losses
from fewer.attack.attacks.pgd import PGDSettings, ascent
from fewer.attack.ball import Bounds, Budget
from fewer.attack.hardening.losses import mart, trades
from fewer.attack.hardening.recipe import Hardening, parse_harden
from fewer.attack.iteration import Attack
from fewer.core.abilities import Attackable, Variant, ability, perturbable_input
from fewer.core.engines.nets import frozen
from fewer.core.errors import UserError
from fewer.core.task import Nets, Noise, Objective, Task

__all__ = ["Hardened", "harden", "ramped"]

Loss = Callable[[Nets, Any, Noise], Tensor]
Craft = Callable[[Nets, Any, Noise], Attack]  # the attack on one step's batch, at that step's budget


def harden(task: Task[Any], recipe: Hardening | str, *, total: int | None = None) -> Hardened:
    """The task with every objective's loss taken on batches attacked through the task's attack loss.

    `total` is the number of training steps, which a budget ramp needs. Attacked batches are made with the current
    weights in eval mode and carry no gradient.
    """
    settings = parse_harden(recipe) if isinstance(recipe, str) else recipe
    perturbable_input(ability(task, Attackable, "hardening"), task.data("train").take(torch.arange(1)))
    if settings.ramp > 0 and not total:
        raise UserError(
            f"a budget ramp over {settings.ramp:g} of an unknown number of steps",
            "the total number of training steps",
            "pass total= to harden, or ramp=0",
        )
    return Hardened(task, settings, total or 0)


class Hardened(Variant):
    """A task whose objectives are those of another on attacked batches."""

    def __init__(self, task: Task[Any], settings: Hardening, total: int) -> None:
        super().__init__(task)
        self.attacked = tuple(
            replace(objective, loss=_hardened(self.task, objective.bare, settings, total))
            for objective in self.task.objectives()
        )

    def objectives(self) -> tuple[Objective[Any], ...]:
        return self.attacked


def ramped(settings: Hardening, total: int, noise: Noise) -> Budget:
    """Share of the budget at this step: a straight line from 0 to 1 over the first `ramp` of the training.

    Before the first step, where pruning scores weights (step -1), it is the whole budget.
    """
    if settings.ramp == 0:
        return 1.0
    step = noise.step.to(torch.float64)
    return torch.where(step < 0, 1.0, (step / (settings.ramp * total)).clamp(max=1.0))


def _hardened(task: Task[Any], loss: Loss, settings: Hardening, total: int) -> Loss:
    craft = _craft(task, settings, total)
    if settings.kind == "free":
        attacked = _replayed(loss, craft)
    elif settings.kind in ("trades", "mart"):
        pair = trades(task, loss, settings.beta) if settings.kind == "trades" else mart(task, settings.beta)
        return lambda nets, batch, noise: pair(nets, batch, craft(nets, batch, noise)(nets, batch, noise), noise)
    else:

        def attacked(nets: Nets, batch: Any, noise: Noise) -> Tensor:
            return loss(nets, craft(nets, batch, noise)(nets, batch, noise), noise)

    if settings.mix == 1:
        return attacked

    def mixed(nets: Nets, batch: Any, noise: Noise) -> Tensor:
        return settings.mix * attacked(nets, batch, noise) + (1 - settings.mix) * loss(nets, batch, noise)

    return mixed


def _replayed(loss: Loss, craft: Craft) -> Loss:
    """Free adversarial training (Shafahi et al. 2019) without its hidden state.

    The original replays a batch m times and carries one perturbation through all replays and batches. A loss is a
    pure function here, so the m replays are one step: each moves the perturbation once, and the weights descend the
    mean of the m losses met on the way.
    """

    def replayed(nets: Nets, batch: Any, noise: Noise) -> Tensor:
        attack = craft(nets, batch, noise)
        visited: list[Tensor] = []
        attack.last(nets, batch, noise, visit=lambda state: visited.append(state.memory["x"]))
        losses = [loss(nets, attack.task.replace(batch, x), noise) for x in visited]
        return torch.stack(losses).mean()

    return replayed


def _craft(task: Task[Any], settings: Hardening, total: int) -> Craft:
    kind, attackable = settings.kind, ability(task, Attackable, "hardening")
    start = {"fgsm": "centre", "pgd": settings.start, "trades": "near", "mart": "near"}.get(kind, "uniform")
    steps = 1 if kind in ("fgsm", "fast") else settings.steps
    path = PGDSettings(settings.budget, steps, settings.stride, norm=settings.norm, start=start, last=settings.last)
    bounds = Bounds(attackable)
    usual = attack_losses.margin(task) if settings.attack_loss == "margin" else attack_losses.own(task)
    both = attack_losses.logits_and_labels(task, kind) if kind in ("trades", "mart") else None

    def craft(nets: Nets, batch: Any, noise: Noise) -> Attack:
        attack_loss = usual
        if kind == "trades" and both is not None:
            with torch.no_grad():
                attack_loss = attack_losses.divergence(task, F.log_softmax(both(frozen(nets), batch, noise)[0], 1))
        share = ramped(settings, total, noise)
        last = None if path.last is None else path.last * share
        scaled = replace(path, budget=path.budget * share, step=path.step * share, last=last)
        return ascent(attackable, bounds, scaled, attack_loss)

    return craft
