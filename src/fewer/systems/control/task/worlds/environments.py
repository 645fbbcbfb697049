"""Worlds to act in: the three of the paper with their reference scores, and any Gymnasium id with Box spaces."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from fewer.core.errors import UserError
from fewer.core.settings import nearest

__all__ = ["ENVIRONMENTS", "Environment", "environment"]


@dataclass(frozen=True)
class Environment:
    """What one must know of a world without opening its simulator."""

    name: str
    gymnasium: str  # the id that Gymnasium makes it by
    observations: int
    actions: int
    low: tuple[float, ...]  # bounds of each action
    high: tuple[float, ...]
    steps: int  # the clock ends an episode after so many
    reference: tuple[float, float] | None = None  # mean returns of a random and of an expert policy

    def bounds(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Lowest and highest action, (actions,) each."""
        return np.array(self.low, dtype=np.float32), np.array(self.high, dtype=np.float32)

    def score(self, mean_return: float) -> float:
        """0 for a random policy, 100 for an expert: 100 (R - random) / (expert - random), as D4RL has it."""
        if self.reference is None:
            raise UserError(
                f"a score of {self.name}", f"one with reference returns ({', '.join(ENVIRONMENTS)})", "use the return"
            )
        random, expert = self.reference
        return 100 * (mean_return - random) / (expert - random)


def _locomotion(name: str, identity: str, widths: tuple[int, int], reference: tuple[float, float]) -> Environment:
    observations, actions = widths
    low, high = (-1.0,) * actions, (1.0,) * actions
    return Environment(name, identity, observations, actions, low, high, steps=1000, reference=reference)


# Reference returns are D4RL's (random policy, expert policy), measured on the environments' second version.
ENVIRONMENTS: dict[str, Environment] = {
    "halfcheetah": _locomotion("halfcheetah", "HalfCheetah-v5", (17, 6), (-280.178953, 12135.0)),
    "hopper": _locomotion("hopper", "Hopper-v5", (11, 3), (-20.272305, 3234.3)),
    "walker2d": _locomotion("walker2d", "Walker2d-v5", (17, 6), (1.629008, 4592.3)),
}


def environment(name: str) -> Environment:
    """By one of our names, or by a Gymnasium id; of the latter the spaces are asked, which needs the simulator."""
    if name in ENVIRONMENTS:
        return ENVIRONMENTS[name]
    for known in ENVIRONMENTS.values():
        if known.gymnasium == name:
            return known
    return _asked(name)


@cache
def _asked(name: str) -> Environment:
    from fewer.systems.control.task.worlds.simulator import make, missing

    with missing():
        import gymnasium
    try:
        world = make(name)
    except (gymnasium.error.Error, ImportError, ValueError) as error:
        reason = str(error).strip().split("\n")[0]
        known = [*ENVIRONMENTS, *(key for key in gymnasium.registry if "/" not in key)]
        raise UserError(
            f"environment {name!r} ({reason})", f"{', '.join(ENVIRONMENTS)} or a Gymnasium id", nearest(name, known)
        ) from None
    try:
        spaces = world.observation_space, world.action_space
        if not all(isinstance(space, gymnasium.spaces.Box) and len(space.shape) == 1 for space in spaces):
            raise UserError(
                f"{name} with {spaces[0]} and {spaces[1]}", "vectors of numbers to see and to do (Box spaces)"
            )
        low, high = (tuple(float(value) for value in side) for side in (spaces[1].low, spaces[1].high))
        if not np.isfinite(low + high).all():
            raise UserError(f"{name} with actions from {min(low)} to {max(high)}", "bounded actions")
        steps = world.spec.max_episode_steps if world.spec is not None else None
        if steps is None:
            raise UserError(f"{name} without a time limit", "an id registered with max_episode_steps")
        widths = int(spaces[0].shape[0]), int(spaces[1].shape[0])
        return Environment(name, name, *widths, low, high, steps=int(steps))
    finally:
        world.close()
