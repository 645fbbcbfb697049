"""Names of version 0.1.0 that files and commands may still hold, and what they are called now."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from fewer.core.errors import Notice

__all__ = ["former_hardening", "modern", "modern_hardening", "modern_word", "tell"]

_KEYS = {"choose_every": "validate_every", "figures": "metrics"}
_WORDS = {"local": "processes", "here": "inline"}  # where a sweep runs
_HARDENING = {"aim=harm": "attack_loss=own", "aim=": "attack_loss="}  # in this order


def modern(content: Mapping[str, Any]) -> dict[str, Any]:
    """The same with every key as it is called now, inner ones too, and hardening by its options' new names."""
    return {_KEYS.get(key, key): _modern_value(key, value) for key, value in content.items()}


def _modern_value(key: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return modern(value)
    return modern_hardening(value) if key == "harden" and isinstance(value, str) else value


def modern_hardening(text: str) -> str:
    """A text such as `pgd:0.3,aim=margin` with its options as they are called now."""
    for old, now in _HARDENING.items():
        text = text.replace(old, now)
    return text


def former_hardening(text: str) -> str:
    """The same as version 0.1.0 wrote it."""
    for old, now in _HARDENING.items():
        text = text.replace(now, old)
    return text


def modern_word(word: str) -> str:
    """What the place of a sweep is called now; one line tells where it had another name."""
    return tell(word, _WORDS[word]) if word in _WORDS else word


def tell(old: str, now: str) -> str:
    """The new name, after one line about it."""
    warnings.warn(f"{old} is now called {now}", Notice, stacklevel=3)
    return now
