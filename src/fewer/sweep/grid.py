"""A grid file (TOML): a base, axes to multiply, points to add, points to leave out, and what each point needs.

[base]                          # what all points share, in the words of `fewer train`
task = "vision"                 # preset = "NAME" puts those words under all others, here or as an axis
steps = 300
[base.set]                      # the task's settings
network = "cnn0"
[axes]                          # every combination; dotted keys in quotes
prune = ["dense", "snip", "magnitude", "lottery"]
sparsity = [0.5, 0.9]           # dense has none, so it is one point and not two
seed = "0-4"
"optimizer.lr" = [1e-3, 3e-3]
[[points]]                      # more points on top of the base; lists multiply here too
prune = "magnitude,when=gradual"
seed = "0-4"
[[exclude]]                     # leave out what has all of these
prune = "snip"
sparsity = 0.5
[task.cellfree]                 # only for points of that task
batch = 100
[resources]
threads = 1                     # of each point; the bits depend on it
"""

from __future__ import annotations

import dataclasses
import itertools
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fewer.core.errors import UserError
from fewer.core.settings import nearest, setting
from fewer.run.options import parse_seeds
from fewer.sweep.point import Point, checked_key, point_of

__all__ = ["Grid", "Resources", "grid_of", "read_grid"]

Flat = dict[str, Any]
_PARTS = ("base", "axes", "points", "exclude", "task", "resources")


@dataclass(frozen=True)
class Resources:
    """What a point takes, and how points are put together."""

    threads: int = setting(1, "CPU threads of a process; the bits depend on it")
    cpus: float = setting(0.0, "Ray: processors a unit of work reserves; 0: as many as threads")
    gpus: float = setting(0.0, "Ray: GPUs a unit reserves, may be a fraction; 0: one where it trains on CUDA")
    retries: int = setting(2, "how often a unit is tried again when its worker dies")
    cohort: int = setting(0, "most points in a cohort; 1: none; 0: 64 on CUDA, 8 on a CPU")

    def __post_init__(self) -> None:
        for entry in dataclasses.fields(self):
            value = getattr(self, entry.name)
            whole = isinstance(entry.default, int)
            if isinstance(value, bool) or not isinstance(value, int if whole else int | float) or value < 0:
                raise UserError(f"resources: {entry.name} = {value!r}", f"a {'whole ' if whole else ''}number from 0")
        if self.threads < 1:
            raise UserError(f"resources: threads = {self.threads}", "at least 1")


@dataclass(frozen=True)
class Grid:
    """Different points, in the order of the file."""

    points: tuple[Point, ...]
    resources: Resources = Resources()


def read_grid(path: str | Path) -> Grid:
    """The grid of a file."""
    try:
        content = tomllib.loads(Path(path).read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} ({error})", "a grid file", "see `fewer sweep --help`") from None
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path} is not TOML ({error})", "a grid file", "see `fewer sweep --help`") from None
    return grid_of(content)


def grid_of(content: Mapping[str, Any]) -> Grid:
    """The grid that a parsed file describes."""
    for part in content:
        if part not in _PARTS:
            raise UserError(f"[{part}] in the grid", "a part of a grid file", nearest(part, _PARTS))
    base = _flat(_table(content, "base"), "[base]")
    own = {name: _flat(part, f"[task.{name}]") for name, part in _table(content, "task").items()}
    excludes = [_flat(entry, "[[exclude]]") for entry in _tables(content, "exclude")]
    axes = _flat(_table(content, "axes"), "[axes]")
    asked = [axes] if axes or "points" not in content else []
    asked += [_flat(entry, "[[points]]") for entry in _tables(content, "points")]
    used: set[int] = set()
    found: dict[str, Point] = {}
    for entry in asked:
        for chosen in _product(entry):
            task = chosen.get("task", base.get("task"))
            flat = {**base, **own.get(str(task), {}), **chosen}
            hits = [number for number, exclude in enumerate(excludes) if _matches(flat, exclude)]
            used.update(hits)
            if not hits:
                point = point_of(flat, chosen)
                found.setdefault(point.name, point)
    idle = [exclude for number, exclude in enumerate(excludes) if number not in used]
    if idle:
        raise UserError(f"[[exclude]] {idle[0]}", "something that excludes a point", "mend or remove it")
    if not found:
        raise UserError("a grid without points", "at least one", "add [axes] or [[points]]")
    return Grid(tuple(found.values()), _resources(_table(content, "resources")))


def _table(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = content.get(name, {})
    if not isinstance(part, dict):
        raise UserError(f"{name} = {part!r} in the grid", f"a table, [{name}]")
    return part


def _tables(content: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    part = content.get(name, [])
    if not isinstance(part, list) or not all(isinstance(entry, dict) for entry in part):
        raise UserError(f"{name} in the grid", f"tables, each under [[{name}]]")
    return part


def _flat(table: Mapping[str, Any], where: str) -> Flat:
    """Nested tables as dotted keys, each one checked."""
    flat: Flat = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat |= {checked_key(f"{key}.{name}", where): inner for name, inner in value.items()}
        else:
            flat[checked_key(key, where)] = value
    return flat


def _product(entry: Flat) -> Iterator[Flat]:
    values = [_values(key, value) for key, value in entry.items()]
    for chosen in itertools.product(*values):
        yield dict(zip(entry, chosen))


def _values(key: str, value: Any) -> Sequence[Any]:
    if key == "seed" and isinstance(value, str):
        return parse_seeds(value)
    values = value if isinstance(value, list) else [value]
    if not values:
        raise UserError(f"{key} = []", "at least one value", "leave the key out")
    return values


def _matches(flat: Flat, exclude: Flat) -> bool:
    return all(key in flat and flat[key] in _values(key, value) for key, value in exclude.items())


def _resources(table: Mapping[str, Any]) -> Resources:
    names = [entry.name for entry in dataclasses.fields(Resources)]
    for key in table:
        if key not in names:
            raise UserError(f"{key!r} in [resources]", "what a point can need", nearest(key, names))
    return Resources(**table)
