"""Radio environments that somebody measured: a grid of gains, or what was heard at the places of a drive."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from fewer.systems.cellfree.task.arrays import Floats, Integers, generator
from fewer.systems.cellfree.task.world.shadowing import MapShadows

__all__ = ["DriveRadio", "MapRadio"]


@dataclass(frozen=True)
class MapRadio:
    """Gains on a grid, looked up at the nearest pixel."""

    lookup: MapShadows
    origin_m: tuple[float, float] = (0.0, 0.0)  # the south-west corner

    def gain_db(self, phones: Floats, links: Integers | None) -> Floats:
        """See `Radio.gain_db`."""
        return np.asarray(self.lookup.at(phones - np.array(self.origin_m), links), dtype=np.float64)

    def places(self, random: np.random.Generator, count: int, *, part: str) -> Floats:
        """Uniform over the map."""
        _, rows, columns = self.lookup.maps.shape
        inside = random.uniform(0.0, 1.0, (count, 2)) * self.lookup.pixel_m * np.array([columns, rows])
        return np.asarray(inside + np.array(self.origin_m))


class DriveRadio:
    """Gains at logged places; elsewhere those of the nearest one."""

    def __init__(self, phones: Floats, rsrp_db: Floats) -> None:
        self.phones, self.rsrp_db = phones, rsrp_db
        self._tree = cKDTree(phones)

    def gain_db(self, phones: Floats, links: Integers | None) -> Floats:
        """See `Radio.gain_db`."""
        heard = self.rsrp_db[self._tree.query(phones)[1]]
        return heard if links is None else np.take_along_axis(heard, links, axis=1)

    def places(self, random: np.random.Generator, count: int, *, part: str) -> Floats:
        """Logged places; train, validation and test never share one, and there may be fewer than asked for.

        Any other part knows what may be learnt from, and no more.
        """
        count_all = len(self.phones)
        order = generator(0, "drive").permutation(count_all)
        first = min(int(0.7 * count_all), count_all - 2)
        second = min(max(int(0.8 * count_all), first + 1), count_all - 1)
        parts = {"train": order[:first], "validation": order[first:second], "test": order[second:]}
        own = parts.get(part, order[:first])
        return np.asarray(self.phones[random.permutation(own)[:count]])
