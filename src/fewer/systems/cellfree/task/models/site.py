"""The selection of one master as a network of its own: three layers that an access point can carry itself.

In a cell-free network the master chooses for its phones. Everything the model knows of the master is then constant,
and so is the standardisation of reports: missing ones are 0 and flagged, so it is linear and folds away too.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn

from fewer.core.errors import UserError
from fewer.systems.cellfree.task.models.local import Local
from fewer.systems.cellfree.task.task import CellFree

__all__ = ["site_network", "site_reports"]


@torch.no_grad()
def site_network(task: CellFree, modules: Mapping[str, nn.Module], master: int) -> nn.Sequential:
    """(phones, 2 measured) raw reports in dB and flags, to (phones, c) probabilities of serving, master left out."""
    net = modules["net"]
    if not isinstance(net, Local):
        raise UserError(f"a {type(net).__name__}", "the local model", "train with model=local")
    chosen = int(task.world.clusters.checked_master(np.array([master]))[0])
    layers = net.at(chosen, task.constants["around"][chosen].to(net.leave.weight))
    first: Tensor = layers[0].weight  # type: ignore[assignment]
    measured = first.shape[1] // 2
    center, spread = task.standard
    # (r - center) / spread where reported: r / spread - flag * center / spread
    first[:, measured:] -= first[:, :measured] * (center / spread)
    first[:, :measured] /= spread
    return nn.Sequential(*layers, nn.Sigmoid()).eval()


def site_reports(rsrp_db: Tensor, reported: Tensor) -> Tensor:
    """(phones, 2 measured): reports with 0 where missing, then the flags."""
    return torch.cat([rsrp_db * reported, reported], dim=-1)
