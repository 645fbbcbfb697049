"""Batch-constrained Q-learning (Fujimoto, Meger, Precup 2019): values of actions that the logs could have held.

One update is autoencoder, critics, actor, target networks, in this order; each is an objective of its own, so that
a pruning criterion scores each network by its own loss, as the paper's Algorithm 1 does.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn import functional

from fewer.core.task import Copy, Nets, Noise, Objective
from fewer.systems.control.task.algorithms.algorithm import Algorithm, clipped_normal
from fewer.systems.control.task.algorithms.clone import autoencoder_loss, autoencoder_networks, decode
from fewer.systems.control.task.algorithms.networks import Critic, Perturbation
from fewer.systems.control.task.logs.steps import Steps

__all__ = ["BatchConstrained"]

_LATENT = 0.5  # where the latent variable of a candidate action is cut


class BatchConstrained(Algorithm):
    """Twin critics, an actor that perturbs candidate actions, and the autoencoder that makes them."""

    def networks(self) -> dict[str, nn.Module]:
        widths, hidden = (self.observations, self.actions), self.settings.hidden
        autoencoder = autoencoder_networks(self)
        critic = Critic(*widths, hidden)
        # Algorithm 1 copies the first critic; then both see the same targets and stay equal for ever
        second = copy.deepcopy(critic) if self.settings.twin == "copy" else Critic(*widths, hidden)
        actor = Perturbation(*widths, hidden, self.settings.perturbation)
        return {**autoencoder, "critic": critic, "critic2": second, "actor": actor}

    def copies(self) -> dict[str, Copy]:
        return {f"{name}_target": Copy(name, self.settings.target_rate) for name in ("actor", "critic", "critic2")}

    def same_mask(self) -> dict[str, str]:
        return {"critic2": "critic"}

    def objectives(self) -> tuple[Objective[Steps], ...]:
        return (
            Objective(("encoder", "decoder"), self._autoencoder_loss),
            Objective(("critic", "critic2"), self._critic_loss),
            Objective(("actor",), self._actor_loss),
        )

    def act(self, nets: Nets, observation: Tensor, noise: Noise) -> Tensor:
        """The best of several candidates; all states share one draw of latent variables, so the policy is fixed."""
        settings = self.settings
        if settings.policy == "decoder":
            return self._decoded(nets, observation, noise)
        latent = clipped_normal(noise, "candidates", (settings.candidates, self.latent), _LATENT)
        states = _repeated(observation, settings.candidates)
        latents = latent.expand(observation.shape[0], *latent.shape).reshape(-1, self.latent)
        action = nets.actor(states, nets.decoder(states, latents))
        best = nets.critic(states, action).reshape(-1, settings.candidates).argmax(dim=1)
        choices = action.reshape(-1, settings.candidates, self.actions)
        own = choices.gather(1, best[:, None, None].expand(-1, 1, self.actions))[:, 0]
        return torch.cat([own, self._decoded(nets, observation, noise)], 1) if settings.policy == "both" else own

    def _decoded(self, nets: Nets, observation: Tensor, noise: Noise) -> Tensor:
        return decode(nets, observation, noise, latent=self.latent, sampled=self.settings.sampled)

    def _autoencoder_loss(self, nets: Nets, batch: Steps, noise: Noise) -> Tensor:
        return autoencoder_loss(nets, batch, noise, self.settings.divergence)

    def _critic_loss(self, nets: Nets, batch: Steps, noise: Noise) -> Tensor:
        """Both critics against r + gamma max over candidates of lambda min(Q1, Q2) + (1 - lambda) max(Q1, Q2)."""
        target = self._target(nets, batch, noise)
        first = nets.critic(batch.observation, batch.action)
        second = nets.critic2(batch.observation, batch.action)
        return functional.mse_loss(first, target) + functional.mse_loss(second, target)

    @torch.no_grad()
    def _target(self, nets: Nets, batch: Steps, noise: Noise) -> Tensor:
        settings, following = self.settings, _repeated(batch.next_observation, self.settings.target_samples)
        latent = clipped_normal(noise, "target", (following.shape[0], self.latent), _LATENT)
        action = nets.actor_target(following, nets.decoder(following, latent))
        first, second = nets.critic_target(following, action), nets.critic2_target(following, action)
        low, high = torch.minimum(first, second), torch.maximum(first, second)
        value = torch.lerp(high, low, settings.pessimism).reshape(-1, settings.target_samples).amax(dim=1)
        return batch.reward + settings.discount * batch.alive * value

    def _actor_loss(self, nets: Nets, batch: Steps, noise: Noise) -> Tensor:
        latent = clipped_normal(noise, "actor", (batch.observation.shape[0], self.latent), _LATENT)
        with torch.no_grad():
            candidate = nets.decoder(batch.observation, latent)
        value: Tensor = nets.critic(batch.observation, nets.actor(batch.observation, candidate))
        return -value.mean()


def _repeated(observation: Tensor, times: int) -> Tensor:
    """(batch * times, observations), each state `times` times in a row."""
    return observation[:, None].expand(-1, times, -1).reshape(-1, observation.shape[1])
