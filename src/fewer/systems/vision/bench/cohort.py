"""Many replicas in lock-step against the eager loop: aggregate updates a second."""

from __future__ import annotations

import time
from typing import Any

import torch

from fewer.attack.hardening.harden import harden
from fewer.bench.row import Row
from fewer.core.engines.base import Engine, Training
from fewer.core.engines.cohort import Cohort
from fewer.core.engines.plain import Plain
from fewer.core.task import Task
from fewer.systems.vision.task.task import Settings, Vision

__all__ = ["run"]

# network, hardening, required ratio on CUDA
CASES = (
    ("mlp", "", 100.0),
    ("mlp", "pgd:0.3,ramp=0", 100.0),
    ("cnn0", "pgd:0.3,ramp=0", 20.0),
    ("cnn3", "pgd:0.3,ramp=0", 20.0),
)


def run(quick: bool = False) -> list[Row]:
    """One row a network: plain and cohort in one run, on the GPU if there is one."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rows = []
    for network, hardening, required in CASES:
        if quick and network == "cnn3":
            continue
        replicas = 32 if device == "cuda" else 4
        training = Training(steps=100_000, batch=128, device=device)
        task: Task[Any] = Vision(Settings(network=network))
        if hardening:
            task = harden(task, hardening)
        eager = _rate(Plain(task, training, 0), device, 1.0 if quick else 4.0)
        together = _rate(Cohort(task, training, range(replicas)), device, 1.0 if quick else 4.0) * replicas
        rows.append(
            Row(
                f"{network} {'PGD-7 ' if hardening else ''}training, {replicas} replicas, {device}",
                together, eager, "updates/s", together / eager, "plain engine, one by one",
                required if device == "cuda" else None,
            )
        )  # fmt: skip
    return rows


def _rate(engine: Engine, device: str, seconds: float) -> float:
    """Steps a second after warming up."""
    engine.advance(6)
    steps, chunk, start = 0, 4, time.perf_counter()
    while time.perf_counter() - start < seconds:
        engine.advance(chunk)
        if device == "cuda":
            torch.cuda.synchronize()
        steps += chunk
    return steps / (time.perf_counter() - start)
