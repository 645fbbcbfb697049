"""Scores that were computed are kept in a file, by event and method: a bench that was stopped goes on where it was."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewer.core.errors import UserError
from fewer.core.files.atomic import write_atomically

__all__ = ["Kept", "own_source"]


@functools.cache
def own_source() -> str:
    """What the extrapolation is: a hash of its source and weights."""
    found = hashlib.sha256()
    for part in sorted(files("fewer.systems.nowcast.task.baselines").iterdir(), key=lambda one: one.name):
        if part.name.endswith((".py", ".npz")):
            found.update(part.read_bytes())
    return found.hexdigest()


class Kept:
    """A JSON file; without a path everything is computed and nothing kept."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.events: dict[str, dict[str, dict[str, Any]]] = {}
        if path and Path(path).exists():
            try:
                self.events = dict(json.loads(Path(path).read_text())["events"])
            except (ValueError, KeyError, TypeError, OSError) as error:
                raise UserError(f"{path} ({error})", "scores that `fewer bench radar` has kept") from None

    def of(
        self, event: str, method: str, rates: NDArray[np.floating[Any]], source: str, make: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        """What was kept of these images by this very method, else what is made now."""
        digest = hashlib.sha256(np.ascontiguousarray(rates).tobytes() + source.encode()).hexdigest()[:16]
        known = self.events.setdefault(event, {})
        if known.get(method, {}).get("of") != digest:
            known[method] = {"of": digest, **make()}
            if self._path:
                write_atomically(self._path, json.dumps({"events": self.events}, indent=1).encode())
        return known[method]
