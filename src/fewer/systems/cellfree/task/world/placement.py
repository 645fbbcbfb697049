"""Where access points stand."""

from __future__ import annotations

import math

import numpy as np

from fewer.core.errors import UserError
from fewer.systems.cellfree.task.arrays import Floats

__all__ = ["PLACEMENT_RULES", "checked_positions", "clustered", "grid", "poisson", "uniform"]


def uniform(random: np.random.Generator, count: int, side_m: float) -> Floats:
    """(count, 2), independent."""
    return random.uniform(0.0, side_m, (count, 2))


def grid(random: np.random.Generator, count: int, side_m: float) -> Floats:
    """(count, 2), cell centres of the smallest square grid; surplus cells are left empty at random."""
    per_side = math.isqrt(count - 1) + 1
    centres = (np.arange(per_side) + 0.5) * side_m / per_side
    cells = np.stack(np.meshgrid(centres, centres, indexing="ij"), axis=-1).reshape(-1, 2)
    return cells[np.sort(random.permutation(len(cells))[:count])]


def clustered(random: np.random.Generator, count: int, side_m: float) -> Floats:
    """(count, 2), about ten around each parent with a spread of 6 % of the side, folded back at the edges."""
    parents = uniform(random, max(1, round(count / 10)), side_m)
    own = parents[random.integers(0, len(parents), count)]
    scattered = np.abs(own + random.normal(0.0, 0.06 * side_m, (count, 2)))
    return np.where(scattered > side_m, 2 * side_m - scattered, scattered)


def poisson(random: np.random.Generator, count: int, side_m: float) -> Floats:
    """A Poisson process with `count` points on average."""
    return uniform(random, int(random.poisson(count)), side_m)


PLACEMENT_RULES = {"uniform": uniform, "grid": grid, "clustered": clustered, "poisson": poisson}


def checked_positions(positions: Floats, what: str, names: tuple[str, ...] = ()) -> Floats:
    """(L, 2) finite, distinct, at least two; anything else is refused."""

    def called(row: int) -> str:
        return names[row] if names else str(row)

    positions = np.asarray(positions, dtype=np.float64)
    if positions.ndim != 2 or positions.shape[1] != 2:
        raise UserError(f"{what} of shape {positions.shape}", "one row of x and y in metres per access point")
    if not np.isfinite(positions).all():
        row = called(int(np.flatnonzero(~np.isfinite(positions).all(axis=1))[0]))
        raise UserError(f"{what} with a NaN or infinite position in row {row}", "finite metres", "mend that row")
    if len(positions) < 2:
        raise UserError(f"{what} with {len(positions)} access point", "at least two", "nothing is there to choose")
    order = np.lexsort(positions.T)
    same = (np.diff(positions[order], axis=0) == 0).all(axis=1)
    if same.any():
        pair = order[np.flatnonzero(same)[0] : np.flatnonzero(same)[0] + 2]
        first, second = (called(row) for row in sorted(int(i) for i in pair))
        raise UserError(f"{what} {first} and {second} at the same position", "distinct positions", "remove one")
    return positions
