"""Weather for the page: windows whose truth is known, and what forecasts without a network say of them.

Those of one size come with the package, in bytes (`scripts/draw_page_weather.py` drew them), so that the page is there
at once and needs no torch; for networks of another size they are drawn while the page shows how far that is.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fewer.packs.file.tensors import Array
from fewer.serve.limits import Refusal

__all__ = ["BLIND", "DRAWN", "RATE_STEPS", "SHIPPED", "WINDOWS", "Drawing", "Showcase", "rain_codes", "wettest"]

SHIPPED = Path(__file__).parent / "page" / "weather.npz"
RATE_STEPS = 10  # in which a mm/h is written
BLIND = 255  # no radar looked
WINDOWS, DRAWN = 6, 12  # the page can look at those of the drawn that have most rain soon: most weather is dry
_SOON = 16  # lead times, four hours: beyond them little can be forecast
_RAIN_MM_PER_HOUR = 0.2
_CHUNK = 4  # windows drawn at once
_LEVELS = 63  # of a band of the shipped images, less one


@dataclass(frozen=True)
class Showcase:
    """Some windows, on axis 0 of everything."""

    satellite: Array  # (windows, 4, bands, size, size), standardised, float32
    missing: Array  # (windows, 4, size, size), float32
    fell: Array  # (windows, leads, size, size), uint8: `rain_codes`
    rivals: Mapping[str, Array]  # name -> (windows, leads, size, size), bool: rain as it forecasts without a network
    opening: int = 0  # the window that the page shows first: `typical` of the zoo's networks

    def __len__(self) -> int:
        return len(self.fell)

    def iou(self, said: Array, lead: int) -> list[float]:
        """Of each window at a lead time counted from 0; `said` is (windows, leads, size, size), bool."""
        seen = self.fell[:, lead] != BLIND
        wet = (self.fell[:, lead] >= _RAIN_MM_PER_HOUR * RATE_STEPS) & seen
        called = said[:, lead] & seen
        both, either = (part.sum((1, 2)) for part in (wet & called, wet | called))
        return [float(a / max(b, 1)) for a, b in zip(both, either)]

    def typical(self, said: Array) -> int:
        """The window whose IoU over all lead times is nearest to the mean of all windows; `said` as in `iou`."""
        seen = self.fell != BLIND
        wet, called = (self.fell >= _RAIN_MM_PER_HOUR * RATE_STEPS) & seen, said & seen
        both, either = (part.sum((1, 2, 3)) for part in (wet & called, wet | called))
        scores = both / np.maximum(either, 1)
        return int(np.abs(scores - scores.mean()).argmin())

    def written(self) -> bytes:
        """As a file: images in 64 levels, which is what networks are then given."""
        low, high = (part(self.satellite, axis=(0, 1, 3, 4), keepdims=True) for part in (np.min, np.max))
        bands = np.round((self.satellite - low) / np.maximum(high - low, 1e-6) * _LEVELS).astype(np.uint8)
        # neighbours differ little, and little differences are written shortly
        bands[..., 1:] = np.diff(bands, axis=-1)
        into = io.BytesIO()
        said: dict[str, Any] = {f"rival_{name}": np.packbits(rain, axis=-1) for name, rain in self.rivals.items()}
        missing = np.packbits(self.missing > 0, axis=-1)
        np.savez_compressed(
            into, bands=bands, low=low, high=high, fell=self.fell, missing=missing, opening=self.opening, **said
        )
        return into.getvalue()

    @classmethod
    def read(cls, path: Path) -> Showcase:
        """What `written` wrote."""
        with np.load(path, allow_pickle=False) as file:
            found = dict(file)
        size = found["fell"].shape[-1]
        bands = np.cumsum(found["bands"], axis=-1, dtype=np.uint8).astype(np.float32) / _LEVELS
        satellite = found["low"] + bands * (found["high"] - found["low"])
        unpacked = {name: np.unpackbits(part, axis=-1, count=size) for name, part in found.items() if _bits(name)}
        rivals = {name.removeprefix("rival_"): part > 0 for name, part in unpacked.items() if name != "missing"}
        missing = unpacked["missing"].astype(np.float32)
        return cls(satellite.astype(np.float32), missing, found["fell"], rivals, int(found["opening"]))


def _bits(name: str) -> bool:
    return name == "missing" or name.startswith("rival_")


def rain_codes(rate: Array, valid: Array) -> Array:
    """Tenths of mm/h, rounded up, as bytes; `BLIND` where no radar looked."""
    codes = np.where(valid > 0, np.minimum(np.ceil(rate * RATE_STEPS), BLIND - 1), BLIND)
    return codes.astype(np.uint8)


def wettest(rate: Array, valid: Array) -> Array:
    """Which windows have most rain soon, the wettest first; equals as they were drawn."""
    raining = ((rate >= _RAIN_MM_PER_HOUR) & (valid > 0))[:, :_SOON].sum(axis=(1, 2, 3))
    order: Array = np.argsort(-raining, kind="stable")[:WINDOWS]
    return order


class Drawing:
    """Windows of one size being drawn in a thread of their own; `showcase` is there at the end."""

    def __init__(self, size: int) -> None:
        self.done, self.of = 0, DRAWN
        self.showcase: Showcase | None = None
        self.fault: Exception | None = None
        self._size = size
        try:
            import torch  # noqa: F401
        except ModuleNotFoundError as error:
            reason = f"weather is drawn with {error.name}, which is not installed; pip install 'fewer[nowcast]'"
            raise Refusal(404, reason) from None
        threading.Thread(target=self._draw, daemon=True).start()

    def _draw(self) -> None:
        try:
            self.showcase = self._drawn()
        except Exception as error:  # the page is told, by whoever asks next
            self.fault = error

    def _drawn(self) -> Showcase:
        import torch

        from fewer.systems.nowcast.task.generated.windows import Wish

        wish = Wish("test", DRAWN, self._size, 0)
        packed: dict[str, Any] = wish.room("cpu")
        for part in range(DRAWN // _CHUNK):
            wish.draw_(packed, part, DRAWN // _CHUNK)
            self.done += _CHUNK
        windows = wish.data(packed).take(torch.arange(DRAWN))
        satellite, missing, rate, valid = (leaf.numpy() for leaf in windows[:4])
        chosen = wettest(rate, valid)
        return Showcase(satellite[chosen], missing[chosen], rain_codes(rate[chosen], valid[chosen]), {})
