"""What a pack of a measured network takes along: who its access points are, where they stand, and the map.

The map of a simulated network follows from its settings; a measured one lies in a file that stays at home. So that a
pack is enough to serve, it holds the names and places of access points, the candidates and measurements of each
master, and signals in tenths of a dB, of at most `_VALUES` pairs of a place and an access point.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fewer.core.errors import UserError

if TYPE_CHECKING:
    from fewer.systems.cellfree.task.settings import Settings
    from fewer.systems.cellfree.task.survey import World
    from fewer.systems.cellfree.task.task import CellFree
    from fewer.systems.cellfree.task.world.deployment import Deployment, Radio
    from fewer.systems.cellfree.task.world.given import DriveRadio, MapRadio

__all__ = ["carry", "opened"]

_VALUES = 150_000


def carry(task: CellFree) -> dict[str, Any]:
    """Nothing of a simulated network."""
    deployment, clusters = task.world.deployment, task.world.clusters
    if not task.settings.maps:
        return {}
    return {
        "access_points": [deployment.name(index) for index in range(len(deployment))],
        "positions_m": deployment.access_points.tolist(),
        "candidates": clusters.candidates.tolist(),
        "measured": clusters.measured.tolist(),
        "area": {"side_m": deployment.side_m, "corner_m": list(deployment.corner_m)},
        "silent_db": deployment.silent_db,
        **_signals(deployment),
    }


def _signals(deployment: Deployment) -> dict[str, Any]:
    from fewer.systems.cellfree.task.world.given import DriveRadio, MapRadio

    radio = deployment.radio
    if isinstance(radio, MapRadio):
        return _grid(radio)
    assert isinstance(radio, DriveRadio)
    return _log(radio, len(deployment))


def _tenths(signals_db: Any) -> list[Any]:
    return np.round(10 * np.asarray(signals_db)).astype(int).tolist()  # type: ignore[no-any-return]


def _log(radio: DriveRadio, count: int) -> dict[str, Any]:
    """Places evenly out of the log."""
    most = max(1, _VALUES // count)
    kept = np.unique(np.linspace(0, len(radio.phones) - 1, min(most, len(radio.phones))).astype(np.int64))
    return {"places_m": np.round(radio.phones[kept], 2).tolist(), "rsrp_tenth_db": _tenths(radio.rsrp_db[kept]),
            "places_of": len(radio.phones)}  # fmt: skip


def _grid(radio: MapRadio) -> dict[str, Any]:
    """Every n-th pixel, the one in the middle of each block."""
    maps = radio.lookup.maps
    step = max(1, math.ceil(math.sqrt(maps.size / _VALUES)))
    return {
        "map_tenth_db": _tenths(maps[:, step // 2 :: step, step // 2 :: step]),
        "pixel_m": radio.lookup.pixel_m * step,
        "origin_m": list(radio.origin_m),
    }


def opened(carried: Mapping[str, Any], settings: Settings) -> World:
    """The world as the pack tells it; what does not fit together is refused."""
    from fewer.systems.cellfree.task.clusters import Clusters
    from fewer.systems.cellfree.task.survey import World
    from fewer.systems.cellfree.task.world.deployment import Deployment

    try:
        names = tuple(str(name) for name in carried["access_points"])
        west, south = (float(part) for part in carried["area"]["corner_m"])
        deployment = Deployment(
            _array(carried["positions_m"], (len(names), 2)), settings.height_m, float(carried["area"]["side_m"]),
            _radio(carried, len(names)), seed=settings.deployment_seed, silent_db=float(carried["silent_db"]),
            corner_m=(west, south), names=names,
        )  # fmt: skip
        masters = [_masters(carried[key], len(names)) for key in ("candidates", "measured")]
        if masters[0].shape[1] != settings.candidates + 1 or masters[1].shape[1] != settings.measured:
            raise ValueError("other numbers of candidates")
        return World(settings, deployment, Clusters(*masters))
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"a pack whose map does not fit together ({error})", "what `fewer pack` wrote") from None


def _array(rows: Any, shape: tuple[int, ...]) -> Any:
    found = np.array(rows, dtype=np.float64)
    if found.shape != shape or not np.isfinite(found).all():
        raise ValueError(f"{found.shape} numbers, where {shape} belong")
    return found


def _masters(rows: Any, count: int) -> Any:
    found = np.array(rows, dtype=np.int64)
    if found.ndim != 2 or len(found) != count or found.min() < 0 or found.max() >= count:
        raise ValueError("candidates beyond the network")
    return found


def _radio(carried: Mapping[str, Any], count: int) -> Radio:
    from fewer.systems.cellfree.task.world.given import DriveRadio, MapRadio
    from fewer.systems.cellfree.task.world.shadowing import MapShadows

    if "map_tenth_db" in carried:
        maps = np.array(carried["map_tenth_db"], dtype=np.float32) / 10
        west, south = (float(part) for part in carried["origin_m"])
        if maps.ndim != 3 or len(maps) != count or not maps.size or not np.isfinite(maps).all():
            raise ValueError(f"a map of {maps.shape}")
        if not float(carried["pixel_m"]) > 0:
            raise ValueError(f"pixels of {carried['pixel_m']} m")
        return MapRadio(MapShadows(maps, float(carried["pixel_m"])), (west, south))
    places = len(carried["places_m"])
    if not places:
        raise ValueError("no places")
    return DriveRadio(_array(carried["places_m"], (places, 2)), _array(carried["rsrp_tenth_db"], (places, count)) / 10)
