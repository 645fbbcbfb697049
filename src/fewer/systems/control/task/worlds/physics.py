"""HalfCheetah, Hopper and Walker2d by MuJoCo directly: Gymnasium's v5 rules, many episodes over one model.

The numbers are Gymnasium's to the bit (a test holds them to it). What is saved is its bookkeeping a step, and that
rewards, health and observations of all episodes are a few operations on arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewer.systems.control.task.worlds.simulator import Doubles, Outcome, Rows, missing, quiet

__all__ = ["RULES", "Physics", "Rule"]

_ANY = (-np.inf, np.inf)


@dataclass(frozen=True)
class Rule:
    """What a v5 environment adds to its model file."""

    model: str
    frames: int  # simulation steps per action
    effort: float  # price of the squared action
    start: float  # spread of positions and speeds at the start
    alive: float = 0.0  # reward for being healthy
    height: tuple[float, float] = _ANY  # healthy, in m
    lean: tuple[float, float] = _ANY  # healthy, in rad
    state: tuple[float, float] = _ANY  # healthy, of everything but the first two positions
    fastest: float = np.inf  # speeds are seen up to this, in m/s and rad/s
    normal: bool = False  # speeds at the start are normal, not uniform


RULES = {
    "halfcheetah": Rule("half_cheetah.xml", frames=5, effort=0.1, start=0.1, normal=True),
    "hopper": Rule(
        "hopper.xml", frames=4, effort=1e-3, start=5e-3, alive=1.0,
        height=(0.7, np.inf), lean=(-0.2, 0.2), state=(-100.0, 100.0), fastest=10.0,
    ),
    "walker2d": Rule(
        "walker2d_v5.xml", frames=4, effort=1e-3, start=5e-3, alive=1.0,
        height=(0.8, 2.0), lean=(-1.0, 1.0), fastest=10.0,
    ),
}  # fmt: skip


class Physics:
    """A simulator: one model, and one state of MuJoCo's (0.5 MB) an episode."""

    def __init__(self, name: str, count: int) -> None:
        with missing():
            import mujoco
        rule = self._rule = RULES[name]
        self._mujoco, self._model = mujoco, _model(rule.model)
        self._states = [mujoco.MjData(self._model) for _ in range(count)]
        # views into MuJoCo's memory, made once: making one costs as much as reading through it
        self._controls = [state.ctrl for state in self._states]
        self._places = [state.qpos for state in self._states]
        self._speeds = [state.qvel for state in self._states]
        self._seconds = self._model.opt.timestep * rule.frames
        self._place, self._speed = np.zeros((count, self._model.nq)), np.zeros((count, self._model.nv))
        self._before = np.zeros(count)  # where each was along the track before the step, in m

    def reset(self, seeds: Sequence[int]) -> Doubles:
        """Start one episode a seed, as Gymnasium would."""
        rule, model = self._rule, self._model
        for row, (state, seed) in enumerate(zip(self._states, seeds)):
            draw = np.random.Generator(np.random.PCG64(np.random.SeedSequence(int(seed))))
            self._mujoco.mj_resetData(model, state)
            place = draw.uniform(-rule.start, rule.start, size=model.nq)
            if rule.normal:
                speed = rule.start * draw.standard_normal(model.nv)
            else:
                speed = draw.uniform(-rule.start, rule.start, size=model.nv)
            state.qpos[:] += place
            state.qvel[:] += speed
            self._mujoco.mj_forward(model, state)
            self._place[row], self._speed[row] = state.qpos, state.qvel
        return self._seen(self._place, self._speed)

    def advance(self, rows: Rows, actions: NDArray[np.float32]) -> None:
        """One step of these episodes; MuJoCo lets other threads run meanwhile."""
        step, model, frames = self._mujoco.mj_step, self._model, self._rule.frames
        for row in rows.tolist():
            self._controls[row][:] = actions[row]
            self._before[row] = self._places[row][0]
            step(model, self._states[row], nstep=frames)
            self._place[row], self._speed[row] = self._places[row], self._speeds[row]

    def outcome(self, rows: Rows, actions: NDArray[np.float32]) -> Outcome:
        """Of the step just made; forward speed in m/s, plus being alive, minus effort."""
        rule, place, speed = self._rule, self._place[rows], self._speed[rows]
        forward = (place[:, 0] - self._before[rows]) / self._seconds
        # in float32 like the action, as Gymnasium has it
        effort = np.float32(rule.effort) * np.sum(np.square(actions[rows]), axis=1)
        never = np.zeros(len(rows), dtype=np.bool_)
        if not rule.alive:
            return Outcome(self._seen(place, speed), forward - effort, never, never)
        rest = np.concatenate([place, speed], axis=1)[:, 2:]
        healthy = _within(place[:, 1], rule.height) & _within(place[:, 2], rule.lean)
        healthy &= _within(rest, rule.state).all(axis=1)
        return Outcome(self._seen(place, speed), forward + healthy * rule.alive - effort, ~healthy, never)

    def _seen(self, place: Doubles, speed: Doubles) -> Doubles:
        """All but the place along the track, and speeds."""
        return np.concatenate([place[:, 1:], np.clip(speed, -self._rule.fastest, self._rule.fastest)], axis=1)


@cache
def _model(file: str) -> Any:
    """Gymnasium's model of a world; read once, never changed, shared by all episodes and threads."""
    with missing():
        import gymnasium
        import mujoco
    with quiet():
        return mujoco.MjModel.from_xml_path(str(Path(gymnasium.__file__).parent / "envs/mujoco/assets" / file))


def _within(values: Doubles, bounds: tuple[float, float]) -> NDArray[np.bool_]:
    return (bounds[0] < values) & (values < bounds[1])
