"""Pieces of the nowcast studies: one model trained, and what it forecasts for every window, in a few megabytes.

Votes need all members' forecasts of the same windows, and a GPU is often lent for minutes only. A piece therefore
leaves its probabilities in steps of 0.01, one byte a pixel before compression: thresholds that are multiples of 0.01
are exact, means good to 0.005. The truth of the windows is a piece of its own; wet pixels of each window tell whether a
forecast belongs to it.
"""

from __future__ import annotations

import dataclasses
import io
import json
import shutil
import time
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fewer.core.data import batches
from fewer.core.engines.evaluate import predictor
from fewer.core.engines.loop import Loop, fit
from fewer.core.errors import UserError
from fewer.core.files import checkpoint
from fewer.core.files.atomic import write_atomically
from fewer.core.machine.versions import versions
from fewer.core.task import Data, Predict
from fewer.studies.study import hardware
from fewer.systems.nowcast.studies.filed import Every
from fewer.systems.nowcast.studies.members import Member, member
from fewer.systems.nowcast.studies.place import JUDGED, Place
from fewer.systems.nowcast.studies.scales import Scale
from fewer.systems.nowcast.task.baselines.climatology import Climatology
from fewer.systems.nowcast.task.baselines.persistence import SatelliteExtrapolation, SatellitePersistence
from fewer.systems.nowcast.task.scores.scores import LEVELS, leveled, wet
from fewer.systems.nowcast.task.task import Nowcast
from fewer.systems.nowcast.task.windows import Windows

__all__ = [
    "BASELINES",
    "STEPS",
    "Truth",
    "levels",
    "maps",
    "record",
    "run_piece",
    "same_windows",
    "samples_a_second",
    "truth",
]

STEPS = LEVELS  # of probability that are kept: all that scores tell apart
BASELINES: dict[str, Callable[[Data[Windows]], Predict]] = {
    "climatology": Climatology,
    "satellite-persistence": SatellitePersistence,
    "satellite-extrapolation": SatelliteExtrapolation,
}
_MAPPED = 2800  # windows at most from which climatologies are counted where they have to be read or drawn anew
_TIMED = 6  # steps from which a speed is told, after as many that warm up


@dataclass(frozen=True)
class Truth:
    """What fell in the windows of a split."""

    raining: NDArray[np.bool_]  # (windows, leads, size, size)
    valid: NDArray[np.bool_]
    place: NDArray[np.int64]

    def wet_pixels(self) -> list[int]:
        """Of each window: what tells one set of windows from another, whatever the last bit of a rate."""
        return [int(count) for count in self.raining.sum((1, 2, 3))]


