"""TD3+BC (Fujimoto, Gu 2021): a deterministic policy, its value traded against imitation of the logs."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn import functional

from fewer.core.task import Copy, Nets, Noise, Objective
from fewer.systems.control.task.algorithms.algorithm import Algorithm
from fewer.systems.control.task.algorithms.networks import Actor, Critic
from fewer.systems.control.task.logs.steps import Steps

__all__ = ["TwinDelayed"]

_SMOOTHING, _SMOOTHING_LARGEST = 0.2, 0.5  # noise on target actions, in action bounds
_DELAY = 2  # critic updates per actor update


class TwinDelayed(Algorithm):
    """Twin critics and an actor that moves at every second step, targets with it."""

    def networks(self) -> dict[str, nn.Module]:
        widths, hidden = (self.observations, self.actions), self.settings.hidden
        critic = Critic(*widths, hidden)
        second = copy.deepcopy(critic) if self.settings.twin == "copy" else Critic(*widths, hidden)
        return {"critic": critic, "critic2": second, "actor": Actor(*widths, hidden)}

    def copies(self) -> dict[str, Copy]:
        rate = self.settings.target_rate
        return {f"{name}_target": Copy(name, rate, every=_DELAY) for name in ("actor", "critic", "critic2")}

    def same_mask(self) -> dict[str, str]:
        return {"critic2": "critic"}

    def objectives(self) -> tuple[Objective[Steps], ...]:
        return (
            Objective(("critic", "critic2"), self._critic_loss),
            Objective(("actor",), self._actor_loss, every=_DELAY),
        )

    def act(self, nets: Nets, observation: Tensor, noise: Noise) -> Tensor:
        return nets.actor(observation)  # type: ignore[no-any-return]

    def _critic_loss(self, nets: Nets, batch: Steps, noise: Noise) -> Tensor:
        with torch.no_grad():
            jitter = _SMOOTHING * noise.normal("smoothing", tuple(batch.action.shape))
            jitter = torch.clamp(jitter, -_SMOOTHING_LARGEST, _SMOOTHING_LARGEST)
            action = torch.clamp(nets.actor_target(batch.next_observation) + jitter, -1.0, 1.0)
            first = nets.critic_target(batch.next_observation, action)
            second = nets.critic2_target(batch.next_observation, action)
            target = batch.reward + self.settings.discount * batch.alive * torch.minimum(first, second)
        found = nets.critic(batch.observation, batch.action), nets.critic2(batch.observation, batch.action)
        return functional.mse_loss(found[0], target) + functional.mse_loss(found[1], target)

    def _actor_loss(self, nets: Nets, batch: Steps, noise: Noise) -> Tensor:
        """-lambda Q + (pi - a)^2, lambda = alpha / mean |Q|."""
        action = nets.actor(batch.observation)
        value = nets.critic(batch.observation, action)
        weight = self.settings.behaviour_weight / value.detach().abs().mean().clamp(min=1e-8)
        imitation = functional.mse_loss(action, batch.action)
        loss: Tensor = imitation - weight * value.mean()
        return loss
