"""Where things that can be made again are kept between runs."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["cache_folder"]


def cache_folder() -> Path:
    """$FEWER_CACHE, or fewer's folder in the user's cache."""
    named = os.environ.get("FEWER_CACHE")
    return Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fewer"
