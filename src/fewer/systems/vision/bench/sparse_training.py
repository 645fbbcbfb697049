"""Training of pruned image networks: kept weights only against torch's dense step, and against masked networks.

The digit CNN and the slim ResNet-18 at the size of CIFAR, the same share removed from every layer. The dense step is
written out in torch, with its fused Adam; the masked one is the plain engine's. One thread, in turns in one run. What
the photographs show does not change the rate: they are noise.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

from fewer.bench.row import Row, interleaved_seconds
from fewer.core.engines.base import Engine, Training
from fewer.core.engines.plain import Plain
from fewer.pruning.pruning import Pruning, prune_
from fewer.sparse.engine import sparse_engine
from fewer.systems.vision.task.task import Settings, Vision

__all__ = ["NOTES", "TITLE", "run"]

TITLE = (
    "Convolutional networks that train on kept weights alone against torch's dense step and against the same masked "
    "networks, the same share removed from every layer, batch 128"
)
NOTES = ("One thread, processor time, medians of turns of two steps: three turns with --quick, else nine.",)

BATCH = 128
DENSE, MASKED = "torch's dense step, fused Adam", "the same masked network in torch"
NETWORKS = {"small-cnn": "digit CNN", "resnet18-slim": "slim ResNet-18"}
SPARSITIES = (0.9, 0.95, 0.98)
REQUIRED = {("resnet18-slim", 0.95): 2.0}


def run(quick: bool = False) -> list[Row]:
    """Updates per second at 90, 95 and 98 % sparsity."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with tempfile.TemporaryDirectory() as folder:
            photographs = Path(folder) / "noise.npz"
            _write_noise(photographs)
            return [
                row
                for network in NETWORKS
                for row in _rows(network, "digits" if network == "small-cnn" else str(photographs), 3 if quick else 9)
            ]
    finally:
        torch.set_num_threads(threads)


def _write_noise(path: Path) -> None:
    lot = np.random.default_rng(0)
    pixels = lot.integers(0, 256, (1000, 32, 32, 3), dtype=np.uint8)
    np.savez(path, images=pixels, labels=np.arange(1000) % 10)


def _rows(network: str, data: str, rounds: int) -> list[Row]:
    task = Vision(Settings(network=network, data=data))
    sides: dict[str, Callable[[], object]] = {"dense": _dense(task)}
    for sparsity in SPARSITIES:
        sides[f"masked {sparsity}"] = partial(_masked(task, sparsity).advance, 1)
        sides[f"kept {sparsity}"] = partial(sparse_engine(_masked(task, sparsity)).advance, 1)
    seconds = interleaved_seconds(sides, rounds=rounds, repeats=2, warmup=4)
    rows = []
    for sparsity in SPARSITIES:
        ours = 1 / seconds[f"kept {sparsity}"]
        what = f"{NETWORKS[network]} training, {100 * sparsity:g} % sparse, batch {BATCH}"
        for theirs, against, required in (
            (1 / seconds["dense"], DENSE, REQUIRED.get((network, sparsity))),
            (1 / seconds[f"masked {sparsity}"], MASKED, None),
        ):
            rows.append(Row(what, ours, theirs, "updates/s", ours / theirs, against, required))
    return rows


def _masked(task: Vision, sparsity: float) -> Engine:
    engine = Plain(task, Training(steps=1_000_000, batch=BATCH), 0)
    prune_(engine, Pruning("magnitude", sparsity, scope="layer", samples=BATCH))
    return engine


def _dense(task: Vision) -> Callable[[], object]:
    """A step as one writes it in torch."""
    torch.manual_seed(0)
    net, samples = task.networks()["net"], task.data("train")
    optimizer = torch.optim.Adam(net.parameters(), 1e-3, fused=True)

    def step() -> None:
        batch = samples.take(torch.randint(len(samples), (BATCH,)))
        optimizer.zero_grad()
        functional.cross_entropy(net(batch.pixels.float()), batch.label.long()).backward()
        optimizer.step()

    return step
