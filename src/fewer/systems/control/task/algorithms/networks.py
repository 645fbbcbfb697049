"""Networks of the offline algorithms, all on observations and actions in their own units of order one.

Observation, action and latent variable are separate arguments, so that a mask that cuts one of them off is seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

__all__ = ["Actor", "Critic", "Decoder", "Encoder", "Gaussian", "Perturbation", "Value"]

LOG_DEVIATION = (-4.0, 15.0)  # of the encoder, as in the reference


def layers(inputs: int, hidden: Sequence[int], outputs: int) -> nn.Sequential:
    """Linear layers with rectifiers between them; torch's own first weights."""
    modules: list[nn.Module] = []
    for before, after in pairwise((inputs, *hidden, outputs)):
        modules += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*modules[:-1])


class Critic(nn.Module):
    """(batch,): the value of an action in a state."""

    def __init__(self, observations: int, actions: int, hidden: Sequence[int]) -> None:
        super().__init__()
        self.body = layers(observations + actions, hidden, 1)

    def forward(self, observation: Tensor, action: Tensor) -> Tensor:
        value: Tensor = self.body(torch.cat([observation, action], 1))
        return value[:, 0]


class Value(nn.Module):
    """(batch,): the value of a state."""

    def __init__(self, observations: int, hidden: Sequence[int]) -> None:
        super().__init__()
        self.body = layers(observations, hidden, 1)

    def forward(self, observation: Tensor) -> Tensor:
        value: Tensor = self.body(observation)
        return value[:, 0]


class Actor(nn.Module):
    """(batch, actions): the action for a state, in -1 to 1."""

    def __init__(self, observations: int, actions: int, hidden: Sequence[int]) -> None:
        super().__init__()
        self.body = layers(observations, hidden, actions)

    def forward(self, observation: Tensor) -> Tensor:
        return torch.tanh(self.body(observation))


class Gaussian(nn.Module):
    """(batch, 2 actions): mean, in -1 to 1, and logarithmic deviation, the same in every state."""

    def __init__(self, observations: int, actions: int, hidden: Sequence[int]) -> None:
        super().__init__()
        self.body = layers(observations, hidden, actions)
        self.log_deviation = nn.Parameter(torch.zeros(actions))

    def forward(self, observation: Tensor) -> Tensor:
        mean = torch.tanh(self.body(observation))
        return torch.cat([mean, self.log_deviation.clamp(-20.0, 2.0).expand_as(mean)], 1)


class Perturbation(nn.Module):
    """(batch, actions): a candidate action, changed by at most `largest` and kept in -1 to 1."""

    def __init__(self, observations: int, actions: int, hidden: Sequence[int], largest: float) -> None:
        super().__init__()
        self.body, self.largest = layers(observations + actions, hidden, actions), largest

    def forward(self, observation: Tensor, action: Tensor) -> Tensor:
        change = self.largest * torch.tanh(self.body(torch.cat([observation, action], 1)))
        return (action + change).clamp(-1.0, 1.0)


class Encoder(nn.Module):
    """(batch, 2 latent): mean and logarithmic deviation of the latent variable behind an action."""

    def __init__(self, observations: int, actions: int, latent: int, hidden: Sequence[int]) -> None:
        super().__init__()
        self.body = nn.Sequential(*layers(observations + actions, hidden[:-1], hidden[-1]), nn.ReLU())
        self.mean, self.log_deviation = nn.Linear(hidden[-1], latent), nn.Linear(hidden[-1], latent)

    def forward(self, observation: Tensor, action: Tensor) -> Tensor:
        found = self.body(torch.cat([observation, action], 1))
        return torch.cat([self.mean(found), self.log_deviation(found).clamp(*LOG_DEVIATION)], 1)


class Decoder(nn.Module):
    """(batch, actions): the action that a latent variable stands for in a state, in -1 to 1."""

    def __init__(self, observations: int, actions: int, latent: int, hidden: Sequence[int]) -> None:
        super().__init__()
        self.body = layers(observations + latent, hidden, actions)

    def forward(self, observation: Tensor, latent: Tensor) -> Tensor:
        return torch.tanh(self.body(torch.cat([observation, latent], 1)))
