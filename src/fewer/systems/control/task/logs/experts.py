"""The experts that come with the package: packed policies, and as much of their experience as wanted."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewer.core.errors import UserError
from fewer.core.settings import nearest
from fewer.systems.control.task.logs.episodes import take
from fewer.systems.control.task.logs.transitions import Transitions
from fewer.systems.control.task.worlds.environments import ENVIRONMENTS, Environment
from fewer.systems.control.task.worlds.environments import environment as find
from fewer.systems.control.task.worlds.rollout import Many

__all__ = ["NOISE", "Policy", "collect", "policy", "returns"]

Policy = Callable[[NDArray[np.float32]], NDArray[np.float32]]  # (n, observations) -> (n, actions)

# Deviation of the normal noise on every action before it is squashed into its bounds, as in the policies whose
# samples the D4RL sets are: around each action there are others, which BCQ's generative model and its critics need
# to see, while an action at its bound, where an expert must not waver, stays there. As much as each bears.
NOISE = {"halfcheetah": 0.05, "hopper": 0.2, "walker2d": 0.05}
_SURE = 0.9999  # an action this near to its bound counts as there; its squashed form stays finite
_TOGETHER = 100  # episodes; a constant, so that what is collected does not depend on the machine


def policy(name: str) -> Policy:
    """An expert by its environment's name, run without torch; actions lie within -1 and 1."""
    if name not in ENVIRONMENTS:
        raise UserError(f"expert {name!r}", f"one of {', '.join(ENVIRONMENTS)}", nearest(name, list(ENVIRONMENTS)))
    # Packs are a method's business, and tasks import no methods: the runtime is called by name, as tasks are.
    pack: Any = importlib.import_module("fewer.packs.pack").load(
        importlib.import_module("fewer.zoo").path(f"control-{name}")
    )

    def act(observation: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.asarray(pack.predict(observation), dtype=np.float32)

    return act


def returns(act: Policy, environment: str | Environment, *, episodes: int = 20, seed: int = 0) -> NDArray[np.float64]:
    """What each of these episodes brings a policy, (episodes,)."""
    many = Many(environment, episodes, seed=seed)
    observation, total = many.reset(), np.zeros(episodes)
    while many.running.any():
        observation, reward, *_ = many.step(act(observation))
        total += reward
    return total


def collect(
    environment: str | Environment,
    transitions: int,
    *,
    seed: int = 0,
    noise: float | None = None,
    act: Policy | None = None,
    workers: int | None = None,
) -> Transitions:
    """Exactly so many steps of the expert (or of `act`), with normal noise of this deviation (by default `NOISE`).

    a' = tanh(artanh(a) + noise z) for an action scaled to -1 and 1.

    Episodes come in the order of their index, whole but for the last. The same arguments give the same bits on the
    same machine, however many workers step the simulator.
    """
    world = find(environment) if isinstance(environment, str) else environment
    deviation = NOISE.get(world.name, 0.0) if noise is None else noise
    if transitions < 1 or not (math.isfinite(deviation) and deviation >= 0):
        raise UserError(f"{transitions} transitions with noise {deviation}", "at least 1, and noise of 0 or more")
    chosen = act if act is not None else policy(world.name)
    parts: list[Transitions] = []
    first, missing, length = 0, transitions, float(world.steps)
    while missing > 0:
        # as many episodes as will do if they are as long as those so far: a function of the arguments alone
        count = min(_TOGETHER, math.ceil(missing / length))
        many = Many(world, range(first, first + count), seed=seed, workers=workers)
        part = _episodes(many, chosen, _noise(world, range(first, first + count), seed=seed, deviation=deviation))
        parts.append(part)
        first, missing = first + count, missing - len(part.reward)
        length = (transitions - missing) / first
    whole = Transitions(*(np.concatenate([getattr(part, name) for part in parts]) for name in Transitions._fields))
    steps = take(whole, slice(transitions))
    steps.timeout[-1] = not steps.terminal[-1]  # cut off by us: there is value beyond
    return steps


def _noise(world: Environment, indices: range, *, seed: int, deviation: float) -> NDArray[np.float32]:
    """(steps, episodes, actions); a function of the seed and the episode's index."""
    shape = world.steps, world.actions
    drawn = [np.random.default_rng([seed, index, 1]).standard_normal(shape, dtype=np.float32) for index in indices]
    return np.float32(deviation) * np.stack(drawn, axis=1)


def _shaken(action: NDArray[np.float32], noise: NDArray[np.float32], world: Environment) -> NDArray[np.float32]:
    low, high = world.bounds()
    if not noise.any():
        return np.clip(action, low, high)
    middle, half = (high + low) / 2, (high - low) / 2
    inside = np.clip((action - middle) / half, -_SURE, _SURE)
    return (middle + half * np.tanh(np.arctanh(inside) + noise)).astype(np.float32)


def _episodes(many: Many, act: Policy, noise: NDArray[np.float32]) -> Transitions:
    """All steps of these episodes, one episode after the other."""
    observation = many.reset()
    rows: list[tuple[NDArray[Any], ...]] = []
    while many.running.any():
        running = many.running
        action = _shaken(act(observation), noise[len(rows)], many.environment)
        step = many.step(action)
        rows.append((running, observation, action, step.reward, step.observation, step.terminal, step.timeout))
        observation = step.observation
    running, *fields = (np.stack(column, axis=1) for column in zip(*rows))  # (episodes, steps, ...)
    seen, action, reward, following, terminal, timeout = (field[running] for field in fields)
    return Transitions(seen, action, reward.astype(np.float32), following, terminal, timeout)
