"""Adversarial training: recipes, losses, and signs that it went wrong."""

from __future__ import annotations

__all__ = ["KINDS", "OPTIONS"]

_ALL: dict[str, type] = {"ramp": float, "mix": float, "norm": float}
_STEPS: dict[str, type] = {"steps": int, "step": float}
# what may come before the colon of `--harden`, each with the options that text may give it and their types
OPTIONS: dict[str, dict[str, type]] = {
    "fgsm": _ALL,
    "fast": {**_ALL, "step": float},
    "free": {**_ALL, **_STEPS},
    "pgd": {**_ALL, **_STEPS, "last": float, "start": str, "attack_loss": str},
    "trades": {**_ALL, **_STEPS, "beta": float},
    "mart": {**_ALL, **_STEPS, "beta": float},
    "paper": {},
    "paper-fgsm": {},
}
KINDS = tuple(name for name in OPTIONS if not name.startswith("paper"))  # the others are presets of these
