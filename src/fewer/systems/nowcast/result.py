"""A forecast of a user's own files, whatever made it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewer.systems.nowcast.task.files.own.images import Images

__all__ = ["Result"]


@dataclass(frozen=True)
class Result:
    """Fields are (leads, height, width), NaN where nothing is known."""

    method: str
    images: Images
    minutes: list[float]
    probability: dict[float, NDArray[np.float32]]  # by mm/h
    rate: NDArray[np.float32] | None
    rain: NDArray[np.bool_]
    remarks: list[str]

    @property
    def reference(self) -> np.datetime64:
        time: np.datetime64 = self.images.times[-1]
        return time

    def described(self) -> dict[str, Any]:
        """In a few words."""
        rows, columns = self.images.grid.shape
        return {
            "method": self.method, "images": len(self.images.times), "last_image": str(self.reference),
            "rows": rows, "columns": columns, "kilometres": self.images.grid.kilometres,
            "placed": self.images.grid.placed, "minutes_ahead": self.minutes, "seen": self.images.seen,
            "wet_ahead": [float(one.mean()) for one in self.rain], "remarks": self.remarks,
        }  # fmt: skip
