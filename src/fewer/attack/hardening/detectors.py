"""Two failures of adversarial training that a good-looking number hides, each said in a sentence.

Both return None when all is well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor

__all__ = ["overfitting", "plateau"]

PATIENCE = 300  # steps
TOLERANCE = 0.02  # nats
GAP = 0.2  # between FGSM and PGD accuracy
LOST = 0.05  # a PGD accuracy that is as good as none


def plateau(losses: Sequence[float], classes: int, predictions: Tensor | None = None) -> str | None:
    """The constant-output plateau: loss at ln(classes) for more than 300 steps, or one class for every input.

    `losses` are those of the latest training steps, `predictions` classes or scores of a varied batch.
    """
    chance = math.log(classes)
    tail = list(losses)[-(PATIENCE + 1) :]
    if len(tail) > PATIENCE and all(abs(loss - chance) <= TOLERANCE for loss in tail):
        return (
            f"the loss has stood at {tail[-1]:.2f}, which is guessing among {classes} classes (ln {classes} = "
            f"{chance:.2f}), for more than {PATIENCE} steps: the budget grew before the network had learnt anything; "
            "use a ramp (ramp=0.5), a smaller budget or Adam"
        )
    if predictions is not None and len(predictions) > 1 and classes > 1:
        chosen = predictions.argmax(1) if predictions.ndim == 2 else predictions
        if bool((chosen == chosen[0]).all()):
            return (
                f"all {len(chosen)} inputs are given class {int(chosen[0])}: the network's answer is constant; "
                "use a ramp (ramp=0.5), a smaller budget or Adam"
            )
    return None


def overfitting(fgsm: float, pgd: float) -> str | None:
    """Catastrophic overfitting: accuracies (shares) under FGSM and under PGD at the same budget, far apart."""
    if fgsm - pgd <= GAP:
        return None
    if pgd <= LOST:
        return (
            f"{fgsm:.0%} under FGSM but {pgd:.0%} under PGD: the network has learnt to fool FGSM and is not robust "
            "(catastrophic overfitting); harden with pgd, or with fast and a ramp, and go back to an earlier state"
        )
    return (
        f"{fgsm:.0%} under FGSM but only {pgd:.0%} under PGD: FGSM overstates this network's robustness; "
        "harden with pgd and report the PGD number"
    )
