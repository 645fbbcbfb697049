"""Windows of generated weather as a data set in memory: what the task learns from when no files are given."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fewer.core.data import TensorData
from fewer.core.errors import UserError
from fewer.core.task import Data
from fewer.systems.nowcast.task.bands import BANDS
from fewer.systems.nowcast.task.files.layout import CORE, SPLITS, Place
from fewer.systems.nowcast.task.generated.weather_cache import cached_weather
from fewer.systems.nowcast.task.weather.gaps import Gaps
from fewer.systems.nowcast.task.weather.regimes import Scene, checked_regions, draw_scene
from fewer.systems.nowcast.task.weather.weather import WET, Weather, checked_size
from fewer.systems.nowcast.task.windows import LEADS, SEEN, Windows

__all__ = ["YEARS", "DrawnWindows", "PackedWindows", "Wish", "coded", "decoded", "generated", "places"]

YEARS = (2019, 2020)
_STEP, _CODE_OF_WET, _BLIND = 0.035, 55, 255  # codes of rates: 0 dry, 1 to 254 a logarithmic scale, 255 no radar
_UNPACKED_BYTES = 1 << 30  # up to here windows are kept ready to use
_PACKED_BYTES = 1 << 36  # up to here they are drawn once and kept packed


def places(regions: Sequence[str] = CORE) -> tuple[Place, ...]:
    """What `Windows.place` counts."""
    return tuple(Place(region, year) for year in YEARS for region in regions)


def generated(
    split: str, *, count: int, size: int, seed: int = 0, regions: Sequence[str] = CORE, device: str = "cpu"
) -> Data[Windows]:
    """`count` windows spread evenly over the regions and both years; splits and seeds share no weather.

    Window i is the same whatever the count, on a CPU to the bit, and kept in the cache if all are of a moderate size.
    CUDA is much faster and draws other weather. As many as the competition has are drawn whenever they are asked for.
    """
    if split not in SPLITS:
        raise UserError(f"split {split!r}", f"one of {', '.join(SPLITS)}")
    if count < 1:
        raise UserError(f"{count} windows", "at least one")
    checked_size(size)
    if torch.device(device).type == "cuda" and not torch.cuda.is_available():
        raise UserError(
            f"weather_device={device} on a machine without CUDA", "cpu, which draws other weather", "weather_device=cpu"
        )
    wish = Wish(split, count, size, seed, checked_regions(regions))
    if wish.bytes() > _PACKED_BYTES:
        return DrawnWindows(wish, device)
    if torch.device(device).type == "cpu":
        return wish.data(cached_weather(wish.words(), wish.bytes(), functools.partial(_drawn, wish, device)))
    return wish.data(_drawn(wish, device))


@dataclass(frozen=True)
class Wish:
    """Which windows; several processes may draw them together into one room."""

    split: str
    count: int
    size: int
    seed: int
    regions: tuple[str, ...] = tuple(CORE)

    def words(self) -> str:
        """A name that no other windows have."""
        where = hashlib.sha256(",".join(self.regions).encode()).hexdigest()[:8]
        return f"{self.split}-{self.count}-{self.size}px-seed{self.seed}-{where}"

    def bytes(self) -> int:
        """Of them packed."""
        return self.count * self.size**2 * (2 * SEEN * len(BANDS) + LEADS)

    def room(self, device: str) -> dict[str, Tensor]:
        """For all of them packed, not yet drawn."""
        shape = (self.size, self.size)
        return {
            "satellite": torch.empty(self.count, SEEN, len(BANDS), *shape, dtype=torch.float16, device=device),
            "codes": torch.empty(self.count, LEADS, *shape, dtype=torch.uint8, device=device),
        }

    def scene(self, number: int) -> Scene:
        """What the weather of a window is drawn from."""
        everywhere = places(self.regions)
        return draw_scene(everywhere[number % len(everywhere)], seed=self.seed, name=f"{self.split}/{number}")

    def draw_(self, packed: Mapping[str, Tensor], part: int = 0, parts: int = 1) -> None:
        """Draw a part of them, on the device where their room is."""
        device = packed["codes"].device
        chunk = 32 if device.type == "cuda" else 4 if self.size < 200 else 1
        for first in range(part * chunk, self.count, parts * chunk):
            # always whole chunks: even the last bits of a window do not depend on how many are wanted
            scenes = [self.scene(number) for number in range(first, first + chunk)]
            satellite, codes = _packed(scenes, self.size, device)
            kept = min(chunk, self.count - first)
            packed["satellite"][first : first + kept] = satellite[:kept]
            packed["codes"][first : first + kept] = codes[:kept]

    def data(self, packed: Mapping[str, Tensor]) -> Data[Windows]:
        """What was drawn, as a data set: unpacked if that is of a moderate size."""
        numbers = torch.arange(self.count, device=packed["codes"].device)
        windows = PackedWindows(packed["satellite"], packed["codes"], numbers % len(places(self.regions)))
        unpacked = 4 * self.count * self.size**2 * (SEEN * (len(BANDS) + 1) + 2 * LEADS)
        return TensorData(windows.take(numbers)) if unpacked <= _UNPACKED_BYTES else windows


def _drawn(wish: Wish, device: str) -> dict[str, Tensor]:
    packed = wish.room(device)
    wish.draw_(packed)
    return packed


class PackedWindows:
    """Windows at a third of their size: half-precision images, rates in one byte; a window of 252 pixels is 7.6 MB."""

    in_memory = True

    def __init__(self, satellite: Tensor, codes: Tensor, place: Tensor) -> None:
        self.satellite = satellite  # (windows, SEEN, bands, size, size), float16, NaN where missing
        self.codes = codes  # (windows, LEADS, size, size), uint8
        self.place = place

    def __len__(self) -> int:
        return len(self.place)

    def take(self, index: Tensor) -> Windows:
        """In single precision, on the device where they lie."""
        index = index.to(self.place.device)
        satellite = self.satellite.index_select(0, index).float()
        missing = satellite.isnan().any(dim=2)
        rate, valid = decoded(self.codes.index_select(0, index))
        return Windows(satellite.nan_to_num(0.0), missing.float(), rate, valid, self.place.index_select(0, index))


class DrawnWindows:
    """Windows of which none is kept: each is drawn, by itself, whenever it is asked for."""

    in_memory = False

    def __init__(self, wish: Wish, device: str) -> None:
        self.wish, self.device = wish, torch.device(device)

    def __len__(self) -> int:
        return self.wish.count

    def take(self, index: Tensor) -> Windows:
        """Those at a 1-D index."""
        parts = [_packed([self.wish.scene(number)], self.wish.size, self.device) for number in index.tolist()]
        satellite, codes = (torch.cat(column) for column in zip(*parts))
        place = index.to(self.device) % len(places(self.wish.regions))
        return PackedWindows(satellite, codes, place).take(torch.arange(len(index)))


def coded(rate: Tensor, valid: Tensor) -> Tensor:
    """Rates in mm/h as bytes, 3.5 % apart; 0.2 mm/h lies on a step, so wet and dry are kept exactly."""
    steps = torch.floor(torch.log(rate.clamp(min=1e-6) / WET) / _STEP) + _CODE_OF_WET
    code = torch.where(rate > 0, steps.clamp(1, _BLIND - 1), 0.0)
    # the logarithm of 0.2 itself may round to either side of its step
    code = torch.where(rate >= WET, code.clamp(min=_CODE_OF_WET), code.clamp(max=_CODE_OF_WET - 1))
    return torch.where(valid, code, float(_BLIND)).to(torch.uint8)


def decoded(code: Tensor) -> tuple[Tensor, Tensor]:
    """Rates in mm/h, the middle of each step, and 1 where a radar looked."""
    levels = WET * torch.exp((torch.arange(256, device=code.device) - _CODE_OF_WET + 0.5) * _STEP)
    levels[0] = levels[_BLIND] = 0.0
    return levels[code.long()], (code != _BLIND).float()


def _packed(scenes: Sequence[Scene], size: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Images and codes of some scenes, with the gaps that real ones have."""
    frames = Weather(scenes, size=size, device=device).frames(
        SEEN + LEADS, seen=range(SEEN), measured=range(SEEN, SEEN + LEADS)
    )
    mean, deviation = (torch.tensor(part, device=device)[:, None, None] for part in zip(*[band[2:4] for band in BANDS]))
    satellites, rates = [], []
    for frame in frames:
        if frame.satellite is not None:
            satellites.append(((frame.satellite - mean) / deviation).half())
        if frame.rate is not None:
            rates.append(frame.rate)
    satellite = torch.stack(satellites, dim=1)
    gaps = [Gaps(scene, size=size, frames=LEADS, images=SEEN) for scene in scenes]
    for index, each in enumerate(gaps):
        for image in range(SEEN):
            satellite[index, image, :, each.lines(image)] = float("nan")
    valid = torch.stack([torch.stack([each.valid(lead) for lead in range(LEADS)]) for each in gaps])
    return satellite, coded(torch.stack(rates, dim=1), valid.to(device))