def run_piece(name: str, place: Place) -> dict[str, Any]:
    """The truth, a baseline or a member: found if it is there, made and saved if not."""
    path = place.path(name, "json")
    if path.exists():
        return _alike(json.loads(path.read_text()), place.scale, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    details: dict[str, Any] = {}
    if name == "truth":
        arrays: dict[str, NDArray[Any]] = {}
        for split in JUDGED:
            found = _fallen(place.data(split), place.per_batch)
            arrays |= {f"{split}_raining": np.packbits(found.raining), f"{split}_valid": np.packbits(found.valid)}
            arrays |= {f"{split}_place": found.place, f"{split}_shape": np.array(found.raining.shape)}
        arrays |= {f"{split}_wet": _wet_maps(place, split) for split in ("train", "validation")}
        details = {"regions": place.regions}
    else:
        if name in BASELINES:
            forecast: Predict = BASELINES[name](_some(place.data("train")))
        else:
            forecast, details = _trained(member(name), place)
        with torch.compiler.set_stance("force_eager"):  # compiling once more would take longer than all forecasts
            arrays = {split: _levels(forecast, place.data(split), place.per_batch) for split in JUDGED}
    wet_pixels = {split: _fallen(place.data(split), place.per_batch).wet_pixels() for split in JUDGED}
    made = {"scale": dataclasses.asdict(place.scale), "steps": STEPS, "hardware": hardware(), "versions": versions()}
    seconds = round(time.monotonic() - begin, 1)
    content = {"piece": name, "wet_pixels": wet_pixels, "seconds": seconds, **details, **made}
    packed = _zipped(arrays)
    write_atomically(place.path(name, "npz"), packed)
    write_atomically(path, (json.dumps(content, indent=1) + "\n").encode())
    shutil.rmtree(place.unfinished(name).path, ignore_errors=True)
    place.log(f"{name}: {content['seconds']} s, {len(packed) / 1e6:.1f} MB")
    return content


def _some(data: Data[Windows]) -> Data[Windows]:
    """Windows spread over the data; all of them where they lie in memory."""
    return data if data.in_memory else Every(data, 0, -(-len(data) // _MAPPED))


def _wet_maps(place: Place, split: str) -> NDArray[np.float32]:
    """(regions, size, size): how often it rains at each pixel of each region-year."""
    found = Climatology(_some(place.data(split)))
    return found.at(torch.arange(len(place.regions)))[:, 0].numpy()


def _zipped(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """As numpy's own, six times as fast and half as large again: forecasts of thousands of windows took a minute."""
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as held:
        for name, array in arrays.items():
            with held.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array)
    return memory.getvalue()


def record(name: str, place: Place) -> dict[str, Any] | None:
    """What is known of a finished piece."""
    path = place.path(name, "json")
    return _alike(json.loads(path.read_text()), place.scale, path) if path.exists() else None


def _alike(found: dict[str, Any], scale: Scale, path: Path) -> dict[str, Any]:
    """The same, if it may stand beside pieces of that scale made today."""
    if found.get("steps") != STEPS:
        raise UserError(f"{path} in steps of another size", f"forecasts in {STEPS} steps", "choose another --out")
    wanted = json.loads(json.dumps(dataclasses.asdict(scale)))
    del wanted["compile"]  # as fast as it likes
    if apart := [key for key, value in wanted.items() if found.get("scale", {}).get(key) != value]:
        raise UserError(f"{path} of another scale ({', '.join(apart)})", "pieces of one scale", "choose another --out")
    return found


def _trained(one: Member, place: Place) -> tuple[Predict, dict[str, Any]]:
    scale, engine = place.scale, place.engine(one)
    task, training = engine.task, engine.training
    assert isinstance(task, Nowcast)
    steps = training.steps
    folder = place.unfinished(one.name)
    with folder.locked():
        folder.claim({"scale": {**dataclasses.asdict(scale), "compile": False}, "device": place.device}, versions())
        if checkpoint.restore_(engine, folder):
            place.log(f"{one.name}: goes on after step {engine.count} of {steps}")
        begin, before = time.monotonic(), engine.count
        fit(engine, folder, loop=Loop(log_every=max(steps // 20, 1)))
        seconds, trained = time.monotonic() - begin, (engine.count - before) * training.batch
        losses = folder.lines()
    place.log(f"{one.name}: {trained} samples, {trained / seconds:.2f} samples/s")
    modules = engine.state.modules_of(0)
    details = {
        "samples": steps * training.batch,
        "training_seconds": round(seconds, 1),
        "went_on_after": before * training.batch,  # samples that an earlier call had learnt from
        "parameters": sum(parameter.numel() for parameter in modules["net"].parameters()),
        "settings": dataclasses.asdict(task.settings),
        "optimizer": dataclasses.asdict(training.optimizer),
        "precision": training.precision,
        "positive_weight": task.positive_weight,
        "losses": [list(line.values())[-1] for line in losses],
    }
    return predictor(task, modules, scale.seed), details


def samples_a_second(name: str, place: Place) -> float:
    """Of training, compilation and warm-up apart."""
    engine = place.rehearsed().engine(member(name))
    engine.advance(_TIMED)
    engine.mean_losses()  # waits for the device
    begin = time.monotonic()
    engine.advance(_TIMED)
    engine.mean_losses()
    return _TIMED * engine.training.batch / (time.monotonic() - begin)


def _levels(forecast: Predict, data: Data[Windows], per_batch: int) -> NDArray[np.uint8]:
    """Probabilities in steps of 1 / STEPS, rounded down, so that p >= k / STEPS exactly where the level is >= k."""
    found = []
    for index in batches(data, per_batch):
        probability = forecast(data.take(index)).float().nan_to_num(0.0)
        found.append(leveled(probability).to(torch.uint8).cpu().numpy())
    return np.concatenate(found)


def _fallen(data: Data[Windows], per_batch: int) -> Truth:
    parts = []
    for index in batches(data, per_batch):
        batch = data.take(index)
        seen = batch.valid > 0
        found = (wet(batch.rate.float()) & seen, seen, batch.place.long())
        parts.append([part.cpu().numpy() for part in found])
    return Truth(*[np.concatenate(column) for column in zip(*parts)])


def same_windows(first: dict[str, Any], second: dict[str, Any]) -> bool:
    """Whether two pieces judge the same windows: wet pixels to a thousandth, as a GPU may round a rate either way."""
    for split in JUDGED:
        counts = [np.array(piece["wet_pixels"][split]) for piece in (first, second)]
        if counts[0].shape != counts[1].shape or not np.allclose(counts[0], counts[1], rtol=1e-3, atol=5):
            return False
    return True


def _opened(name: str, place: Place) -> Any:
    path = place.path(name, "npz")
    if not path.exists():
        raise UserError(f"no {path}", "a finished piece", f"fewer reproduce nowcast/table1 --pieces {name} --out DIR")
    return np.load(path, allow_pickle=False)


def truth(split: str, place: Place) -> Truth:
    """What fell, from its piece."""
    with _opened("truth", place) as held:
        shape = tuple(held[f"{split}_shape"])
        count = int(np.prod(shape))
        raining, valid = (
            np.unpackbits(held[f"{split}_{part}"], count=count).reshape(shape).astype(bool)
            for part in ("raining", "valid")
        )
        return Truth(raining, valid, held[f"{split}_place"])


def maps(split: str, place: Place) -> NDArray[np.float32]:
    """(regions, size, size): how often it rained in the training or the validation windows."""
    with _opened("truth", place) as held:
        found: NDArray[np.float32] = held[f"{split}_wet"]
        return found


def levels(name: str, split: str, place: Place) -> NDArray[np.uint8]:
    """A piece's forecasts, (windows, leads, size, size) in steps of 1 / STEPS."""
    with _opened(name, place) as held:
        found: NDArray[np.uint8] = held[split]
        return found
