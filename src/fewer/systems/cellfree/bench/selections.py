"""Selections a second: the local model in torch at two sizes, pruned and packed, one phone at a time, distilled.

Speeds do not depend on the values of weights, so networks are fresh and masks random; what pruning costs in quality
is a study's question. Everything is timed in turns within one run; the ratio is how far ours is beyond what is asked.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fewer.bench.row import Row, interleaved_seconds
from fewer.core.engines.evaluate import predictor
from fewer.core.engines.state import fresh_modules
from fewer.core.mask import prunable
from fewer.core.seed import Stream
from fewer.packs import pack
from fewer.packs.trace.trace import trace
from fewer.systems.cellfree.presets import PRESETS
from fewer.systems.cellfree.studies.cost import costs
from fewer.systems.cellfree.task.models.site import site_network, site_reports
from fewer.systems.cellfree.task.selectors.kriging import Kriging
from fewer.systems.cellfree.task.selectors.trained import Trained
from fewer.systems.cellfree.task.settings import Settings
from fewer.systems.cellfree.task.task import CellFree, Phones, phones_of

__all__ = ["run"]

USES_PACKS = True  # and is slower where the C kernels are missing

BATCH = 4096
KEPT = 0.1


def run(quick: bool = False) -> list[Row]:
    """The rows that the task is asked for."""
    rounds = 7 if quick else 25
    small, large = _task(100), _task(1000 if quick else 10_000)
    modules = fresh_modules(small, 0)
    calls: dict[str, Callable[[], object]] = {}
    for name, task in (("small", small), ("large", large)):
        calls[name] = _call(predictor(task, fresh_modules(task, 0)), phones_of(task.survey("train")))
    with tempfile.TemporaryDirectory() as folder:
        _prune_(modules)
        packed = _packed(small, modules, Path(folder) / "network.pack")
        batch = phones_of(small.survey("train"))
        arrays = [leaf.numpy() for leaf in small.inputs(batch)]
        calls["pack"] = lambda: packed.predict(*arrays)
        seconds = interleaved_seconds(calls, rounds=rounds)
        site = _site_pack(small, modules, batch, Path(folder) / "site.pack")
        one = [array[0] for array in arrays]
        report = site_reports(batch.rsrp_db[0], batch.reported[0]).numpy()
        single = interleaved_seconds(
            {"site": lambda: site.predict(report), "whole": lambda: packed.predict(*one)}, rounds=rounds, repeats=200
        )
    speed = {name: BATCH / value for name, value in seconds.items()}
    size = len(large.world.deployment)
    return [
        _fast("local model, 100 access points, batches", speed["small"], 60_000.0),
        Row(f"the same at {size} access points", speed["large"], speed["small"], "phones/s",
            speed["large"] / speed["small"], "100 access points", 0.8),
        _fast("pruned to 90 %, through a pack, batches", speed["pack"], 200_000.0),
        _short("one phone, the master's own pack", 1e6 * single["site"]),
        _short("one phone, the whole network's pack", 1e6 * single["whole"]),
        *_teacher(small, quick),
    ]  # fmt: skip


def _teacher(task: CellFree, quick: bool) -> list[Row]:
    """The distilled selector beside kriging, which taught it, and beside the local model; both networks dense."""
    train, words = task.survey("train"), PRESETS["distilled"]["settings"]
    ready = {
        "local": Trained("local", steps=0), "kriging": Kriging(),
        "distilled": Trained("distilled", steps=0, changes={"width": words["width"]}),
    }  # fmt: skip
    fitted = {name: one.fit(task.world, survey=train) for name, one in ready.items()}
    cost = costs(fitted, task.world.survey(1000 if quick else BATCH, part="speed"))
    found = {name: one["batch_us"] for name, one in cost.items()}
    ours = found["distilled"]
    return [
        Row("distilled, cost a phone in batches", ours, found["local"], "us", found["local"] / ours, "local", 0.1),
        Row("the same beside its teacher", ours, found["kriging"], "us", found["kriging"] / ours, "kriging"),
    ]


def _task(access_points: int) -> CellFree:
    side = 100.0 * access_points**0.5
    return CellFree(
        Settings(access_points=access_points, side_m=side, train_phones=BATCH, test_phones=100, shadowing="spectral")
    )


def _call(predict: Callable[[Any], Any], batch: Phones) -> Callable[[], object]:
    return lambda: predict(batch)


def _fast(what: str, ours: float, asked: float) -> Row:
    return Row(what, ours, asked, "phones/s", ours / asked, "what is asked", 1.0)


def _short(what: str, ours: float) -> Row:
    return Row(what, ours, 50.0, "us", 50.0 / ours, "what is asked", 1.0)


def _prune_(modules: dict[str, Any]) -> None:
    """Keep a random tenth of every matrix."""
    random = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name in prunable(modules["net"]):
            weight = modules["net"].get_parameter(name)
            weight.mul_(torch.rand(weight.shape, generator=random) < KEPT)


def _packed(task: CellFree, modules: dict[str, Any], path: Path) -> pack.Pack:
    example = task.inputs(task.data("train").take(torch.arange(2)))
    noise = Stream(torch.tensor(0), torch.tensor(0))
    program, tensors = trace(
        lambda nets, *leaves: task.predict(nets, type(example)(*leaves), noise), example._asdict(), networks=modules
    )
    pack.write(path, program, tensors)
    return pack.load(path)


def _site_pack(task: CellFree, modules: dict[str, Any], batch: Phones, path: Path) -> pack.Pack:
    network = site_network(task, modules, int(np.bincount(batch.master.numpy()).argmax()))
    program, tensors = trace(network, [site_reports(batch.rsrp_db[:2], batch.reported[:2])])
    pack.write(path, program, tensors)
    return pack.load(path)
