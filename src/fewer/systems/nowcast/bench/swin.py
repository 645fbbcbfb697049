"""Training Swin-UNETR: ours, through the task and its engine, against plain eager MONAI with bfloat16 in the same run.

`fewer bench nowcast`; with choices, `python -m fewer.systems.nowcast.bench.swin --batch 2 --ways quick+compile`.
Every row is printed on the error stream when it is measured, as a line of JSON: compiling takes minutes.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from fewer.bench.overview import Line, line_text, write
from fewer.bench.row import Row
from fewer.core.data import TensorData
from fewer.core.engines.base import Training
from fewer.core.engines.optimizer import Optimizer
from fewer.core.engines.plain import Plain
from fewer.core.errors import UserError
from fewer.core.task import Data
from fewer.systems.nowcast.task.bands import BANDS
from fewer.systems.nowcast.task.models.layout import channels_last_
from fewer.systems.nowcast.task.models.swin import Swin
from fewer.systems.nowcast.task.task import Nowcast, Settings
from fewer.systems.nowcast.task.windows import LEADS, SEEN, Windows

__all__ = ["NOTES", "PLACE", "TITLE", "run"]

TITLE = "Training Swin-UNETR: volumes of 32 images, against plain eager MONAI with bfloat16 in the same run"
PLACE = 6
NOTES = ("After compiling (a minute or more) and warming up; ours through the task and its engine, data included.",)

# quick: our attention; sdpa: that of torch instead of our kernels; last: channels last in memory
WAYS = ("quick", "compile", "quick+compile", "quick+compile+sdpa", "quick+compile+last")
_REQUIRED = 2.4
_PEER = "monai"  # eager, bfloat16
_TURNS = 3


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
        return measure(Case(252, 24, 2, 5 if quick else 10), ("quick", "quick+compile"))
    return measure(Case(42, 12, 1, 2 if quick else 5), ("quick",))


def measure(case: Case, ways: Sequence[str], wait: str = "") -> list[Row]:
    """A row of speed and one of memory for each way.

    Every way has a process and so a memory of its own. All get ready, which takes minutes where they compile; then they
    are timed in turns, one at a time. `wait` names a file whose coming says that nobody else uses the machine.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    names = (_PEER, *ways)
    places = {name: _Place(name, case, device) for name in names}
    ready = [name for name in names if places[name].answer()]
    _say({"ready": ready, "device": device})
    while wait and not Path(wait).exists():
        time.sleep(0.2)
    for name in ready:
        places[name].ask("settle")
    rounds = [{name: places[name].ask("time") for name in ready} for _ in range(_TURNS)]
    turns = {name: [one[name] for one in rounds] for name in ready}
    for place in places.values():
        place.close()
    found = {name: _middle([one for one in own if one is not None]) for name, own in turns.items() if any(own)}
    for name, one in found.items():
        _say({"way": name, "device": device, **dataclasses.asdict(one)})
    if _PEER not in found:
        raise UserError("MONAI's network, which could not be timed", "memory and time for it", "see the lines above")
    return [row for way in ways if way in found for row in _rows(case, way, device, found[way], found[_PEER])]


def _middle(own: Sequence[Measured]) -> Measured:
    return Measured(statistics.median(one.samples_per_second for one in own), max(one.peak_gib for one in own))


class _Place:
    """A process that trains in one way when it is asked to."""

    def __init__(self, name: str, case: Case, device: str) -> None:
        context = get_context("spawn")
        self.name = name
        self.line, theirs = context.Pipe()
        self.process = context.Process(target=_train, args=(name, case, device, theirs), daemon=True)
        self.process.start()
        theirs.close()

    def ask(self, word: str) -> Measured | None:
        """Its answer; None where it died."""
        try:
            self.line.send(word)
        except OSError:
            return None
        found = self.answer()
        return found if isinstance(found, Measured) else None

    def answer(self) -> Measured | bool:
        """What it says next; False where it died."""
        try:
            found: Measured | bool = self.line.recv()
        except (EOFError, OSError):
            return False
        return found

    def close(self) -> None:
        """It is not needed any more."""
        self.line.close()
        self.process.join()


def _train(name: str, case: Case, device: str, line: Connection) -> None:
    """In its process: get ready, then do what is asked until nobody is there."""
    torch.set_num_threads(1)
    step = _monai(case, device) if name == _PEER else _ours(case, name, device)
    for _ in range(3 if device == "cuda" else 1):
        step()
    line.send(True)
    with suppress(EOFError):
        while word := line.recv():
            if word == "settle" and device == "cuda":
                # cuDNN chose kernels while others were at work; another setting, which numbers of 16 bit do not feel,
                # makes it choose again
                torch.backends.cudnn.allow_tf32 = not torch.backends.cudnn.allow_tf32
                for _ in range(3):
                    step()
            line.send(_timed(step, case, device))


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
            if "last" in words:
                channels_last_(part.net)
        elif hasattr(part, "everywhere"):
            setattr(part, "everywhere", "quick" in words and device == "cpu")  # noqa: B010
            setattr(part, "never", "quick" not in words)  # noqa: B010
            setattr(part, "kernels", "sdpa" not in words)  # noqa: B010
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
    """Samples a second, and the most memory that was in use meanwhile."""
    cuda = device == "cuda"
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
    parser.add_argument("--wait", default="", metavar="FILE", help="get ready, and time when this file has come")
    parser.add_argument("--out", default="", metavar="FOLDER", help="write bench-nowcast.json there")
    given = parser.parse_args()
    case = Case(given.size, given.width, given.batch, given.steps)
    lines = [Line("nowcast", row) for row in measure(case, given.ways.split(","), given.wait)]
    print("\n".join(map(line_text, lines)))
    if given.out:
        command = f"python -m {__spec__.name} --batch {given.batch} --steps {given.steps} --ways {given.ways}"
        write(Path(given.out), lines, command)


if __name__ == "__main__":
    main()
