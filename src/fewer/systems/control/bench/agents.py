"""BCQ agents in lock-step: the paper's grid of two criteria, eight sparsities and five seeds as one cohort.

On CUDA the paper's networks and 80 agents, with and without torch.compile; on a CPU a small cohort, which shows that
it runs and nothing about speed: one core is saturated by one agent.
"""

from __future__ import annotations

import time
from itertools import product

import numpy as np
import torch

from fewer.bench.row import Row
from fewer.core.engines.base import Engine, Training
from fewer.core.engines.cohort import Cohort
from fewer.core.engines.plain import Plain
from fewer.pruning.pruning import Pruning, prune_
from fewer.systems.control.task.logs.transitions import Transitions
from fewer.systems.control.task.settings import Settings
from fewer.systems.control.task.task import Control

__all__ = ["random_logs", "run"]

CRITERIA = ("snip", "grasp")
SPARSITIES = (0.0, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95)
SEEDS = 5
REQUIRED = 10_000.0  # updates a second of all agents on one H200
STEPS = 100_000  # logged; their content does not change the rate


def run(quick: bool = False) -> list[Row]:
    """Updates a second of all agents, beside those of one agent in ordinary torch."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    grid = list(product(CRITERIA, SPARSITIES, range(SEEDS)))
    if device == "cpu":
        grid = [(criterion, 0.95, seed) for criterion, seed in product(CRITERIA, range(2))]
    task = Control(Settings(environment="halfcheetah"), logs=random_logs(STEPS if device == "cuda" else 5000))
    seconds = 2.0 if quick else 10.0
    training = Training(steps=10_000_000, batch=100, device=device)
    eager = _rate(Plain(task, training, 0), seconds)
    rows = []
    for compiled in (False, True) if device == "cuda" else (False,):
        engine = Cohort(task, Training(steps=10_000_000, batch=100, device=device, compile=compiled), _seeds(grid))
        _prune_(engine, grid)
        together = _rate(engine, seconds) * len(grid)
        del engine
        how = "one CUDA graph" + (", compiled" if compiled else "") if device == "cuda" else "CPU, small cohort"
        rows.append(
            Row(
                f"BCQ, {len(grid)} agents, {how}", together, eager, "updates/s", together / eager,
                f"one agent, plain engine, {device}", REQUIRED / eager if device == "cuda" else None,
            )
        )  # fmt: skip
    return rows


def _seeds(grid: list[tuple[str, float, int]]) -> list[int]:
    """Seeds may repeat in a cohort: the same first weights under different masks."""
    return [seed for _, _, seed in grid]


def _prune_(engine: Engine, grid: list[tuple[str, float, int]]) -> None:
    """Masks by chance at the grid's sparsities: the rate is the same for all masks, and these are quick to find."""
    for replica, (_, sparsity, _) in enumerate(grid):
        prune_(engine, Pruning("random", sparsity, "layer", samples=100), replica)


def _rate(engine: Engine, seconds: float) -> float:
    """Steps a second after warming up, compiling and capturing."""
    engine.advance(6)
    _wait(engine)
    steps, chunk, start = 0, 20 if engine.device.type == "cuda" else 1, time.perf_counter()
    while time.perf_counter() - start < seconds:
        engine.advance(chunk)
        _wait(engine)
        steps += chunk
    return steps / (time.perf_counter() - start)


def _wait(engine: Engine) -> None:
    if engine.device.type == "cuda":
        torch.cuda.synchronize()


def random_logs(steps: int) -> Transitions:
    """Smooth random experience of HalfCheetah's widths, without a simulator."""
    lot = np.random.default_rng(0)
    observation = lot.normal(size=(steps + 1, 17)).astype(np.float32)
    action = np.tanh(observation[:-1, :6] + 0.3 * lot.normal(size=(steps, 6))).astype(np.float32)
    last = np.arange(1, steps + 1) % 1000 == 0
    reward = np.tanh(observation[:-1, 0]).astype(np.float32)
    return Transitions(observation[:-1], action, reward, observation[1:], np.zeros(steps, dtype=np.bool_), last)
