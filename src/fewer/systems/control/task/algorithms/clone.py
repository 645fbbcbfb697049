"""Behaviour cloning: the autoencoder's decoder, which is what the paper calls BC, and a plain network."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from fewer.core.task import Nets, Noise, Objective
from fewer.systems.control.task.algorithms.algorithm import Algorithm, clipped_normal
from fewer.systems.control.task.algorithms.networks import Actor, Decoder, Encoder
from fewer.systems.control.task.logs.steps import Steps

__all__ = ["Clone", "PlainClone", "autoencoder_loss", "autoencoder_networks", "decode"]

_SAMPLED = 0.25  # where the paper's code cuts the latent variable of its BC policy


def autoencoder_networks(algorithm: Algorithm) -> dict[str, nn.Module]:
    """Encoder and decoder."""
    hidden = algorithm.settings.autoencoder_hidden
    widths = algorithm.observations, algorithm.actions, algorithm.latent
    return {"encoder": Encoder(*widths, hidden), "decoder": Decoder(*widths, hidden)}


def autoencoder_loss(nets: Nets, batch: Steps, noise: Noise, weight: float) -> Tensor:
    """Reconstruction of the logged action, and the divergence of its latent variable from a standard normal one."""
    mean, log_deviation = nets.encoder(batch.observation, batch.action).chunk(2, dim=1)
    deviation = log_deviation.exp()
    latent = mean + deviation * noise.normal("latent", tuple(mean.shape))
    again = nets.decoder(batch.observation, latent)
    divergence = -0.5 * (1 + 2 * log_deviation - mean.square() - deviation.square()).mean()
    loss: Tensor = functional.mse_loss(again, batch.action) + weight * divergence
    return loss


def decode(nets: Nets, observation: Tensor, noise: Noise, *, latent: int, sampled: bool) -> Tensor:
    """The decoder's action at z = 0, or at one drawn z that all states share."""
    if sampled:
        drawn = clipped_normal(noise, "clone", (1, latent), _SAMPLED).expand(observation.shape[0], latent)
        return nets.decoder(observation, drawn)  # type: ignore[no-any-return]
    zero = observation.new_zeros(observation.shape[0], latent)
    return nets.decoder(observation, zero)  # type: ignore[no-any-return]


class Clone(Algorithm):
    """BC as the paper uses it: BCQ without critics and actor, which its policy never sees."""

    def networks(self) -> dict[str, nn.Module]:
        return autoencoder_networks(self)

    def objectives(self) -> tuple[Objective[Steps], ...]:
        return (Objective(("encoder", "decoder"), self._loss),)

    def act(self, nets: Nets, observation: Tensor, noise: Noise) -> Tensor:
        return decode(nets, observation, noise, latent=self.latent, sampled=self.settings.sampled)

    def _loss(self, nets: Nets, batch: Steps, noise: Noise) -> Tensor:
        return autoencoder_loss(nets, batch, noise, self.settings.divergence)


class PlainClone(Algorithm):
    """One network from observation to action, least squares."""

    def networks(self) -> dict[str, nn.Module]:
        return {"actor": Actor(self.observations, self.actions, self.settings.hidden)}

    def objectives(self) -> tuple[Objective[Steps], ...]:
        return (Objective(("actor",), self._loss),)

    def act(self, nets: Nets, observation: Tensor, noise: Noise) -> Tensor:
        return nets.actor(observation)  # type: ignore[no-any-return]

    def _loss(self, nets: Nets, batch: Steps, noise: Noise) -> Tensor:
        return torch.mean((nets.actor(batch.observation) - batch.action).square())
