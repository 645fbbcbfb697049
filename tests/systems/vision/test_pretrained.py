"""A trained network pruned through `fewer.train(network, ...)`: its pieces, its table, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fewer.core.errors import UserError
from fewer.studies.making import make_pieces
from fewer.studies.order import Order
from fewer.studies.study import reproduce
from tests.systems.vision.small import digits_file, quiet


def test_a_dense_network_is_pruned_and_trained_on_and_all_three_are_in_the_table(tmp_path: Path) -> None:
    order = Order("vision/pretrained", "quick", tmp_path / "out", quiet, data=digits_file(tmp_path, 400, 60))
    with pytest.raises(UserError, match="--pieces dense first"):
        make_pieces(order, ["pruned"])
    result = reproduce(order)
    dense, pruned, further = result.details["trainings"]
    assert [row[0] for row in result.rows] == ["dense", "pruned", "further"]
    assert dense["kept_prunable_weights"] == further["kept_prunable_weights"] == dense["prunable_weights"]
    assert pruned["kept_prunable_weights"] == round(0.2 * pruned["prunable_weights"])
    assert pruned["pack_bytes"] < 0.5 * dense["pack_bytes"]
    assert all(row["packed"] == pytest.approx(row["accuracy"], abs=1 / 60 + 1e-9) for row in (dense, pruned, further))
    points = 100 * (pruned["accuracy"] - dense["accuracy"])
    assert result.remarks[0].startswith(
        f"pruned is {abs(points):.2f} points {'above' if points >= 0 else 'below'} dense"
    )


def test_photographs_have_to_be_given(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no --data"):
        make_pieces(Order("vision/pretrained", "full", tmp_path, quiet), ["dense"])
