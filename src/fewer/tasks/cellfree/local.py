"""A model whose cost per phone does not depend on the network's size, and whose memory grows with it in proportion.

What a phone reports and where its master's candidates lie pass through shared layers; what is special about the
master (its surroundings' shadowing) comes from tables with one row per master. An access point that is new has a row
of zeros and is served by the shared layers; learning its row alone is enough.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from fewer.tasks.cellfree.arrays import Floats
from fewer.tasks.cellfree.clusters import Clusters
from fewer.tasks.cellfree.deployment import Deployment

__all__ = ["Local", "gap_probability", "surroundings"]

_LOGISTIC = 1.702  # sigmoid(1.702 z) is the normal distribution function within 0.01


def surroundings(deployment: Deployment, clusters: Clusters) -> Floats:
    """(L, 3 c): where each master's candidates lie, in units of the spacing, and how strongly it hears them."""
    positions = deployment.access_points
    around = deployment.displacement_m(positions[:, None], positions[clusters.candidates[:, 1:]])
    heard = deployment.gain_to(positions, clusters.candidates[:, 1:])
    heard = (heard - heard.mean()) / max(float(heard.std()), 1e-6)
    places = (around / deployment.spacing_m).reshape(len(positions), -1)
    return np.concatenate([places / 2, heard], axis=1)


class Local(nn.Module):
    """(phones, c, 2): for every candidate the logit of serving at the task's threshold, and the log slope in dB.

    With a slope b the logit at another threshold is logit + 1.702 b (threshold - the task's): a gap that is normal
    with deviation 1 / b. Choosing at the task's threshold needs the first alone, so that is all a pack computes.
    """

    def __init__(self, access_points: int, candidates: int, *, reports: int, around: int, width: int) -> None:
        super().__init__()
        self.width, self.candidates = width, candidates
        self.products, self.traits = 64, 32
        # per master: factors of the first features, traits, a gate of the last features, a shift per candidate
        self.own = nn.Embedding(access_points, self.products + self.traits + width + candidates)
        self.enter = nn.Linear(reports, self.products)
        self.first = nn.Linear(self.products + self.traits + reports + around, width)
        self.hidden = nn.Linear(width, width)
        self.leave = nn.Linear(width, candidates)
        self.slope = nn.Linear(width, candidates)
        with torch.no_grad():
            self.own.weight.normal_(0.0, 0.5)
            self.own.weight[:, self.products + self.traits :] = 0.0
            self.own.weight[:, self.products + self.traits : -candidates] = 1.0

    def forward(self, reports: Tensor, around: Tensor, master: Tensor) -> Tensor:
        """From standardised reports (phones, reports), surroundings and masters (phones,)."""
        own = self.own.weight[master]
        factors, traits, gate, shift = own.split((self.products, self.traits, self.width, self.candidates), dim=1)
        h = torch.cat([self.enter(reports) * factors, traits, reports, around], dim=1)
        h = functional.relu(self.first(h))
        h = functional.relu(self.hidden(h)) * gate
        return torch.stack([self.leave(h) + shift, self.slope(h).clamp(-4.0, 3.0)], dim=2)
