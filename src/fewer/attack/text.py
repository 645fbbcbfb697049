"""The text form of attacks and hardenings: `name:budget,option=value,...`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from fewer.core.errors import UserError

__all__ = ["split_text"]


def split_text(text: str, names: Mapping[str, Mapping[str, type]], example: str) -> tuple[str, float, dict[str, Any]]:
    """Name, budget and options of a text such as `pgd:0.3,steps=40,norm=2`.

    `names` lists what may come before the colon, each with its options and their types (int, float, str).
    """
    name, colon, rest = text.strip().partition(":")
    if name not in names:
        raise UserError(f"attack {name!r}", f"one of {', '.join(sorted(names))}", f"write for example {example}")
    first, *others = [part.strip() for part in rest.split(",")]
    if not colon or not first:
        raise UserError(f"{text!r}", "a budget in the input's own units", f"write for example {example}")
    budget = _number(first, float, f"budget of {text!r}")
    if budget < 0 or math.isinf(budget):
        raise UserError(f"budget {first} of {text!r}", "a finite number of at least 0", "in the input's own units")
    options: dict[str, Any] = {}
    for part in others:
        key, equals, value = part.partition("=")
        allowed = names[name]
        if key not in allowed or not equals:
            expected = ", ".join(f"{option}=" for option in allowed) or "no option"
            raise UserError(f"option {part!r} of {text!r}", expected)
        if key in options:
            raise UserError(f"option {key} twice in {text!r}", "each option once")
        options[key] = value if allowed[key] is str else _number(value, allowed[key], f"{key} of {text!r}")
    return name, budget, options


def _number(text: str, kind: type, what: str) -> float:
    try:
        value = int(text) if kind is int else float(text)
    except ValueError:
        raise UserError(f"{what} {text!r}", "a whole number" if kind is int else "a number") from None
    if math.isnan(value):
        raise UserError(f"{what} {text!r}", "a number")
    return value
