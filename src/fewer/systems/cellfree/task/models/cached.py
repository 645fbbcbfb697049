"""The paper's inference: embeddings of access points do not depend on phones, so they are computed once and kept."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from fewer.core.errors import UserError
from fewer.core.task import Predict
from fewer.systems.cellfree.task.models.sage import Sage
from fewer.systems.cellfree.task.task import CellFree, Phones

__all__ = ["cached_predictor"]


@torch.no_grad()
def cached_predictor(task: CellFree, modules: Mapping[str, nn.Module]) -> Predict:
    """Predictions of the paper's network that compute the phones' side alone."""
    net = modules["net"]
    if not isinstance(net, Sage):
        raise UserError(f"a {type(net).__name__}", "the paper's network", "train with model=sage")
    net.eval()
    clusters = task.constants["candidates"]
    known = net.access_points(task.constants["features"], task.constants["neighbours"], clusters)

    @torch.no_grad()
    def predict(batch: Phones) -> Tensor:
        inputs = task.inputs(batch)
        return torch.sigmoid(net.phones(task.node_features(inputs), inputs.master, clusters[inputs.master], known))

    return predict
