"""How to harden: the settings of adversarial training, their presets and their text form."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from fewer.attack.attacks.starts import STARTS
from fewer.attack.ball import checked_budget, checked_norm
from fewer.attack.hardening import KINDS, OPTIONS
from fewer.attack.text import split_text
from fewer.core.errors import UserError
from fewer.core.renamed import modern_hardening, tell
from fewer.core.settings import check_choices, check_ranges, either, setting

__all__ = ["Hardening", "harden_text", "parse_harden"]

ATTACK_LOSSES = ("own", "margin")
_RANGES = [("mix", 0, 1), ("ramp", 0, 1), ("beta", 0, math.inf), ("steps", 1, math.inf)]
_NEEDS_CLASSES = ("mart", "trades")


@dataclass(frozen=True)
class Hardening:
    """Adversarial training. The defaults are the recipe that cures the paper's failure: see the ramp."""

    kind: str = setting("pgd", either(KINDS))
    budget: float = setting(0.3, "largest change of the input, in its own units")
    norm: float = setting(math.inf, "inf or 2")
    steps: int = setting(7, "attack steps (pgd, trades, mart) or replays of a batch (free)")
    step: float | None = setting(None, "length of an attack step in input units; none: the kind's own share of budget")
    last: float | None = setting(
        None, "length of pgd's last step, to which they fall evenly from the first; none: all are equal"
    )
    start: str = setting("uniform", f"where pgd starts: {either(STARTS)}")
    attack_loss: str = setting(
        "own", "what pgd increases: the task's own attack loss, or margin (best wrong score less the label's)"
    )
    mix: float = setting(1.0, "share of the attacked loss; the rest is the clean loss (1: attacked only)")
    ramp: float = setting(0.3, "share of the training during which the budget grows from 0")
    beta: float = setting(1.0, "weight of the divergence (trades, mart)")

    def __post_init__(self) -> None:
        checked_budget(self.budget), checked_norm(self.norm)
        for name, length in (("step", self.step), ("last step", self.last)):
            if length is not None:
                checked_budget(length, name)
        check_choices(self, {"kind": KINDS, "start": tuple(STARTS), "attack_loss": ATTACK_LOSSES}, of="hardening")
        check_ranges(self, _RANGES, of="hardening")
        if self.mix < 1 and self.kind in _NEEDS_CLASSES:
            raise UserError(f"mix {self.mix} with {self.kind}", "mix 1", f"{self.kind} weighs the clean loss by beta")

    @staticmethod
    def paper(kind: str = "pgd", budget: float = 0.3) -> Hardening:
        """Tables II (pgd) and III (fgsm): half clean, half attacked, the whole budget from the first step."""
        step = budget / 30 if kind == "pgd" else None
        return Hardening(kind, budget, steps=40, step=step, start="centre", mix=0.5, ramp=0.0)

    @property
    def stride(self) -> float:
        """Length of an attack step, in input units at the full budget."""
        if self.step is not None:
            return self.step
        return self.budget * {"fgsm": 1.0, "fast": 1.25, "free": 1.0}.get(self.kind, 1 / 3)


def parse_harden(text: str) -> Hardening:
    """The hardening of a text such as `pgd:0.3`, `trades:0.3,beta=1`, `fast:0.3,ramp=0.3,mix=0.5` or `paper:0.3`."""
    name, budget, options = split_text(modern_hardening(text), OPTIONS, "pgd:0.3 or fast:0.3,ramp=0.5,mix=0.5")
    if name.startswith("paper"):
        return Hardening.paper("fgsm" if name == "paper-fgsm" else "pgd", budget)
    published: dict[str, dict[str, Any]] = {"free": {"steps": 4}, "mart": {"beta": 5.0}}
    return Hardening(name, budget, **{**published.get(name, {}), **options})


def harden_text(text: str | None) -> str | None:
    """The text as a job holds it, once it is known to be a hardening; None where it is `none` or empty."""
    if text is None or text in ("", "none"):
        return None
    parse_harden(text)
    return text if (now := modern_hardening(text)) == text else tell(text, now)
