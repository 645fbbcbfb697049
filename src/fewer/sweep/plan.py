"""Which points are trained together, decided once and written down: a cohort's bits depend on who is in it."""

from __future__ import annotations

import json
from collections.abc import Sequence

from fewer.core.errors import UserError
from fewer.core.files.atomic import write_json
from fewer.sweep.cohort_unit import shared
from fewer.sweep.grid import Grid, Resources
from fewer.sweep.point import Point
from fewer.sweep.results import Results
from fewer.sweep.unit import Unit

__all__ = ["Plan", "units_of"]


def units_of(points: Sequence[Point], resources: Resources) -> list[Unit]:
    """Cohorts of points that share their shapes, and the rest alone; a function of the points and their order."""
    groups: dict[tuple[str, str], list[Point]] = {}
    for point in points:
        key = shared(point.job)
        groups.setdefault((point.device, point.name if key is None else key), []).append(point)
    units = []
    for (device, _), group in groups.items():
        most = resources.cohort or (64 if device.startswith("cuda") else 8)
        pieces = -(-len(group) // most)
        size = -(-len(group) // pieces)  # equal parts: the last one would otherwise be a straggler
        units += [Unit(tuple(group[first : first + size])) for first in range(0, len(group), size)]
    return units


class Plan:
    """The units of a folder, as `plan.json` keeps them through kills, and through grids that grow."""

    def __init__(self, grid: Grid, results: Results) -> None:
        self.path, self.resources, self.units = results.out / "plan.json", grid.resources, list[Unit]()
        by_name = {point.name: point for point in grid.points}
        finished = set(results.finished(by_name))
        settled = set(finished)
        for names in self._read():
            # a grid that shrank, or a cohort of which only the failures are wanted: those are planned anew
            whole = all(name in by_name for name in names)
            unit = Unit(tuple(by_name[name] for name in names)) if whole else None
            begun = finished & set(names)
            if unit is not None and (len(begun) in (0, len(names)) or results.under_way(unit.name)):
                self.units.append(unit)
                settled.update(names)
        self.units += units_of([point for point in grid.points if point.name not in settled], grid.resources)
        self.write()

    def _read(self) -> list[list[str]]:
        if not self.path.exists():
            return []
        try:
            found = json.loads(self.path.read_text())
            units, threads = [[str(name) for name in names] for names in found["units"]], int(found["threads"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"{self.path} cannot be read ({error})", "what `fewer sweep` wrote", "move it away"
            ) from None
        if threads != self.resources.threads:
            raise UserError(
                f"threads = {self.resources.threads} where {self.path} has {threads}",
                "the same number, on which the bits depend",
                "choose another --out",
            )
        return units

    def write(self) -> None:
        """Before anything is trained, and again when it changes."""
        units = [[point.name for point in unit.points] for unit in self.units]
        write_json(self.path, {"threads": self.resources.threads, "units": units})

    def split(self, unit: Unit) -> list[Unit]:
        """A cohort that cannot be one, as units of one point."""
        alone = [Unit((point,)) for point in unit.points]
        at = self.units.index(unit)
        self.units[at : at + 1] = alone
        self.write()
        return alone
