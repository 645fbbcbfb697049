"""The paper's model: pool-aggregator GraphSAGE on the access-point graph, then from access points to phones.

AGGREGATE is max over neighbours of a two-layer network (2), UPDATE is SELU(W h + AGGREGATE) (3), the score of a link
is a dot product (4). Neighbour lists have one length, filled up by repeating a member, which a maximum does not see;
so there is nothing to scatter, and the same lines run under vmap and export.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from fewer.systems.cellfree.task.arrays import Floats, Integers
from fewer.systems.cellfree.task.world.deployment import Deployment

__all__ = ["PoolConvolution", "Sage", "access_point_graph"]


def access_point_graph(deployment: Deployment, degree: int = 5) -> tuple[Integers, Floats, Floats]:
    """Neighbours (L, most), and features: R_{l,l'} (L, L) in dB where l is among the closest of l', and where that is.

    Edges go both ways; rows with fewer neighbours than the longest repeat their first.
    """
    count, positions = len(deployment), deployment.access_points
    degree = min(degree, count - 1)
    near = deployment.near(positions, degree + 1)[:, 1:]
    linked = np.zeros((count, count), dtype=bool)
    linked[np.arange(count)[:, None], near] = True
    heard = linked.T  # x_l(l') is known if l is among the closest of l'
    strength = np.zeros((count, count))
    strength[near, np.arange(count)[:, None]] = deployment.gain_to(positions, near)
    linked = linked | linked.T
    longest = int(linked.sum(axis=1).max())
    rows = [np.flatnonzero(row) for row in linked]
    neighbours = np.stack([np.concatenate([row, np.repeat(row[:1], longest - len(row))]) for row in rows])
    return neighbours, strength, heard.astype(np.float64)


class PoolConvolution(nn.Module):
    """One message-passing step: SELU(W h_k + max_v Psi(h_v))."""

    def __init__(self, width_in: int, width: int) -> None:
        super().__init__()
        self.own = nn.Linear(width_in, width, bias=False)
        self.inner = nn.Linear(width_in, width)
        self.outer = nn.Linear(width, width)

    def message(self, h: Tensor) -> Tensor:
        """Psi, for every node that sends."""
        return self.outer(functional.selu(self.inner(h)))  # type: ignore[no-any-return]

    def update(self, h: Tensor, pooled: Tensor | None) -> Tensor:
        """Equation 3; nodes that nobody sends to have nothing to add."""
        own = self.own(h)
        return functional.selu(own if pooled is None else own + pooled)


class Sage(nn.Module):
    """N = 2 convolutions among access points, M = 2 from them to phones, every embedding as wide as there are points.

    The paper's inputs are L raw values. Ours are 2 L, scaled values and beside them which of them exist: the paper's 0
    for "not measured" is also a signal level.
    """

    def __init__(self, access_points: int, inputs: int) -> None:
        super().__init__()
        width = access_points
        self.first = PoolConvolution(inputs, width)
        self.second = PoolConvolution(width, width)
        self.phone = nn.Linear(inputs, width)
        self.third = PoolConvolution(width, width)
        self.fourth = PoolConvolution(width, width)

    def access_points(self, features: Tensor, neighbours: Tensor, clusters: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What does not depend on phones and can be kept: final embeddings (L, L), and what each cluster pools twice.

        No edge leads to an access point from a phone, so a phone's messages depend on its master alone.
        """
        h = features
        for convolution in (self.first, self.second):
            h = convolution.update(h, _pooled(convolution.message(h), neighbours))
        third = _pooled(self.third.message(h), clusters)
        h = self.third.update(h, None)
        fourth = _pooled(self.fourth.message(h), clusters)
        return self.fourth.update(h, None), third, fourth

    def forward(
        self, reports: Tensor, master: Tensor, features: Tensor, neighbours: Tensor, clusters: Tensor
    ) -> Tensor:
        """(phones, c + 1) logits from reports (phones, inputs); the graph comes with a leading axis of one."""
        known = self.access_points(features[0], neighbours[0], clusters[0])
        return self.phones(reports, master, clusters[0][master], known)

    def phones(
        self, reports: Tensor, master: Tensor, candidates: Tensor, known: tuple[Tensor, Tensor, Tensor]
    ) -> Tensor:
        """The phones' side, given the access points' side."""
        embeddings, third, fourth = known
        h = functional.selu(self.phone(reports))
        h = self.third.update(h, third[master])
        h = self.fourth.update(h, fourth[master])
        return torch.matmul(embeddings[candidates], h[:, :, None])[:, :, 0]


def _pooled(messages: Tensor, members: Tensor) -> Tensor:
    """(groups, width): the maximum over each group's members."""
    return messages[members].amax(dim=1)
