"""Roll-outs as an evaluation: observations of all running episodes out, actions in, returns at the end.

The episodes of all replicas of a cohort are stepped together, and each replica meets the same starts.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fewer.systems.control.task.statistics import interquartile_mean
from fewer.systems.control.task.worlds.environments import Environment
from fewer.systems.control.task.worlds.rollout import Many

__all__ = ["Episodes", "metrics", "roll_outs"]


@dataclass(frozen=True)
class Episodes:
    """What happened, a row a policy and a column an episode."""

    returns: NDArray[np.float64]
    lengths: NDArray[np.int64]


def roll_outs(
    environment: Environment, policies: int, *, episodes: int, seed: int, horizon: int = 0
) -> Generator[Tensor, Tensor, Episodes]:
    """Yields (policies, episodes, observations), is sent (policies, episodes, actions), until all have ended.

    Rows of episodes that are over stay, with the last observation, so that the shapes never change.
    """
    many = Many(environment, list(range(episodes)) * policies, seed=seed)
    seen = many.reset()
    returns, lengths = np.zeros(len(many)), np.zeros(len(many), dtype=np.int64)
    taken = 0
    while bool(many.running.any()) and (horizon == 0 or taken < horizon):
        lengths += many.running
        actions = yield torch.from_numpy(seen).view(policies, episodes, -1)
        step = many.step(actions.detach().reshape(len(many), -1).cpu().float().numpy())
        returns += step.reward
        seen, taken = step.observation, taken + 1
    return Episodes(returns.reshape(policies, episodes), lengths.reshape(policies, episodes))


def metrics(environment: Environment, returns: NDArray[np.float64], lengths: NDArray[np.int64]) -> dict[str, float]:
    """Of one policy: normalised scores where the environment has reference returns, then plain returns."""
    found = {
        "return": float(returns.mean()),
        "return_median": float(np.median(returns)),
        "return_interquartile_mean": interquartile_mean(returns),
        "length": float(lengths.mean()),
    }
    if environment.reference is None:
        return found
    scores = np.array([environment.score(float(value)) for value in returns])
    return {
        "score": float(scores.mean()),
        "score_median": float(np.median(scores)),
        "score_interquartile_mean": interquartile_mean(scores),
        "score_lowest": float(scores.min()),
        **found,
    }
