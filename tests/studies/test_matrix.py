"""Every cell of the matrix on tiny data, and every row of the study of transfer."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from fewer.core.files.atomic import write_json
from fewer.core.registry import make
from fewer.report import groups
from fewer.report.chart import curves
from fewer.studies import transfer
from fewer.studies.matrix import matrix as matrices
from fewer.studies.matrix import measure as matrix_measure
from fewer.studies.matrix import parts
from fewer.studies.matrix.cases import METHODS, SPARSITIES, cases, grid
from fewer.studies.matrix.page import series
from fewer.studies.matrix.picture import shares, uncertain
from fewer.studies.order import SCALES, Order
from fewer.studies.pieces import silent
from fewer.sweep.run import Where

TINY = sorted(cases())


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(1)
    monkeypatch.setitem(SCALES, "tiny", "for tests")
    monkeypatch.setattr(parts, "WHERE", Where("inline"))
    monkeypatch.setattr(transfer, "WHERE", Where("inline"))
    # tasks hold no weights: all runs of one share it, and its data are drawn once
    shared = functools.cache(make)
    monkeypatch.setattr("fewer.run.job.make", shared)


def alone(name: str, monkeypatch: pytest.MonkeyPatch, attack: Callable[[str], str] = lambda attack: attack) -> None:
    """That task's case, perhaps with a quicker attack."""
    found = {key: dataclasses.replace(case, attack=attack(case.attack)) for key, case in cases((name,)).items()}
    monkeypatch.setattr(matrices, "cases", lambda: found)
    monkeypatch.setattr(transfer, "cases", lambda: found)


@pytest.mark.parametrize("name", TINY)
def test_every_cell_of_the_matrix_runs(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    alone(name, monkeypatch, attack=lambda attack: attack.partition(",")[0].replace("pgd", "fgsm"))
    real, packed = matrix_measure._packed, list[dict[str, Any]]()

    def few(run: Any) -> dict[str, Any]:
        """Tracing is slow, and the same for all cells: two of them are packed."""
        wanted = run.job.prune is None or (run.job.prune.method, run.job.prune.sparsity) == ("snip", 0.9)
        found = real(run) if wanted else {"pack_bytes": None, "latency_ms": None}
        packed.extend([found] if wanted else [])
        return found

    monkeypatch.setattr(matrix_measure, "_packed", few)
    result = matrices.matrix(Order("matrix", "tiny", tmp_path, silent))
    cells = {(row[1], row[2]): row for row in result.rows}
    assert set(cells) == {("dense", "0%")} | {(m, f"{s:.0%}") for m in METHODS[1:] for s in SPARSITIES}
    statuses = [row["status"] for row in result.details["points"]]
    why = [row["why"] for row in result.details["points"] if row["status"] != "done"]
    # tiny networks lose their last path at the highest sparsities; a row then says so, and nothing else goes wrong
    assert all("mask that leaves" in line for line in why), why
    assert statuses.count("done") >= 24 and cells["snip", "90%"][8] == 1
    assert len(packed) == 2 and packed[1]["pack_bytes"] < packed[0]["pack_bytes"], packed
    assert result.figures["matrix.html"].count(b"<svg") == 2
    assert result.figures["matrix.png"].startswith(b"\x89PNG")
    json.dumps(result.record(), allow_nan=False)


def test_the_picture_shows_shares_of_dense_and_cells_that_fail() -> None:
    rows = [["a", "dense", "0%", "accuracy", "0.8 ± 0.01"], ["a", "snip", "90%", "accuracy", "0.6 ± 0.1"],
            ["a", "snip", "98%", "", "-"]]  # fmt: skip
    found = shares(rows)["a"]
    assert found["snip", "90%"] == pytest.approx(0.75) and math.isnan(found["snip", "98%"])


def test_tasks_whose_dense_seeds_differ_much_are_named() -> None:
    rows = [["a", "dense", "0%", "accuracy", "0.8 ± 0.01"], ["b", "dense", "0%", "accuracy", "0.2 ± 0.05"],
            ["c", "dense", "0%", "accuracy", "0.2"]]  # fmt: skip
    assert uncertain(rows) == {"b": 0.25}


def test_a_matrix_put_together_from_some_parts_says_what_was_left_out(tmp_path: Path) -> None:
    order = Order("matrix", "full", tmp_path, silent)
    (tmp_path / "matrix-full").mkdir()
    kept = {"method": "dense", "sparsity": 0.0, "steps": 10, "status": "done", "attacked": None, "figure": "accuracy"}
    for name, method in (("vision-criteria", "dense"), ("vision-half", parts.HALF), ("vision-lottery-50", "lottery")):
        task = {"task": "vision", "method": method, "sparsity": 0.5 if method == "lottery" else 0.0}
        records = [kept | task | {"seed": seed, "quality": 0.9 + seed / 100} for seed in range(3)]
        write_json(parts.file_of(order, name), {"machine": "one GPU", "records": records})
    result = matrices.matrix(order)
    left = "cut: auto and lottery at 80, 90, 95, 98 % on vision; cellfree; control; nowcast"
    assert result.title.endswith(left) and result.machines == ["one GPU"]
    assert [row[1] for row in result.rows] == ["dense", "lottery"]
    assert "vision: dense 0.91 after 10 updates, 0.91 after 10" in result.notes


def test_at_full_scale_the_tasks_own_recipe_stands_beside_the_criteria() -> None:
    every = grid("full", cases())
    assert every["axes"]["prune"][-1] == "auto" and len(every["axes"]["seed"]) == 3
    assert every["task"]["control"]["steps"] == 100_000


@pytest.mark.parametrize("name", TINY)
def test_hardening_voting_and_packing_work_on_every_task(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    alone(name, monkeypatch)
    result = transfer.transfer(Order("transfer", "tiny", tmp_path, silent))
    what = [row[1] for row in result.rows]
    assert what[:4] == ["plain", "hardened", "snip 90%", "vote by mean"], result.notes
    assert all(row["status"] == "done" for row in result.details["points"])
    assert all("KiB" in row[5] for row in result.rows[:3])


def test_an_interval_is_that_of_student() -> None:
    mean, half = groups.interval([1.0, 2.0, 3.0])
    assert mean == 2.0 and half == pytest.approx(4.303 / math.sqrt(3), rel=1e-3)
    assert math.isnan(groups.interval([1.0])[1])


def test_a_chart_has_a_whisker_for_every_mean_and_a_level_for_the_dense_network() -> None:
    def cell(method: str, sparsity: float, quality: groups.HalfInterval) -> matrices.Cell:
        return matrices.Cell("vision", method, sparsity, "accuracy", quality, quality, None, None, seeds=3)

    cells = [cell("dense", 0.0, (0.9, 0.1)), cell("snip", 0.5, (0.8, 0.1)), cell("snip", 0.9, (0.7, math.nan))]
    found = series(cells, ["dense", "snip"], "quality")
    assert found["dense"] == [(50.0, 0.9, 0.1), (90.0, 0.9, 0.1)] and [point[0] for point in found["snip"]] == [50, 90]
    drawn = curves(found, "pruned", "accuracy", marks=True)
    assert all(drawn.count(f'<line class="whisker c{colour}"') == 2 for colour in (0, 1))
