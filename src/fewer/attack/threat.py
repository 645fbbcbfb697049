"""Attacks by name, as the command line writes them, and the suite whose worst case is what "robust" means.

A threat is an attack that has been chosen but not yet aimed at a task.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fewer.attack import attack_loss as attack_losses
from fewer.attack.attacks import ATTACKS, OPTIONS
from fewer.attack.attacks.pgd import default_step
from fewer.attack.attacks.starts import STARTS
from fewer.attack.ball import checked_budget, checked_norm
from fewer.attack.iteration import Attack
from fewer.attack.text import split_text
from fewer.core.errors import UserError
from fewer.core.system import imported
from fewer.core.task import Task

__all__ = ["Threat", "parse", "suite"]


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
        function: Callable[..., Attack] = imported(ATTACKS[self.kind].place)
        takes_loss = "attack_loss" in inspect.signature(function).parameters
        loss = {"attack_loss": attack_losses.natural(task)} if takes_loss else {}
        return function(task, self.budget, norm=self.norm, **self.options, **loss)

    @property
    def title(self) -> str:
        """The name that stands beside each number, such as `PGD-100 x 10, L-inf 0.3, step 0.01`."""
        kind = ATTACKS[self.kind]
        parameters = inspect.signature(imported(kind.place)).parameters
        said = {name: self.options.get(name, parameters[name].default) for name in kind.options}
        times = f" x {said['restarts']}" if said.get("restarts", 1) > 1 else ""
        ball = f"L-inf {self.budget:g}" if self.norm == math.inf else f"L2 {self.budget:g}"
        step = self._steps_in_words(said) if "step" in said else ""
        return f"{kind.title.format(times=times, **said)}, {ball}{step}"

    def _steps_in_words(self, said: dict[str, Any]) -> str:
        """Their length, what it falls to, and where they start."""
        step = default_step(self.budget, said["steps"]) if said["step"] is None else said["step"]
        fall = "" if said["last"] is None else f" to {said['last']:g}"
        start = {"uniform": "", "centre": ", no random start"}.get(said["start"], f", {said['start']} start")
        return f", step {step:g}{fall}{start}"


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
