"""The paper's two graphs as a PyTorch Geometric `HeteroData`, for whoever wants to use other models on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from fewer.core.errors import MissingExtra
from fewer.systems.cellfree.task.models.sage import access_point_graph
from fewer.systems.cellfree.task.survey import Survey, World

__all__ = ["hetero_data"]


def hetero_data(world: World, survey: Survey) -> Any:
    """Access points with undirected edges among them, phones with edges from their candidates, labels on these."""
    try:
        from torch_geometric.data import HeteroData
    except ImportError:
        raise MissingExtra("no torch_geometric", "PyTorch Geometric", "pip install torch-geometric") from None
    neighbours, strength, heard = access_point_graph(world.deployment)
    count = len(world.deployment)
    pairs = np.unique(np.stack([neighbours.ravel(), np.repeat(np.arange(count), neighbours.shape[1])]), axis=1)
    candidates = world.clusters.candidates[survey.master]
    slots = candidates.shape[1]
    signal, known = np.zeros((len(survey), count)), np.zeros((len(survey), count))
    rows = np.arange(len(survey))[:, None]
    links = world.clusters.measured[survey.master]
    signal[rows, links] = survey.rsrp_db
    known[rows, links] = survey.reported
    data = HeteroData()
    data["access_point"].x = torch.as_tensor(np.concatenate([strength, heard], axis=1), dtype=torch.float32)
    data["access_point"].position_m = torch.as_tensor(world.deployment.access_points, dtype=torch.float32)
    data["phone"].x = torch.as_tensor(np.concatenate([signal, known], axis=1), dtype=torch.float32)
    data["phone"].master = torch.as_tensor(survey.master)
    data["access_point", "near", "access_point"].edge_index = torch.as_tensor(pairs)
    serves = data["access_point", "serves", "phone"]
    serves.edge_index = torch.as_tensor(np.stack([candidates.ravel(), np.repeat(np.arange(len(survey)), slots)]))
    serves.edge_label = torch.as_tensor(survey.serves(world.settings.threshold_db).ravel())
    serves.gap_db = torch.as_tensor(survey.gap_db.ravel(), dtype=torch.float32)
    return data
