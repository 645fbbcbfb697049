"""Members that vote on access points."""

from __future__ import annotations

import torch

from fewer.systems.cellfree.task.settings import Settings
from fewer.systems.cellfree.task.task import CellFree


def test_most_members_decide_and_a_tie_serves() -> None:
    task = CellFree(Settings(access_points=12, side_m=300.0, candidates=3, train_phones=50, test_phones=20))
    members = torch.tensor([[[0.9, 0.6, 0.2]], [[0.8, 0.4, 0.1]]])
    assert task.majority(members).tolist() == [[1.0, 0.5, 0.0]]
