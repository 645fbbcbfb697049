"""Colours, on a terminal only, and not where NO_COLOR is set (no-color.org)."""

from __future__ import annotations

import os
from typing import TextIO

__all__ = ["painted"]

_CODES = {"bold": "1", "red": "31", "green": "32", "yellow": "33"}


def painted(text: str, style: str, stream: TextIO) -> str:
    """The text as it should be written to that stream."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not stream.isatty()
    return text if plain else f"\x1b[{_CODES[style]}m{text}\x1b[0m"
