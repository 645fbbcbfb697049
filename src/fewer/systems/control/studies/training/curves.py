"""Scores of agents on the way, as the paper's Figures 1 and 2 plot them; looking changes nothing in the training."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from fewer.core.engines.base import Engine
from fewer.core.engines.cohort import Cohort
from fewer.core.engines.evaluate import evaluate, evaluate_cohort, predictor
from fewer.core.engines.state import Network, State
from fewer.core.files.atomic import write_atomically
from fewer.systems.control.studies.training.scales import Curves
from fewer.systems.control.task.task import Control

__all__ = ["Scored", "judged"]

_FILE = "curves.json"
_SHOWN = ("score", "bc_score")


def judged(task: Control, engine: Engine, replicas: Sequence[int], split: str = "test") -> list[dict[str, float]]:
    """Metrics of some replicas, all their episodes stepped together."""
    if isinstance(engine, Cohort):
        return evaluate_cohort(task, _some(engine.state, replicas), split)
    state = engine.state
    return [evaluate(task, predictor(task, state.modules_of(one), state.seeds[one]), split) for one in replicas]


def _some(state: State, replicas: Sequence[int]) -> State:
    """A copy of these replicas' weights."""
    rows = torch.tensor(list(replicas), device=state.step.device)
    networks = {
        name: Network(network.module, network.weights[rows], {key: part[rows] for key, part in network.buffers.items()})
        for name, network in state.networks.items()
    }
    return State(tuple(state.seeds[replica] for replica in replicas), networks, state.step, [])


class Scored:
    """An event of the loop that scores some replicas and keeps what it found, so that a killed training goes on."""

    def __init__(self, task: Control, curves: Curves, replicas: Sequence[int], folder: Path) -> None:
        self.task = Control(dataclasses.replace(task.settings, episodes=curves.episodes), logs=task.logs)
        self.every, self.replicas, self.file = curves.every, list(replicas), folder / _FILE
        self.points: dict[int, list[dict[str, float]]] = {}
        if self.file.exists():
            self.points = {int(step): found for step, found in json.loads(self.file.read_text()).items()}

    def next(self, step: int) -> int | None:
        """Every multiple but zero."""
        return max(1, -(-step // self.every)) * self.every if self.replicas else None

    def act(self, engine: Engine) -> None:
        """Score, unless the same training did so before it was killed."""
        if engine.count in self.points:
            return
        found = judged(self.task, engine, self.replicas, "validation")
        self.points[engine.count] = [{name: row[name] for name in _SHOWN} for row in found]
        write_atomically(self.file, json.dumps(self.points).encode())

    def row(self, replica: int) -> dict[str, Any]:
        """Of one agent, as its file holds it; empty where it was not scored on the way."""
        if replica not in self.replicas:
            return {}
        place, steps = self.replicas.index(replica), sorted(self.points)
        curves = {name: [self.points[step][place][name] for step in steps] for name in _SHOWN}
        return {"curve": {"updates": steps, **curves, "episodes": self.task.settings.episodes}}
