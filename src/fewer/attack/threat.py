"""Attacks by name, as the command line writes them, and the suite whose worst case is what "robust" means.

A threat is an attack that has been chosen but not yet aimed at a task.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fewer.attack import attack_loss as attack_losses
from fewer.attack.attacks.apgd import apgd, apgd_targeted
from fewer.attack.attacks.fab import fab_targeted
from fewer.attack.attacks.fgsm import fgsm
from fewer.attack.attacks.pgd import default_step, pgd
from fewer.attack.attacks.square import square
from fewer.attack.attacks.starts import STARTS
from fewer.attack.ball import checked_budget, checked_norm
from fewer.attack.iteration import Attack
from fewer.attack.text import split_text
from fewer.core.errors import UserError
from fewer.core.task import Task

__all__ = ["OPTIONS", "Threat", "parse", "suite"]

OPTIONS: dict[str, dict[str, type]] = {
    "fgsm": {"norm": float},
    "pgd": {"steps": int, "step": float, "restarts": int, "norm": float, "start": str, "last": float},
    "apgd": {"steps": int, "restarts": int, "norm": float},
    "apgd-t": {"steps": int, "targets": int, "norm": float},
    "fab-t": {"steps": int, "targets": int, "norm": float},
    "square": {"queries": int, "norm": float},
    "suite": {"queries": int, "norm": float},
}


@dataclass(frozen=True)
class Threat:
    """One attack at one budget; `options` are keyword arguments of the attack's own function."""

    kind: str
    budget: float
    norm: float = math.inf
    options: dict[str, Any] = field(default_factory=dict)
    every: bool = False  # faces every image, also those fooled before, because its own number is asked for

    def __post_init__(self) -> None:
        checked_budget(self.budget), checked_norm(self.norm)
        for name, value in self.options.items():
            if name not in OPTIONS.get(self.kind, {}):
                raise UserError(f"option {name} of {self.kind}", f"one of {', '.join(OPTIONS[self.kind])}")
            if name == "start" and value not in STARTS:
                raise UserError(f"start {value!r} of {self.kind}", f"one of {', '.join(STARTS)}")
            if name != "start" and not value > 0:
                raise UserError(f"{name} {value} of {self.kind}", "more than 0")

    def on(self, task: Task[Any]) -> Attack:
        """The attack on a task: of a classifier on its cross-entropy, of any other task on its attack_loss."""
        options, norm = self.options, self.norm
        builders: dict[str, Callable[[], Attack]] = {
            "fgsm": lambda: fgsm(task, self.budget, norm=norm, attack_loss=attack_losses.natural(task)),
            "pgd": lambda: pgd(task, self.budget, norm=norm, attack_loss=attack_losses.natural(task), **options),
            "apgd": lambda: apgd(task, self.budget, norm=norm, **options),
            "apgd-t": lambda: apgd_targeted(task, self.budget, norm=norm, **options),
            "fab-t": lambda: fab_targeted(task, self.budget, norm=norm, **options),
            "square": lambda: square(task, self.budget, norm=norm, **options),
        }
        return builders[self.kind]()

    @property
    def title(self) -> str:
        """The name that stands beside each number, such as `PGD-100 x 10, L-inf 0.3, step 0.01`."""
        ball = f"L-inf {self.budget:g}" if self.norm == math.inf else f"L2 {self.budget:g}"
        options, steps = self.options, self.options.get("steps", 40 if self.kind == "pgd" else 100)
        if self.kind == "pgd":
            step = options.get("step", default_step(self.budget, steps))
            times = f" x {options['restarts']}" if options.get("restarts", 1) > 1 else ""
            begin = options.get("start", "uniform")
            start = {"uniform": "", "centre": ", no random start"}.get(begin, f", {begin} start")
            fall = f" to {options['last']:g}" if "last" in options else ""
            return f"PGD-{steps}{times}, {ball}, step {step:g}{fall}{start}"
        names = {
            "fgsm": "FGSM",
            "apgd": f"APGD-CE-{steps}" + (f" x {options['restarts']}" if options.get("restarts", 1) > 1 else ""),
            "apgd-t": f"APGD-T-{steps} ({options.get('targets', 9)} targets, DLR)",
            "fab-t": f"FAB-T-{steps} ({options.get('targets', 9)} targets)",
            "square": f"Square ({options.get('queries', 5000)} queries)",
        }
        return f"{names[self.kind]}, {ball}"


def suite(budget: float, *, norm: float = math.inf, queries: int = 5000) -> tuple[Threat, ...]:
    """FGSM, PGD-40, PGD-100 x 10 and the four parts of AutoAttack's standard version."""
    return (
        Threat("fgsm", budget, norm, every=True),
        Threat("pgd", budget, norm, {"steps": 40, "step": budget / 30} if budget else {"steps": 40}, every=True),
        Threat("pgd", budget, norm, {"steps": 100, "restarts": 10}),
        Threat("apgd", budget, norm),
        Threat("apgd-t", budget, norm),
        Threat("fab-t", budget, norm),
        Threat("square", budget, norm, {"queries": queries}),
    )


def parse(text: str) -> tuple[Threat, ...]:
    """Attacks of a text such as `pgd:0.3`, `pgd:0.3,steps=100,restarts=10,norm=2`, `suite:0.3`; several with `+`.

    >>> [threat.title for threat in parse("fgsm:0.1+pgd:0.3,steps=100,restarts=10,step=0.01")]
    ['FGSM, L-inf 0.1', 'PGD-100 x 10, L-inf 0.3, step 0.01']
    """
    threats: list[Threat] = []
    for part in text.split("+"):
        name, budget, options = split_text(part, OPTIONS, "pgd:0.3 or suite:0.3")
        norm = checked_norm(options.pop("norm", math.inf))
        if name == "suite":
            threats.extend(suite(budget, norm=norm, queries=int(options.get("queries", 5000))))
        else:
            threats.append(Threat(name, budget, norm, dict(options), every=True))
    return tuple(threats)
