"""What an attack increases, and its gradient there.

It returns, per sample, the value to increase and whether the sample is already fooled. Knowing both from one
forward pass is what lets an audit drop a fooled image at no cost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from fewer.core.abilities import Attackable, Classifier, ability
from fewer.core.task import Nets, Noise, Task

__all__ = [
    "AttackLoss",
    "cross_entropy",
    "divergence",
    "input_gradient",
    "kl_divergence",
    "logits_and_labels",
    "margin",
    "natural",
    "own",
    "wrong",
]

AttackLoss = Callable[[Nets, Any, Noise], tuple[Tensor, Tensor]]  # (nets, batch, noise) -> value, fooled; (batch,) each


def wrong(logits: Tensor, labels: Tensor) -> Tensor:
    """Samples whose best class is not the label's; a score that is not a number is no right answer."""
    return (logits.argmax(1) != labels) | logits.isnan().any(1)


def logits_and_labels(task: Task[Any], needed_by: str) -> Callable[[Nets, Any, Noise], tuple[Tensor, Tensor]]:
    """Scores and labels of a batch, of a task that must be a Classifier."""
    classifier = ability(task, Classifier, needed_by)

    def both(nets: Nets, batch: Any, noise: Noise) -> tuple[Tensor, Tensor]:
        return classifier.logits(nets, task.inputs(batch), noise), classifier.labels(batch)

    return both


def own(task: Task[Any]) -> AttackLoss:
    """The task's own attack loss; whether a sample is fooled is not known."""
    attackable = ability(task, Attackable, "an attack")

    def attack_loss(nets: Nets, batch: Any, noise: Noise) -> tuple[Tensor, Tensor]:
        value = attackable.attack_loss(nets, batch, noise)
        return value, torch.zeros_like(value, dtype=torch.bool)

    return attack_loss


def cross_entropy(task: Task[Any]) -> AttackLoss:
    """Cross-entropy of the label."""
    both = logits_and_labels(task, "an attack on the cross-entropy")

    def attack_loss(nets: Nets, batch: Any, noise: Noise) -> tuple[Tensor, Tensor]:
        logits, labels = both(nets, batch, noise)
        return F.cross_entropy(logits, labels, reduction="none"), wrong(logits, labels)

    return attack_loss


def natural(task: Task[Any]) -> AttackLoss:
    """Cross-entropy where the task has classes, which tells fooled samples for free; its own attack loss elsewhere."""
    return cross_entropy(task) if isinstance(task, Classifier) else own(task)


def margin(task: Task[Any]) -> AttackLoss:
    """Best wrong score less the label's: above zero is fooled."""
    both = logits_and_labels(task, "an attack on the margin")

    def attack_loss(nets: Nets, batch: Any, noise: Noise) -> tuple[Tensor, Tensor]:
        logits, labels = both(nets, batch, noise)
        right = labels[:, None] == torch.arange(logits.shape[1], device=labels.device)  # one_hot does not vmap
        others = logits.masked_fill(right, -torch.inf).amax(1)
        return others - logits.gather(1, labels[:, None])[:, 0], wrong(logits, labels)

    return attack_loss


def kl_divergence(before: Tensor, after: Tensor) -> Tensor:
    """KL(before || after) per sample, of log-probabilities."""
    return (before.exp() * (before - after)).sum(1)


def divergence(task: Task[Any], reference: Tensor) -> AttackLoss:
    """KL(reference || answer), what TRADES increases; `reference` holds log-probabilities of the clean batch."""
    both = logits_and_labels(task, "TRADES")

    def attack_loss(nets: Nets, batch: Any, noise: Noise) -> tuple[Tensor, Tensor]:
        logits, labels = both(nets, batch, noise)
        return kl_divergence(reference, F.log_softmax(logits, 1)), wrong(logits, labels)

    return attack_loss


def input_gradient(
    attack_loss: AttackLoss, nets: Nets, rebuild: Callable[[Tensor], Any], noise: Noise, perturbable: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradient of its sum at a perturbable input, its values there, and who is fooled there.

    `rebuild` makes a batch of a perturbable. The sum and not the mean: same direction, and no gradient underflows.
    """

    def total(x: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        value, fooled = attack_loss(nets, rebuild(x), noise)
        return value.sum(), (value, fooled)

    if torch._C._functorch.peek_interpreter_stack() is not None:
        with torch.no_grad():
            gradient, (value, fooled) = torch.func.grad(total, has_aux=True)(perturbable)
        return gradient, value, fooled
    # outside vmap, ordinary autograd gives the same numbers for 5 to 40 % less time (small networks gain most)
    with torch.enable_grad():
        leaf = perturbable.detach().requires_grad_()
        summed, (value, fooled) = total(leaf)
        (gradient,) = torch.autograd.grad(summed, leaf)
    return gradient, value.detach(), fooled
