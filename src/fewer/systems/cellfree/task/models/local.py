"""A model whose cost per phone does not depend on the network's size, and whose memory grows with it in proportion.

What a phone reports and where its master's candidates lie pass through shared layers; what is special about the
master (its surroundings' shadowing) comes from tables with one row per master. An access point that is new has a row
of zeros and is served by the shared layers; learning its row alone is enough.
"""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from fewer.systems.cellfree.task.arrays import Floats
from fewer.systems.cellfree.task.clusters import Clusters
from fewer.systems.cellfree.task.world.deployment import Deployment

__all__ = ["Local", "surroundings"]


def surroundings(deployment: Deployment, clusters: Clusters) -> Floats:
    """(L, 3 c): where each master's candidates lie, in units of the spacing, and how strongly it hears them."""
    positions = deployment.access_points
    around = deployment.displacement_m(positions[:, None], positions[clusters.candidates[:, 1:]])
    heard = deployment.gain_to(positions, clusters.candidates[:, 1:])
    heard = (heard - heard.mean()) / max(float(heard.std()), 1e-6)
    places = (around / deployment.spacing_m).reshape(len(positions), -1)
    return np.concatenate([places / 2, heard], axis=1)


class Local(nn.Module):
    """For every candidate the logit of serving at the task's threshold; with `gaps` also the log slope per dB.

    With a slope b the logit at another threshold is logit + 1.702 b (threshold - the task's): a gap that is normal
    with deviation 1 / b. Choosing at the task's threshold needs the first alone, so that is all a pack computes.
    """

    def __init__(self, access_points: int, candidates: int, *, reports: int, around: int, width: int) -> None:
        super().__init__()
        self.products, self.traits = width, 32
        self.own = nn.Embedding(access_points, self.products + self.traits)
        self.enter = nn.Linear(reports, self.products)
        self.first = nn.Linear(self.products + self.traits + reports + around, width)
        self.hidden = nn.Linear(width, width)
        self.leave = nn.Linear(width, candidates)
        self.slope = nn.Linear(width, 1)  # how sure of the place, common to all candidates
        # gaps start with a deviation of 12 dB: surer ones would drown the choice in the first gradients and scores
        self.sureness = nn.Parameter(torch.full((candidates,), -2.5))
        nn.init.normal_(self.own.weight, std=0.5)
        nn.init.uniform_(self.first.weight, -(width**-0.5), width**-0.5)  # as the next layer: magnitudes compare

    def forward(self, reports: Tensor, around: Tensor, master: Tensor, gaps: bool = False) -> Tensor:
        """(phones, c), or (phones, c, 2), from standardised reports, surroundings and masters (phones,)."""
        factors, traits = self.own.weight.index_select(0, master).split((self.products, self.traits), dim=1)
        h = torch.cat([self.enter(reports) * factors, traits, reports, around], dim=1)
        h = functional.relu(self.hidden(functional.relu(self.first(h))))
        logit: Tensor = self.leave(h)
        if not gaps:
            return logit
        # a tenth, so that slopes that vary little have weights as large as others and survive pruning by magnitude
        slope = (0.1 * self.slope(h) + self.sureness).clamp(-4.0, 3.0)
        return torch.stack([logit, slope], dim=2)

    @torch.no_grad()
    def at(self, master: int, around: Tensor) -> nn.Sequential:
        """The network of one master's phones: what is known of the master is folded into its first layer.

        (phones, reports) to (phones, c) logits; three layers, small enough to live in the access point.
        """
        factors, traits = self.own.weight[master].split((self.products, self.traits))
        mixed, known, direct, place = self.first.weight.split(
            (self.products, self.traits, self.enter.in_features, len(around)), dim=1
        )
        first = nn.Linear(self.enter.in_features, self.first.out_features)
        first.weight.copy_(mixed @ (factors[:, None] * self.enter.weight) + direct)
        first.bias.copy_(self.first.bias + mixed @ (factors * self.enter.bias) + known @ traits + place @ around)
        layers = [first, nn.ReLU(), copy.deepcopy(self.hidden), nn.ReLU(), copy.deepcopy(self.leave)]
        return nn.Sequential(*layers)
