"""Fitted Q evaluation: what a policy would earn, from logs alone (Le, Voloshin, Yue 2019).

The value of the policy is itself a small task, trained as a cohort: each member sees its own bootstrap of the episodes
(Hao et al. 2021), and their spread is the interval.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fewer.core.data import TensorData
from fewer.core.engines.base import Training
from fewer.core.engines.cohort import Cohort
from fewer.core.maths.student import student_t
from fewer.core.task import Copy, Data, Nets, Noise, Objective, Task
from fewer.systems.control.task.algorithms.networks import Critic
from fewer.systems.control.task.logs.transitions import Transitions

__all__ = ["Judged", "episode_of", "fitted_value", "logged_value"]

MEMBERS = 8
_HIDDEN, _BATCH = (128, 128), 256
_TARGET_RATE = 0.05  # 20 steps a backup of the Bellman equation: the horizon is behind us after a few thousand


class Judged(NamedTuple):
    """Steps with what the judged policy would do next; observations normalised, actions in -1 to 1."""

    observation: Tensor  # (steps, observations)
    action: Tensor  # (steps, actions), logged
    reward: Tensor  # (steps,)
    next_observation: Tensor  # (steps, observations)
    next_action: Tensor  # (steps, actions), the policy's
    alive: Tensor  # (steps,)
    episode: Tensor  # (steps,), integer


class _Bootstrap(nn.Module):
    """How often each episode is drawn, a table that the replica's seed fills."""

    counts: Tensor

    def __init__(self, episodes: int) -> None:
        super().__init__()
        drawn = torch.randint(episodes, (episodes,))
        self.register_buffer("counts", torch.bincount(drawn, minlength=episodes).to(torch.get_default_dtype()))

    def forward(self, episode: Tensor) -> Tensor:
        return self.counts.index_select(0, episode)


@dataclass
class _Valuation(Task[Judged]):
    """The policy's value as something to learn."""

    samples: Judged
    discount: float
    start: tuple[float, float]  # level and scale of the values: a critic that knows nothing says the level

    def networks(self) -> dict[str, nn.Module]:
        widths = self.samples.observation.shape[1], self.samples.action.shape[1]
        return {"critic": Critic(*widths, _HIDDEN), "drawn": _Bootstrap(int(self.samples.episode.max()) + 1)}

    def copies(self) -> dict[str, Copy]:
        return {"critic_target": Copy("critic", _TARGET_RATE)}

    def objectives(self) -> tuple[Objective[Judged], ...]:
        return (Objective(("critic",), self._loss),)

    def _loss(self, nets: Nets, batch: Judged, noise: Noise) -> Tensor:
        level, scale = self.start
        with torch.no_grad():
            later = level + scale * nets.critic_target(batch.next_observation, batch.next_action)
            # no policy can earn more than the best reward for ever: what is beyond is an error of extrapolation
            later = torch.clamp(later, *self._attainable())
            target = (batch.reward + self.discount * batch.alive * later - level) / scale
        error: Tensor = (nets.critic(batch.observation, batch.action) - target).square()
        loss: Tensor = (nets.drawn(batch.episode) * error).mean()
        return loss

    def _attainable(self) -> tuple[float, float]:
        horizon = 1 / max(1 - self.discount, 1e-6)
        low, high = float(self.samples.reward.min()), float(self.samples.reward.max())
        return min(low, low * horizon, 0.0), max(high, high * horizon, 0.0)

    def data(self, split: str) -> Data[Judged]:
        return TensorData(self.samples)

    def inputs(self, batch: Judged) -> tuple[Tensor, Tensor]:
        return batch.observation, batch.action

    def predict(self, nets: Nets, inputs: Any, noise: Noise) -> Tensor:
        value: Tensor = self.start[0] + self.start[1] * nets.critic(*inputs)
        return value

    def evaluate(self, split: str) -> Generator[Judged, Tensor, dict[str, float]]:
        answer = yield self.samples
        return {"value": float(answer.mean())}


def episode_of(logs: Transitions) -> NDArray[np.int64]:
    """(steps,): the number of each step's episode."""
    ended = np.asarray(logs.terminal | logs.timeout)
    return np.concatenate([[0], np.cumsum(ended[:-1])]).astype(np.int64)


def logged_value(logs: Transitions, discount: float) -> NDArray[np.float64]:
    """(episodes,): what the logs' own policy earned, discounted, from each start to the log's end."""
    episode = episode_of(logs)
    first = np.flatnonzero(np.diff(episode, prepend=-1))
    age = np.arange(len(episode)) - first[episode]
    return np.bincount(episode, logs.reward * discount**age).astype(np.float64)


def fitted_value(
    judged: Judged, first: tuple[Tensor, Tensor], *, discount: float, steps: int, level: float = 0.0, seed: int = 0
) -> dict[str, float]:
    """The discounted return of a policy with its 95 % interval; `first` is where episodes begin and what it does there.

    `level` is a guess of the value, such as the logs' own, from which the fit starts.
    """
    scale = max(float(judged.reward.abs().mean()) / max(1 - discount, 1e-2), 1e-6)
    task = _Valuation(judged, discount, (level, scale))
    training = Training(steps=steps, batch=min(_BATCH, len(judged.reward)))
    engine = Cohort(task, training, [seed + member for member in range(MEMBERS)])
    engine.advance(steps)
    values = []
    for member in range(MEMBERS):
        modules = engine.state.modules_of(member)
        with torch.no_grad():
            found = level + scale * modules["critic"](*first)
        drawn = modules["drawn"].get_buffer("counts")
        values.append(float((drawn * found).sum() / drawn.sum()))
    mean, spread = float(np.mean(values)), float(np.std(values, ddof=1))
    half = student_t(MEMBERS - 1) * spread
    return {"value": mean, "value_low": mean - half, "value_high": mean + half}
