"""Implicit Q-learning (Kostrikov, Nair, Levine 2022): never asks for the value of an action outside the logs."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn import functional

from fewer.core.task import Copy, Nets, Noise, Objective
from fewer.systems.control.task.algorithms.algorithm import Algorithm
from fewer.systems.control.task.algorithms.networks import Critic, Gaussian, Value
from fewer.systems.control.task.logs.steps import Steps

__all__ = ["SPAN", "Implicit"]

_LARGEST_WEIGHT = 100.0  # of one sample in the policy's regression

# Rewards are scaled so that logged returns span this, as the paper's program does for locomotion (appendix B: over the
# best less the worst return, times 1000; here 0 counts among the returns, or logs of one expert would be blown up). The
# temperature is a number for values of that size: of larger ones a few samples of a batch have all the weight, and
# errors of the critics decide which.
SPAN = 1000.0


class Implicit(Algorithm):
    """A value by expectile regression, twin critics on it, and a policy by weighted likelihood."""

    def networks(self) -> dict[str, nn.Module]:
        widths, hidden = (self.observations, self.actions), self.settings.hidden
        critic = Critic(*widths, hidden)
        second = copy.deepcopy(critic) if self.settings.twin == "copy" else Critic(*widths, hidden)
        value, actor = Value(self.observations, hidden), Gaussian(*widths, hidden)
        return {"value": value, "critic": critic, "critic2": second, "actor": actor}

    def copies(self) -> dict[str, Copy]:
        return {f"{name}_target": Copy(name, self.settings.target_rate) for name in ("critic", "critic2")}

    def same_mask(self) -> dict[str, str]:
        return {"critic2": "critic"}

    def objectives(self) -> tuple[Objective[Steps], ...]:
        return (
            Objective(("value",), self._value_loss),
            Objective(("critic", "critic2"), self._critic_loss),
            Objective(("actor",), self._actor_loss),
        )

    def act(self, nets: Nets, observation: Tensor, noise: Noise) -> Tensor:
        return nets.actor(observation)[:, : self.actions]  # type: ignore[no-any-return]

    def _advantage(self, nets: Nets, batch: Steps) -> Tensor:
        """min(Q1, Q2)(s, a) of the targets, less V(s)."""
        with torch.no_grad():
            first = nets.critic_target(batch.observation, batch.action)
            second = nets.critic2_target(batch.observation, batch.action)
            logged = torch.minimum(first, second)
        return logged - nets.value(batch.observation)  # type: ignore[no-any-return]

    def _value_loss(self, nets: Nets, batch: Steps, noise: Noise) -> Tensor:
        """Mean of |tau - 1(u < 0)| u^2 over u = Q - V (equation 5)."""
        ahead = self._advantage(nets, batch)
        expectile = self.settings.expectile
        return (torch.where(ahead < 0, 1 - expectile, expectile) * ahead.square()).mean()

    def _critic_loss(self, nets: Nets, batch: Steps, noise: Noise) -> Tensor:
        """r + gamma V(s') (equation 6)."""
        with torch.no_grad():
            target = batch.reward + self.settings.discount * batch.alive * nets.value(batch.next_observation)
        found = nets.critic(batch.observation, batch.action), nets.critic2(batch.observation, batch.action)
        return functional.mse_loss(found[0], target) + functional.mse_loss(found[1], target)

    def _actor_loss(self, nets: Nets, batch: Steps, noise: Noise) -> Tensor:
        """exp(beta (Q - V)) log pi(a | s), to be increased (equation 7)."""
        with torch.no_grad():
            weight = torch.exp(self.settings.temperature * self._advantage(nets, batch)).clamp(max=_LARGEST_WEIGHT)
        mean, log_deviation = nets.actor(batch.observation).chunk(2, dim=1)
        away = (batch.action - mean) * torch.exp(-log_deviation)
        likelihood = -(0.5 * away.square() + log_deviation).sum(dim=1)
        loss: Tensor = -(weight * likelihood).mean()
        return loss
