"""Simulators of many episodes at once: Gymnasium's own worlds, and what MuJoCo and Gymnasium say too loudly."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from fewer.core.errors import MissingExtra, UserError

if TYPE_CHECKING:
    from fewer.systems.control.task.worlds.environments import Environment

__all__ = ["Gymnasium", "Outcome", "Simulator", "make", "missing", "quiet"]

Doubles = NDArray[np.float64]
Rows = NDArray[np.int64]


class Outcome(NamedTuple):
    """Of one step, a row for each episode that made it."""

    observation: Doubles  # (rows, observations)
    reward: Doubles  # (rows,)
    ended: NDArray[np.bool_]  # (rows,); the world did
    cut: NDArray[np.bool_]  # (rows,); the world did not, but goes no further; the clock is not the simulator's


class Simulator(Protocol):
    """Many episodes of one world; `advance` may be called from several threads on different rows."""

    def reset(self, seeds: Sequence[int]) -> Doubles:
        """Start one episode a seed; what is seen first, (episodes, observations)."""

    def advance(self, rows: Rows, actions: NDArray[np.float32]) -> None:
        """One step of these episodes; `actions` has one row for each of all episodes."""

    def outcome(self, rows: Rows, actions: NDArray[np.float32]) -> Outcome:
        """Of the step just made."""


class Gymnasium:
    """Any world that Gymnasium makes, one object an episode."""

    def __init__(self, environment: Environment, count: int) -> None:
        self._worlds = [make(environment.gymnasium) for _ in range(count)]
        self._seen = np.zeros((count, environment.observations))
        self._reward = np.zeros(count)
        self._ended, self._cut = np.zeros(count, dtype=np.bool_), np.zeros(count, dtype=np.bool_)

    def reset(self, seeds: Sequence[int]) -> Doubles:
        """Start one episode a seed."""
        for row, seed in enumerate(seeds):
            self._seen[row] = self._worlds[row].reset(seed=int(seed))[0]
        return self._seen.copy()

    def advance(self, rows: Rows, actions: NDArray[np.float32]) -> None:
        """One step, at the pace of Python."""
        for row in rows.tolist():
            seen, reward, ended, cut, _ = self._worlds[row].step(actions[row])
            self._seen[row], self._reward[row], self._ended[row], self._cut[row] = seen, reward, ended, cut

    def outcome(self, rows: Rows, actions: NDArray[np.float32]) -> Outcome:
        """Of the step just made."""
        return Outcome(self._seen[rows], self._reward[rows], self._ended[rows], self._cut[rows])


@contextmanager
def missing() -> Iterator[None]:
    """An import that fails is one line with its cure."""
    try:
        yield
    except (ImportError, AttributeError) as error:
        # MuJoCo opens the way to draw that MUJOCO_GL names as it is imported, needed or not
        if chosen := os.environ.get("MUJOCO_GL"):
            raise UserError(
                f"MUJOCO_GL={chosen} ({error})", "a way to draw that works here", "unset MUJOCO_GL"
            ) from error
        raise MissingExtra(f"no {error.name}", "the simulator installed", "pip install 'fewer[control]'") from error


@contextmanager
def quiet() -> Iterator[None]:
    """Without MuJoCo's warnings, which it also writes to a file in the working folder."""
    with missing():
        import mujoco
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(_nothing)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)


def _nothing(message: str) -> None:
    """An unstable simulation is reset by MuJoCo itself: the policy pays for it in return."""


def make(name: str, **options: Any) -> Any:
    """A Gymnasium world, unwrapped of its checks; warnings about its age stay unsaid."""
    import warnings

    with missing():
        import gymnasium
    with warnings.catch_warnings(), quiet():
        warnings.simplefilter("ignore")
        return gymnasium.make(name, disable_env_checker=True, **options)
