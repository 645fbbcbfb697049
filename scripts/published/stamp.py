"""Where and by what a result was made, as every kept result says it."""

from __future__ import annotations

import os
from typing import Any

from fewer.core.machine.versions import origin
from fewer.studies.study import hardware, in_words

__all__ = ["load", "stamp"]


def stamp(command: str) -> dict[str, Any]:
    """What goes at the end of a record."""
    return {"command": command, "hardware_in_words": in_words(hardware()), **origin()}


def load() -> str:
    """How busy the machine has been in the last quarter of an hour, for a note."""
    one, _, fifteen = os.getloadavg()
    return f"{one:.1f} in the last minute, {fifteen:.1f} in the last quarter of an hour, on {os.cpu_count()} cores"
