"""Many episodes stepped together, for one policy or for hundreds: what an evaluation and a collection stand on.

An episode is a function of (seed, its index) and of the actions alone: not of how many run beside it, nor of how
many threads step them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fewer.core.errors import UserError
from fewer.systems.control.task.worlds.environments import Environment
from fewer.systems.control.task.worlds.environments import environment as find
from fewer.systems.control.task.worlds.physics import RULES, Physics
from fewer.systems.control.task.worlds.simulator import Gymnasium, Rows, Simulator, quiet

__all__ = ["Many", "Step", "episode_seed"]

_FEWEST_A_THREAD = 4  # episodes; below this, handing work over costs more than it saves


class Step(NamedTuple):
    """What a step led to, one row an episode; of an episode that was over before it, the last again with reward 0."""

    observation: NDArray[np.float32]  # (episodes, observations)
    reward: NDArray[np.float64]  # (episodes,)
    terminal: NDArray[np.bool_]  # (episodes,); the world ended in this step
    timeout: NDArray[np.bool_]  # (episodes,); the clock ended it in this step, and the world did not
    running: NDArray[np.bool_]  # (episodes,); there is a next step


def episode_seed(seed: int, index: int) -> int:
    """The seed that Gymnasium's `reset` would take to start the same episode."""
    return int(np.random.SeedSequence([seed, index]).generate_state(1)[0])


def _cores() -> int:
    """Those this process may use, where the system says so."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Many:
    """Episodes of one environment, stepped in lock-step until each has ended.

        many = Many("hopper", 20, seed=7)
        observation = many.reset()
        while many.running.any():
            observation, reward, terminal, timeout, running = many.step(policy(observation))

    `episodes` is a count, or the indices of the episodes wanted: the same index twice is the same start twice, so
    that N policies meet the same 20 episodes with `list(range(20)) * N`. Actions beyond the bounds are clipped, and
    one that is not a number counts as 0, so that a policy which diverged fails alone.
    """

    def __init__(
        self,
        environment: str | Environment,
        episodes: int | Sequence[int],
        *,
        seed: int = 0,
        workers: int | None = None,
    ) -> None:
        self.environment = find(environment) if isinstance(environment, str) else environment
        indices = list(range(episodes)) if isinstance(episodes, int) else [int(index) for index in episodes]
        if not indices or min(indices) < 0 or seed < 0:
            raise UserError(f"{episodes} episodes with seed {seed}", "at least one episode, nothing negative")
        self._seeds = [episode_seed(seed, index) for index in indices]
        self._simulator: Simulator
        if self.environment.name in RULES:
            self._simulator = Physics(self.environment.name, len(indices))
        else:
            self._simulator = Gymnasium(self.environment, len(indices))
        self.workers = max(1, workers if workers is not None else _cores())
        self._pool: ThreadPoolExecutor | None = None
        self._steps = 0
        self.running: NDArray[np.bool_] = np.zeros(len(indices), dtype=np.bool_)
        self._seen = np.zeros((len(indices), self.environment.observations), dtype=np.float32)

    def __len__(self) -> int:
        return len(self._seeds)

    def reset(self) -> NDArray[np.float32]:
        """Start all episodes, the same ones every time; what is seen first, (episodes, observations)."""
        with quiet():
            self._seen = self._simulator.reset(self._seeds).astype(np.float32)
        self._steps = 0
        self.running = np.ones(len(self), dtype=np.bool_)
        return self._seen.copy()

    def step(self, actions: ArrayLike) -> Step:
        """One action each, (episodes, actions); rows of episodes that are over are not looked at and cost nothing."""
        bounded = self._bounded(actions)
        rows: Rows = np.flatnonzero(self.running)
        reward = np.zeros(len(self))
        terminal, timeout = np.zeros(len(self), dtype=np.bool_), np.zeros(len(self), dtype=np.bool_)
        if len(rows):
            with quiet():
                self._advance(rows, bounded)
            self._seen[rows], reward[rows], terminal[rows], cut = self._simulator.outcome(rows, bounded)
            self._steps += 1
            timeout[rows] = (cut | (self._steps >= self.environment.steps)) & ~terminal[rows]
            self.running = self.running & ~terminal & ~timeout
        return Step(self._seen.copy(), reward, terminal, timeout, self.running)

    def _bounded(self, actions: ArrayLike) -> NDArray[np.float32]:
        given = np.asarray(actions, dtype=np.float32)
        if given.shape != (len(self), self.environment.actions):
            raise UserError(f"actions of shape {given.shape}", f"({len(self)}, {self.environment.actions})")
        return np.clip(np.nan_to_num(given, nan=0.0), *self.environment.bounds())

    def _advance(self, rows: Rows, actions: NDArray[np.float32]) -> None:
        parts = min(self.workers, len(rows) // _FEWEST_A_THREAD)
        if parts < 2:
            self._simulator.advance(rows, actions)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.workers, thread_name_prefix="episodes")
        shares = [self._pool.submit(self._simulator.advance, part, actions) for part in np.array_split(rows, parts)]
        for share in shares:
            share.result()
