"""Names of version 0.1.0 that files and commands may still hold, and what they are called now."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from fewer.core.errors import Notice

__all__ = ["modern", "modern_word", "tell"]

_KEYS = {"choose_every": "validate_every", "figures": "metrics"}
_WORDS = {"local": "processes", "here": "inline"}  # where a sweep runs


def modern(content: Mapping[str, Any]) -> dict[str, Any]:
    """The same with every key as it is called now, inner ones too."""
    return {
        _KEYS.get(key, key): modern(value) if isinstance(value, Mapping) else value for key, value in content.items()
    }


def modern_word(word: str) -> str:
    """What the place of a sweep is called now; one line tells where it had another name."""
    return tell(word, _WORDS[word]) if word in _WORDS else word


def tell(old: str, now: str) -> str:
    """The new name, after one line about it."""
    warnings.warn(f"{old} is now called {now}", Notice, stacklevel=3)
    return now
