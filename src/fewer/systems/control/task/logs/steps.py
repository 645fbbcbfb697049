"""Logged steps as tensors: what losses see, with actions scaled to -1 to 1 and observations as they were logged."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fewer.core.errors import UserError
from fewer.systems.control.task.logs.transitions import Transitions

__all__ = ["Bounds", "Disturbed", "Steps", "steps_of"]

Bounds = tuple[NDArray[np.float32], NDArray[np.float32]]  # lowest and highest action, (actions,) or (1,)


class Steps(NamedTuple):
    """Samples on axis 0."""

    observation: Tensor  # (batch, observations), in the sensors' own units
    action: Tensor  # (batch, actions), in -1 to 1
    reward: Tensor  # (batch,)
    next_observation: Tensor  # (batch, observations)
    alive: Tensor  # (batch,), 0 where the world ended; 1 at a time-out, beyond which there is value


class Disturbed(NamedTuple):
    """Steps whose observations an adversary has changed, beside the true ones."""

    observation: Tensor
    action: Tensor
    reward: Tensor
    next_observation: Tensor
    alive: Tensor
    clean: Tensor  # (batch, observations)


def steps_of(logs: Transitions, bounds: Bounds, dimensions: tuple[int, int] | None = None) -> Steps:
    """Logs as tensors, refused if they cannot be learnt from; `dimensions` are the environment's, if there is one."""
    _check(logs, dimensions)
    low, high = bounds
    outside = np.maximum(logs.action - high, low - logs.action) > 1e-3 * (high - low)
    if outside.any():
        at = np.argwhere(outside)[0]
        raise UserError(
            f"action {logs.action[at[0], at[1]]:g} at step {at[0]}",
            f"actions from {np.broadcast_to(low, outside.shape[1])[at[1]]:g} to "
            f"{np.broadcast_to(high, outside.shape[1])[at[1]]:g}",
            f"--set action_bound={np.abs(logs.action).max():.3g}",
        )
    unit = (logs.action - (low + high) / 2) / ((high - low) / 2)
    return Steps(
        torch.as_tensor(logs.observation, dtype=torch.float32),
        torch.as_tensor(unit, dtype=torch.float32).clamp(-1.0, 1.0),
        torch.as_tensor(logs.reward, dtype=torch.float32),
        torch.as_tensor(logs.next_observation, dtype=torch.float32),
        1.0 - torch.as_tensor(logs.terminal, dtype=torch.float32),
    )


def _check(logs: Transitions, dimensions: tuple[int, int] | None) -> None:
    lengths = {name: len(leaf) for name, leaf in logs._asdict().items()}
    if len(set(lengths.values())) != 1 or not len(logs.reward):
        raise UserError(f"logs of {lengths}", "the same number of steps in all six arrays, and at least one")
    if logs.observation.ndim != 2 or logs.action.ndim != 2 or logs.reward.ndim != 1:
        shapes = {name: np.shape(leaf) for name, leaf in logs._asdict().items()}
        raise UserError(f"logs of shapes {shapes}", "(steps, observations), (steps, actions) and (steps,)")
    widths = (logs.observation.shape[1], logs.action.shape[1])
    if logs.next_observation.shape != logs.observation.shape:
        raise UserError(
            f"next observations of shape {logs.next_observation.shape}", f"{logs.observation.shape}, as observations"
        )
    if dimensions is not None and widths != dimensions:
        raise UserError(
            f"logs of {widths[0]} observations and {widths[1]} actions",
            f"{dimensions[0]} and {dimensions[1]}, as the environment has",
            "choose the logs' own environment, or environment=none",
        )
    for name in ("observation", "action", "reward", "next_observation"):
        leaf = getattr(logs, name)
        if not np.isfinite(leaf).all():
            at = int(np.argwhere(~np.isfinite(leaf))[0][0])
            raise UserError(f"{name} {leaf[at]} at step {at}", "finite numbers", "remove the step from the logs")
