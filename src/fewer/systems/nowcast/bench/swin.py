"""Training Swin-UNETR: ours, through the task and its engine, against plain eager MONAI with bfloat16 in the same run.

`fewer bench nowcast`; with choices, `python -m fewer.systems.nowcast.bench.swin --batch 2 --ways quick+compile`.
Every row is printed on the error stream when it is measured, as a line of JSON: compiling takes minutes.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from fewer.bench.overview import Line, line_text
from fewer.bench.row import Row
from fewer.core.data import TensorData
from fewer.core.engines.base import Training
from fewer.core.engines.optimizer import Optimizer
from fewer.core.engines.plain import Plain
from fewer.core.task import Data
from fewer.systems.nowcast.task.bands import BANDS
from fewer.systems.nowcast.task.models.swin import Swin
from fewer.systems.nowcast.task.task import Nowcast, Settings
from fewer.systems.nowcast.task.windows import LEADS, SEEN, Windows

__all__ = ["run"]

WAYS = ("quick", "compile", "quick+compile", "quick+compile+last")  # last: channels last in memory
_REQUIRED = 1.6


@dataclass(frozen=True)
class Case:
    """A shape: the volume is 32 x side x side, side the next multiple of 32."""

    size: int
    width: int
    batch: int
    steps: int

    @property
    def side(self) -> int:
        return max(64, -(-self.size // 32) * 32)


@dataclass(frozen=True)
class Measured:
    """Of one way to train."""

    samples_per_second: float
    peak_gib: float  # 0 where it is not known: on a CPU


class RandomWeather(Nowcast):
    """The task on noise: speed does not depend on what falls."""

    def _split(self, split: str) -> Data[Windows]:
        if split not in self._data:
            size, count = self.size, 4
            torch.manual_seed(0)
            rain = torch.rand(count, LEADS, size, size)
            satellite, missing = torch.randn(count, SEEN, len(BANDS), size, size), torch.zeros(count, SEEN, size, size)
            windows = Windows(satellite, missing, rain, torch.ones_like(rain), torch.zeros(count, dtype=torch.int64))
            self._data[split] = TensorData(windows)
        return self._data[split]


def run(quick: bool = False) -> list[Row]:
    """On CUDA the competition's volume, 32 x 256 x 256, batch 2; on a CPU a small one, which says so."""
    if torch.cuda.is_available():
        return measure(Case(252, 24, 2, 5 if quick else 20), ("quick", "quick+compile"))
    return measure(Case(42, 12, 1, 2 if quick else 5), ("quick",))


def measure(case: Case, ways: Sequence[str]) -> list[Row]:
    """A row of speed and one of memory for each way."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    theirs = _timed(_monai(case, device), case, device)
    _say({"way": "monai eager bfloat16", "device": device, **dataclasses.asdict(theirs)})
    rows = []
    for way in ways:
        ours = _timed(_ours(case, way, device), case, device)
        _say({"way": way, "device": device, **dataclasses.asdict(ours)})
        rows += _rows(case, way, device, ours, theirs)
        gc.collect()
        torch.cuda.empty_cache()
    return rows


def _say(line: dict[str, object]) -> None:
    print(json.dumps(line), file=sys.stderr, flush=True)


def _rows(case: Case, way: str, device: str, ours: Measured, theirs: Measured) -> list[Row]:
    shape = f"32x{case.side}x{case.side}, width {case.width}, batch {case.batch}, {device}"
    speed = ours.samples_per_second / theirs.samples_per_second
    required = _REQUIRED if device == "cuda" and "compile" in way else None
    rows = [
        Row(
            f"Swin-UNETR {way}, {shape}", ours.samples_per_second, theirs.samples_per_second, "samples/s", speed,
            "MONAI eager, bfloat16", required,
        )
    ]  # fmt: skip
    if theirs.peak_gib:
        ratio = theirs.peak_gib / ours.peak_gib
        what = f"Swin-UNETR {way}, peak memory"
        rows.append(
            Row(what, ours.peak_gib, theirs.peak_gib, "GiB", ratio, "MONAI eager, bfloat16", 1.0 if required else None)
        )
    return rows


def _ours(case: Case, way: str, device: str) -> Callable[[], None]:
    """A step of the engine, data and optimiser included."""
    words = way.split("+")
    training = Training(
        steps=10_000, batch=case.batch, device=device, precision="bfloat16", compile="compile" in words,
        optimizer=Optimizer("adamw", lr=1e-4, weight_decay=2e-2),
    )  # fmt: skip
    settings = Settings(model="swin", size=case.size, width=case.width, positive_weight=2.5)
    engine = Plain(RandomWeather(settings), training, 0)
    for part in engine.modules["net"].modules():
        if isinstance(part, Swin):
            part.channels_last = "last" in words
        elif hasattr(part, "everywhere"):
            setattr(part, "everywhere", "quick" in words and device == "cpu")  # noqa: B010
            setattr(part, "never", "quick" not in words)  # noqa: B010
    if device == "cuda":
        torch.backends.cudnn.benchmark = True
    return lambda: engine.advance(1)


def _monai(case: Case, device: str) -> Callable[[], None]:
    """The loop that anybody would write around MONAI's network, its volume ready in memory."""
    from monai.networks.nets.swin_unetr import SwinUNETR

    torch.manual_seed(0)
    net = SwinUNETR(in_channels=len(BANDS), out_channels=1, feature_size=case.width).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, weight_decay=2e-2, fused=True)
    shape = (case.batch, len(BANDS), LEADS, case.side, case.side)
    volume = torch.randn(shape, device=device)
    rain = (torch.rand(case.batch, 1, *shape[2:], device=device) < 0.1).float()
    weight = torch.tensor(2.5, device=device)
    if device == "cuda":
        torch.backends.cudnn.benchmark = True
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, torch.bfloat16):
            logits: Tensor = net(volume)
        functional.binary_cross_entropy_with_logits(logits.float(), rain, pos_weight=weight).backward()
        optimizer.step()

    return step


def _timed(step: Callable[[], None], case: Case, device: str) -> Measured:
    """Samples a second after warming up, and the most memory that was in use meanwhile."""
    cuda = device == "cuda"
    for _ in range(3 if cuda else 1):
        step()
    if cuda:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    begin = time.perf_counter()
    for _ in range(case.steps):
        step()
    if cuda:
        torch.cuda.synchronize()
    seconds = time.perf_counter() - begin
    return Measured(case.batch * case.steps / seconds, torch.cuda.max_memory_allocated() / 2**30 if cuda else 0.0)


def main() -> None:
    """Arguments for those who wait for a GPU."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=252)
    parser.add_argument("--width", type=int, default=24)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--ways", default="quick,quick+compile", help=f"of {', '.join(WAYS)}, by commas")
    given = parser.parse_args()
    for row in measure(Case(given.size, given.width, given.batch, given.steps), given.ways.split(",")):
        print(line_text(Line("nowcast", row)))


if __name__ == "__main__":
    main()
