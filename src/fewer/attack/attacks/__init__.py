"""Attacks, each a coroutine over rounds.

A file here with one function and a line in `ATTACKS` make one; help, completion and tests then know it. Functions are
imported when they are called: listing attacks needs no torch.
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["ATTACKS", "OPTIONS", "Kind"]


@dataclass(frozen=True)
class Kind:
    """Where the function is, what it is called in tables, and the options that text may give it, with their types."""

    place: str  # "module:function", (task, budget, *, norm, options) -> Attack
    title: str  # `{steps}` is that option or the function's own default; `{times}` says how many restarts, if several
    options: dict[str, type] = field(default_factory=dict)


_AT = "fewer.attack.attacks"
ATTACKS = {
    "fgsm": Kind(f"{_AT}.fgsm:fgsm", "FGSM"),
    "pgd": Kind(
        f"{_AT}.pgd:pgd",
        "PGD-{steps}{times}",
        {"steps": int, "step": float, "restarts": int, "start": str, "last": float},
    ),
    "pgd-margin": Kind(f"{_AT}.pgd:pgd_on_margin", "PGD-{steps} on the margin{times}", {"steps": int, "restarts": int}),
    "apgd": Kind(f"{_AT}.apgd:apgd", "APGD-CE-{steps}{times}", {"steps": int, "restarts": int}),
    "apgd-t": Kind(
        f"{_AT}.apgd:apgd_targeted", "APGD-T-{steps} ({targets} targets, DLR)", {"steps": int, "targets": int}
    ),
    "fab-t": Kind(f"{_AT}.fab:fab_targeted", "FAB-T-{steps} ({targets} targets)", {"steps": int, "targets": int}),
    "square": Kind(f"{_AT}.square:square", "Square ({queries} queries)", {"queries": int}),
}
# what may come before the colon of `--attack`
OPTIONS: dict[str, dict[str, type]] = {
    **{name: {**kind.options, "norm": float} for name, kind in ATTACKS.items()},
    "suite": {"queries": int, "norm": float},
}
