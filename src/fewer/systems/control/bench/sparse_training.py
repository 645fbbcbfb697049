"""Training of pruned networks: kept weights only against the same masked networks in ordinary torch.

BCQ and BC of the control task at the dimensions of HalfCheetah (papers/control.txt), the same losses, data, noise
and optimiser on both sides; the two differ in the engine alone. One thread, both measured in turns in one run.
"""

from __future__ import annotations

from functools import partial

import torch

from fewer.bench.row import Row, interleaved_seconds
from fewer.core.engines.base import Engine, Training
from fewer.core.engines.plain import Plain
from fewer.pruning.pruning import Pruning, prune_
from fewer.sparse.engine import sparse_engine
from fewer.sparse.linear import SparseLinear
from fewer.systems.control.bench.agents import random_logs
from fewer.systems.control.task.settings import Settings
from fewer.systems.control.task.task import Control

__all__ = ["engines", "run"]

BATCH, SPARSITY = 100, 0.95
LOGGED = 5000  # steps; their content does not change the rate
MASKED = "the same masked networks in torch, fused Adam"


def engines(settings: Settings, training: Training) -> tuple[Engine, Engine]:
    """Kept weights only, and masked networks; both pruned alike by SNIP."""
    task = Control(settings, logs=random_logs(LOGGED))
    sides = []
    for _ in range(2):
        plain = Plain(task, training, 0)
        prune_(plain, Pruning("snip", SPARSITY, samples=BATCH))
        sides.append(plain)
    return sparse_engine(sides[0]), sides[1]


def run(quick: bool = False) -> list[Row]:
    """Updates per second of BCQ and of BC, and the memory of training, at 95 % sparsity."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _rows(3 if quick else 11)
    finally:
        torch.set_num_threads(threads)


def _rows(rounds: int) -> list[Row]:
    rows = []
    for algorithm, required in (("bcq", 6.0), ("bc", 5.0)):
        settings = Settings(environment="halfcheetah", algorithm=algorithm)
        ours, theirs = engines(settings, Training(steps=1_000_000, batch=BATCH))
        calls = {"ours": partial(ours.advance, 1), "theirs": partial(theirs.advance, 1)}
        # a step is recorded and tried before it is repeated; turns are long enough that neither side works mostly
        # with the cache that the other has left behind
        seconds = interleaved_seconds(calls, rounds=rounds, repeats=10, warmup=6)
        speed = {name: 1 / value for name, value in seconds.items()}
        what = f"{algorithm.upper()} training, 95 % sparse, batch {BATCH}"
        ratio = speed["ours"] / speed["theirs"]
        rows.append(Row(what, speed["ours"], speed["theirs"], "updates/s", ratio, MASKED, required))
        if algorithm == "bcq":
            rows += _memory(ours, theirs)
    return rows


def _memory(ours: Engine, theirs: Engine) -> list[Row]:
    """Of weights, gradients and optimiser state; then with masks, a byte each, or positions, which copies share."""
    kept, dense = (_trained_bytes(side) for side in (ours, theirs))
    layers = [m for n in ours.state.networks.values() for m in n.module.modules() if isinstance(m, SparseLinear)]
    positions = sum({id(layer.pattern): layer.pattern.index_bytes for layer in layers}.values())
    masks = sum(theirs.state.networks[name].weights.numel() for name in _trained(theirs))
    return [
        Row(what, mine / 1e6, other / 1e6, "MB", other / mine, MASKED, 12.0)
        for what, mine, other in (
            ("BCQ weights, gradients, optimiser state", kept, dense),
            ("the same with masks or positions", kept + positions, dense + masks),
        )
    ]


def _trained(engine: Engine) -> list[str]:
    return [name for objective in engine.objectives for name in objective.trains]


def _trained_bytes(engine: Engine) -> int:
    weights = [engine.state.networks[name].weights for name in _trained(engine)]
    moments = [t for by_network in engine.state.moments for state in by_network.values() for t in state.values()]
    return sum(t.numel() * t.element_size() for t in (*weights, *weights, *moments))  # a gradient is like its weights
