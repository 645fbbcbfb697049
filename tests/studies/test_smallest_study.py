"""The study of the smallest networks, on a toy."""

from __future__ import annotations

from pathlib import Path

import pytest

from fewer.studies import smallest as study
from fewer.studies.matrix.cases import Case, cases
from fewer.studies.order import Order
from fewer.studies.pieces import silent


def test_a_row_tells_what_the_search_chose_and_what_the_test_split_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy = Case("", "", "", {}, {}, search={"steps": 30, "lr": 0.02}, max_loss=0.9)
    monkeypatch.setattr(study, "cases", lambda: {"tests.toys:Blobs": toy, "other": Case("", "", "", {}, {})})
    result = study.smallest_networks(Order("smallest", "quick", tmp_path, silent))
    (row,) = result.rows
    curve = result.details["curves"]["tests.toys:Blobs"]
    chosen = next(found for found in curve if f"{found.get('kept', -1):,}" == row[2])
    assert chosen["loss"] <= 0.9 and row[10] == f"{chosen['test']:.4g}" and row[-1] == len(curve)


def test_three_systems_are_searched_with_the_losses_that_the_tables_name() -> None:
    assert {name: case.max_loss for name, case in cases().items() if case.max_loss} == {
        "vision": 0.005, "cellfree": 0.005, "control": 0.03,
    }  # fmt: skip
