"""What transitions must hold beyond their shapes: widths, action bounds, whole episodes; and what they hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from fewer.core.errors import UserError
from fewer.systems.control.task.logs.episodes import episodes
from fewer.systems.control.task.logs.transitions import Transitions
from fewer.systems.control.task.worlds.environments import Environment

__all__ = ["check", "summary"]

_ROUNDING = 1e-4  # between an observation and the same one logged again, or an action and its bound


def check(source: str, steps: Transitions, environment: Environment | None = None) -> None:
    """One line with the place of the first thing that is wrong; without an environment its bounds are not asked."""
    if environment is not None:
        _fits(source, steps, environment)
    within = ~(steps.terminal | steps.timeout)[:-1]
    scale = _ROUNDING * (1 + np.abs(steps.observation[1:]))
    gaps = within & (np.abs(steps.next_observation[:-1] - steps.observation[1:]) > scale).any(axis=1)
    if gaps.any():
        place = int(np.argmax(gaps))
        raise UserError(
            f"{source}: step {place} leads elsewhere than step {place + 1} begins, inside an episode "
            f"({int(gaps.sum())} such steps)",
            "whole episodes",
            "mark each episode's last step as a timeout; of steps in no order mark every one",
        )


def _fits(source: str, steps: Transitions, environment: Environment) -> None:
    for name, width, expected in (
        ("observations", steps.observation.shape[1], environment.observations),
        ("actions", steps.action.shape[1], environment.actions),
    ):
        if width != expected:
            raise UserError(f"{source} with {name} of width {width}", f"width {expected} for {environment.name}")
    low, high = environment.bounds()
    beyond = (steps.action < low - _ROUNDING) | (steps.action > high + _ROUNDING)
    if beyond.any():
        step, part = np.argwhere(beyond)[0]
        raise UserError(
            f"{source}: action {steps.action[step, part]:g} at step {step}, part {part} "
            f"({int(beyond.any(axis=1).sum())} such steps)",
            f"actions from {low[part]:g} to {high[part]:g}, as {environment.name} takes them",
            "clip them, or --set environment=none with an action_bound",
        )
    found = episodes(steps)
    if (found.length > environment.steps).any():
        place = int(np.argmax(found.length > environment.steps))
        raise UserError(
            f"{source}: an episode of {found.length[place]} steps from step {found.start[place]}",
            f"at most {environment.steps} in {environment.name}",
            "mark where the clock ended episodes in timeouts",
        )


def summary(steps: Transitions, environment: Environment | None = None) -> dict[str, Any]:
    """Counts, returns and ranges."""
    found = episodes(steps)
    mean = float(found.total.mean())
    said: dict[str, Any] = {
        "transitions": len(steps.reward),
        "episodes": len(found.start),
        "terminals": int(steps.terminal.sum()),
        "timeouts": int(steps.timeout.sum()),
        "mean return": round(mean, 2),
        "deviation of returns": round(float(found.total.std()), 2),
        "mean length": round(float(found.length.mean()), 1),
    }
    if environment is not None:
        said["environment"] = environment.name
        if environment.reference is not None:
            said["score"] = round(environment.score(mean), 2)
    said["observations"] = steps.observation.shape[1]
    said["actions"] = steps.action.shape[1]
    for name in ("observation", "action", "reward"):
        values = getattr(steps, name)
        said[f"{name} range"] = [round(float(values.min()), 4), round(float(values.max()), 4)]
    return said
