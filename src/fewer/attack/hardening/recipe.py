"""How to harden: the settings of adversarial training, their presets and their text form."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from fewer.attack.attacks.starts import STARTS
from fewer.attack.ball import checked_budget, checked_norm
from fewer.attack.text import split_text
from fewer.core.errors import UserError
from fewer.core.renamed import modern_hardening, tell

__all__ = ["KINDS", "Hardening", "harden_text", "parse_harden"]

ATTACK_LOSSES = ("own", "margin")
KINDS = ("fast", "fgsm", "free", "mart", "pgd", "trades")
_NEEDS_CLASSES = ("mart", "trades")


def _setting(default: Any, help: str) -> Any:
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True)
class Hardening:
    """Adversarial training. The defaults are the recipe that cures the paper's failure: see the ramp."""

    kind: str = _setting("pgd", "fgsm, fast, free, pgd, trades or mart")
    budget: float = _setting(0.3, "largest change of the input, in its own units")
    norm: float = _setting(math.inf, "inf or 2")
    steps: int = _setting(7, "attack steps (pgd, trades, mart) or replays of a batch (free)")
    step: float | None = _setting(None, "length of an attack step in input units; none: the kind's own share of budget")
    last: float | None = _setting(
        None, "length of pgd's last step, to which they fall evenly from the first; none: all are equal"
    )
    start: str = _setting("uniform", "where pgd starts: uniform, centre, near, corners, blocks, stripes or mixed")
    attack_loss: str = _setting(
        "own", "what pgd increases: the task's own attack loss, or margin (best wrong score less the label's)"
    )
    mix: float = _setting(1.0, "share of the attacked loss; the rest is the clean loss (1: attacked only)")
    ramp: float = _setting(0.3, "share of the training during which the budget grows from 0")
    beta: float = _setting(1.0, "weight of the divergence (trades, mart)")

    def __post_init__(self) -> None:
        checked_budget(self.budget), checked_norm(self.norm)
        for name, length in (("step", self.step), ("last step", self.last)):
            if length is not None:
                checked_budget(length, name)
        if self.kind not in KINDS:
            raise UserError(f"hardening {self.kind!r}", f"one of {', '.join(KINDS)}")
        if self.steps < 1:
            raise UserError(f"hardening with {self.steps} steps", "at least 1")
        if self.start not in STARTS:
            raise UserError(f"hardening start {self.start!r}", f"one of {', '.join(STARTS)}")
        if self.attack_loss not in ATTACK_LOSSES:
            raise UserError(f"hardening by attack loss {self.attack_loss!r}", f"one of {', '.join(ATTACK_LOSSES)}")
        for name, value in (("mix", self.mix), ("ramp", self.ramp)):
            if not 0 <= value <= 1:
                raise UserError(f"hardening {name} {value}", "a share between 0 and 1")
        if not (math.isfinite(self.beta) and self.beta >= 0):
            raise UserError(f"hardening beta {self.beta}", "a finite number of at least 0")
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


_OPTIONS: dict[str, type] = {"ramp": float, "mix": float, "norm": float}
_STEPS: dict[str, type] = {"steps": int, "step": float}
_TEXT: dict[str, dict[str, type]] = {
    "fgsm": _OPTIONS,
    "fast": {**_OPTIONS, "step": float},
    "free": {**_OPTIONS, **_STEPS},
    "pgd": {**_OPTIONS, **_STEPS, "last": float, "start": str, "attack_loss": str},
    "trades": {**_OPTIONS, **_STEPS, "beta": float},
    "mart": {**_OPTIONS, **_STEPS, "beta": float},
    "paper": {},
    "paper-fgsm": {},
}


def parse_harden(text: str) -> Hardening:
    """The hardening of a text such as `pgd:0.3`, `trades:0.3,beta=1`, `fast:0.3,ramp=0.3,mix=0.5` or `paper:0.3`."""
    name, budget, options = split_text(modern_hardening(text), _TEXT, "pgd:0.3 or fast:0.3,ramp=0.5,mix=0.5")
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
