"""Logs that are not an expert's, made of ours: a noisy expert, a clone that was trained too little, and a mixture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fewer.core.engines.base import Training
from fewer.core.engines.nets import NetworkSet
from fewer.core.engines.plain import Plain
from fewer.core.seed import Stream
from fewer.systems.control.task.logs import d4rl, experts
from fewer.systems.control.task.logs.source import transitions
from fewer.systems.control.task.logs.transitions import Transitions
from fewer.systems.control.task.settings import Settings
from fewer.systems.control.task.task import Control

__all__ = ["KINDS", "made", "name_of"]

CLONED, UPDATES, WIDTHS = 20_000, 4000, (64, 64)  # of the medium policy: it scores 20 to 50, as D4RL's do
NOISY = 0.5  # deviation on actions before they are squashed

KINDS = {
    "expert": "the expert of Figures 1 and 2",
    "noisy": f"the same expert with noise of deviation {NOISY:g} on its actions before they are squashed",
    "medium": f"a {WIDTHS[0]}-{WIDTHS[1]} clone of the expert after {UPDATES:,} updates on {CLONED:,} of its steps",
    "mixed": "half of the expert's steps, half of the medium clone's",
}


def name_of(environment: str, kind: str, *, count: int, noise: float) -> str:
    """An expert's logs as `source` knows them, or the name of a file."""
    if kind in ("expert", "noisy"):
        return f"expert:{environment}:{count}:0:{NOISY if kind == 'noisy' else noise:g}"
    return f"{environment}-{kind}-{count}.hdf5"


def made(folder: Path, environment: str, kind: str, *, count: int, noise: float) -> str:
    """The source of such logs; a file is made once."""
    name = name_of(environment, kind, count=count, noise=noise)
    if name.startswith("expert:"):
        return name
    if not (folder / name).exists():
        d4rl.write(folder / name, {"medium": _medium, "mixed": _mixed}[kind](environment, count, noise))
    return str(folder / name)


def _medium(environment: str, count: int, noise: float) -> Transitions:
    learnt = f"expert:{environment}:{CLONED}:0:{noise:g}"
    task = Control(Settings(environment=environment, algorithm="plain-bc", hidden=WIDTHS, data=learnt))
    engine = Plain(task, Training(steps=UPDATES, batch=100), 0)
    engine.advance(UPDATES)
    nets, zero = NetworkSet(engine.state.modules_of(0), training=False), torch.zeros((), dtype=torch.int64)

    @torch.no_grad()
    def act(observation: NDArray[np.float32]) -> NDArray[np.float32]:
        found: NDArray[Any] = task.predict(nets, torch.from_numpy(observation), Stream(zero, zero)).numpy()
        return found

    return experts.collect(environment, count, seed=1, noise=noise, act=act)


def _mixed(environment: str, count: int, noise: float) -> Transitions:
    parts = (
        transitions(f"expert:{environment}:{count - count // 2}:0:{noise:g}", environment),
        _medium(environment, count // 2, noise),
    )
    return Transitions(*(np.concatenate([getattr(part, name) for part in parts]) for name in Transitions._fields))
