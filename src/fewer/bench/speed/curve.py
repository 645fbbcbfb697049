"""One network and one size of batch: a pack at several sparsities and its dense peers, timed in turns."""

from __future__ import annotations

import itertools
import math
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fewer.bench.row import Row, interleaved_seconds
from fewer.bench.speed.networks import Subject, drawn, kept
from fewer.bench.speed.peers import ONNX, Call, peers
from fewer.packs.pack import load
from fewer.packs.runtime.runtime import Pack
from fewer.packs.trace.trace import trace
from fewer.zoo import path

__all__ = ["DENSITIES", "Curve", "curve", "shipped"]

# sparsities that are told, and denser ones between which a pack and onnxruntime meet
DENSITIES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
_TURN = 0.004  # processor seconds of a turn, at least, so that the clock's own steps do not count
_COMPILED = (1,)  # batches at which torch.compile, which takes longer than all the rest, is measured
_GLOBAL = 0.1  # density at which masks chosen over all layers are told beside


@dataclass(frozen=True)
class Curve:
    """Seconds of a prediction: ours by density, and the peers'."""

    name: str
    batch: int
    ours: Mapping[float, float]
    together: Mapping[float, float]  # masks chosen over all layers
    theirs: Mapping[str, float]
    error: float  # the largest difference from torch, or onnxruntime, as a share of the largest answer

    def ratio(self, density: float, peer: str = ONNX) -> float:
        """How many times faster a pack is."""
        return self.theirs[peer] / self.ours[density]

    @property
    def break_even(self) -> float | None:
        """The density up to which a pack is not slower than onnxruntime, on lines between what was measured."""
        known = sorted(self.ours)
        if self.ratio(known[0]) < 1:
            return None
        for low, high in itertools.pairwise(known):
            first, last = math.log(self.ratio(low)), math.log(self.ratio(high))
            if last < 0:
                return low + (high - low) * first / (first - last)
        return known[-1]

    def rows(self, required: Mapping[float, float]) -> list[Row]:
        """As `fewer bench` shows them: every sparsity against onnxruntime, the first against all peers."""
        found = []
        for density, seconds in self.ours.items():
            for peer, theirs in self.theirs.items():
                what = f"{self.name}, {100 * (1 - density):.3g} %, batch {self.batch}"
                bar = required.get(density) if peer == ONNX else None
                found.append(Row(what, seconds * 1e6, theirs * 1e6, "us", theirs / seconds, f"{peer} dense", bar))
        for density, seconds in self.together.items():
            what = f"{self.name}, {100 * (1 - density):.3g} % over all layers, batch {self.batch}"
            theirs = self.theirs[ONNX]
            found.append(Row(what, seconds * 1e6, theirs * 1e6, "us", theirs / seconds, f"{ONNX} dense"))
        return found


def timed(calls: Mapping[Any, Call], rounds: int) -> dict[Any, float]:
    """Median processor seconds, in turns that are long enough for the clock; of long ones three to five are enough."""
    once = []
    for call in calls.values():
        call()
        begin = time.process_time()
        call()
        once.append(time.process_time() - begin)
    repeats = max(1, min(500, math.ceil(_TURN / max(min(once), 1e-6))))
    enough = 9 if sum(once) < 1 else 5 if sum(once) < 3 else 3
    return interleaved_seconds(calls, rounds=min(rounds, enough), repeats=repeats, warmup=0)


def curve(subject: Subject, batch: int, *, densities: Sequence[float] = DENSITIES, quick: bool = False) -> Curve:
    """Measured now."""
    x = np.random.default_rng(0).standard_normal((batch, *subject.shape)).astype(np.float32)
    net = drawn(subject)
    with torch.no_grad():
        program, tensors = trace(net, {"x": torch.from_numpy(x[:1]).expand(2, *subject.shape).clone()})
    wanted = [(density, False) for density in densities]
    if _GLOBAL in densities and _connected(kept(tensors, _GLOBAL, together=True)):
        wanted.append((_GLOBAL, True))
    packs = {(d, over_all): Pack({"net": program}, kept(tensors, d, together=over_all)) for d, over_all in wanted}
    first = packs[densities[0], False]
    few = kept({name: value.detach().numpy() for name, value in net.named_parameters()}, densities[0])
    net.load_state_dict({name: torch.from_numpy(value) for name, value in few.items()}, strict=False)
    with torch.inference_mode(), tempfile.TemporaryDirectory() as folder:
        wanted_answer = net(torch.from_numpy(x)).numpy()
        calls: dict[Any, Call] = {key: (lambda p=pack: p.predict(x)) for key, pack in packs.items()}  # type: ignore[misc]
        calls |= peers(first, net, {"x": x}, Path(folder), compiles=not quick and batch in _COMPILED)
        seconds = timed(calls, 3 if quick else 9)
    error = np.abs(first.predict(x) - wanted_answer).max() / np.abs(wanted_answer).max()
    return Curve(
        subject.name, batch, {d: seconds[d, False] for d in densities},
        {d: seconds[d, True] for d, together in packs if together},
        {name: value for name, value in seconds.items() if isinstance(name, str)}, float(error),
    )  # fmt: skip


def _connected(tensors: Mapping[str, Any]) -> bool:
    """Whether every matrix keeps something: a mask over all layers that removes one would be fast for no merit."""
    return all(np.count_nonzero(value) > value.size / 1000 for value in tensors.values() if value.ndim > 1)


def shipped(name: str, batch: int, *, quick: bool = False) -> Curve:
    """A pack that comes with the package, as it is, at the density it has."""
    pack = load(path(name))
    inputs, lot = next(iter(pack.networks.values())).inputs, np.random.default_rng(0)
    drawn = {one.name: lot.random((batch, *one.shape)) for one in inputs}
    x = {one.name: np.asarray(drawn[one.name], dtype=one.dtype) for one in inputs}
    with tempfile.TemporaryDirectory() as folder:
        rivals = dict(peers(pack, None, x, Path(folder), compiles=False))
        only = next(iter(x.values()))
        calls: dict[Any, Call] = {"ours": (lambda: pack.predict(only)) if len(x) == 1 else lambda: pack.predict(**x)}
        seconds = timed(calls | rivals, 3 if quick else 9)
        answers = [calls["ours"](), rivals[ONNX]()]
    ours, theirs = (one if isinstance(one, tuple | list) else [one] for one in answers)
    error = max(float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-30)) for a, b in zip(ours, theirs))
    return Curve(name, batch, {_density(pack): seconds.pop("ours")}, {}, seconds, error)


def _density(pack: Pack) -> float:
    matrices = [value for value in pack.tensors().values() if value.ndim > 1]
    return sum(int(np.count_nonzero(value)) for value in matrices) / sum(value.size for value in matrices)
