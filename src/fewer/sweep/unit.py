"""A unit of work: one point, or several that are trained as a cohort. Any process that has the package can run one."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fewer.core.engines.loop import Loop
from fewer.core.errors import Busy
from fewer.core.files.run_folder import Folder
from fewer.sweep.cohort_unit import NotBatchable, run_together
from fewer.sweep.failure import Failure, failure_of
from fewer.sweep.point import Point

__all__ = ["Outcome", "Unit", "run_unit"]

_PATIENCE = 10.0  # seconds for a process that is just being ended to let go of its folder
_SAVE = 5.0  # seconds between checkpoints: what a kill may cost


@dataclass(frozen=True)
class Unit:
    """Points in a fixed order: a cohort's bits depend on who is in it."""

    points: tuple[Point, ...]

    @property
    def name(self) -> str:
        """The point's, or the hash of all their names."""
        names = [point.name for point in self.points]
        if len(names) == 1:
            return names[0]
        return hashlib.blake2b(" ".join(names).encode(), digest_size=6).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """As a message holds it."""
        return {"name": self.name, "points": [point.to_json() for point in self.points]}

    @staticmethod
    def from_json(found: Mapping[str, Any]) -> Unit:
        """The same unit again."""
        return Unit(tuple(Point.from_json(point) for point in found["points"]))


@dataclass(frozen=True)
class Outcome:
    """What became of a unit: a failure or None for each point, or the reason to try its points one by one."""

    failures: Mapping[str, Failure | None]
    apart: str = ""

    def to_json(self) -> dict[str, Any]:
        """As a message holds it."""
        return {
            "apart": self.apart,
            "failures": {name: asdict(failure) if failure else None for name, failure in self.failures.items()},
        }

    @staticmethod
    def from_json(found: Mapping[str, Any]) -> Outcome:
        """The same outcome again."""
        failures = {name: Failure(**failure) if failure else None for name, failure in found["failures"].items()}
        return Outcome(failures, found["apart"])


def run_unit(unit: Unit, out: Path, say: Callable[[dict[str, Any]], None]) -> Outcome:
    """Train the unit below `out`, or go on there; never raises for what a point did wrong."""
    loop = Loop(save_seconds=_SAVE, on_log=say)
    points = out / "points"
    if len(unit.points) == 1:
        point = unit.points[0]
        return Outcome({point.name: _alone(point, points, loop)})
    try:
        jobs = {point.name: point.placed() for point in unit.points}
        return Outcome(_patiently(lambda: run_together(jobs, Folder(out / "cohorts" / unit.name), points, loop)))
    except NotBatchable as reason:
        return Outcome({}, str(reason))
    except Exception as error:
        # out of memory, an operation without a vmap rule: alone each point gets its own chance
        return Outcome({}, failure_of(error).why)


def _alone(point: Point, points: Path, loop: Loop) -> Failure | None:
    try:
        _patiently(lambda: point.placed().run(points / point.name, loop=loop))
    except Exception as error:
        return failure_of(error)
    return None


def _patiently(work: Callable[[], Any]) -> Any:
    """Wait for a folder whose last owner is about to die: its parent was killed, and a new one started at once."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            return work()
        except Busy:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
