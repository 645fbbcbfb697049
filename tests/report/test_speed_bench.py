"""The bench of speed against sparsity: what it computes from times, without depending on any."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from fewer.bench.speed import record
from fewer.bench.speed.curve import Curve, curve
from fewer.bench.speed.networks import kept, subjects
from fewer.bench.speed.peers import ONNX
from fewer.bench.speed.record import finished, write
from fewer.bench.speed.rows import bars


def made(**ours: float) -> Curve:
    return Curve("net", 1, {float(d[1:]) / 100: v for d, v in ours.items()}, {}, {ONNX: 8.0, "torch": 20.0}, 0.0)


def test_break_even_lies_where_the_lines_of_both_meet() -> None:
    assert made(_10=2.0, _50=8.0, _100=16.0).break_even == pytest.approx(0.5)
    assert made(_10=4.0, _30=16.0).break_even == pytest.approx(0.2)
    assert made(_10=9.0, _50=8.0).break_even is None
    assert made(_10=1.0, _100=7.0).break_even == 1.0


def test_rows_are_ratios_of_the_same_run_and_say_what_is_asked() -> None:
    one = made(_10=2.0, _50=8.0)
    rows = one.rows(bars(one))
    found = {(row.what, row.against): (row.ratio, row.required) for row in rows}
    assert found["net, 90 %, batch 1", "onnxruntime dense"] == (4.0, 0.8)
    assert found["net, 50 %, batch 1", "onnxruntime dense"] == (1.0, 0.5)
    assert found["net, 50 %, batch 1", "torch dense"] == (2.5, None)


def test_a_record_keeps_other_networks_and_shows_the_worst_row_as_well_as_the_best(tmp_path: Path) -> None:
    path = tmp_path / "speed.json"
    densities = {"_2": 1.0, "_5": 2.0, "_10": 4.0, "_20": 16.0}
    write(path, [made(**densities)])
    other = made(**densities)
    write(path, [Curve("other", 1, {d: 2 * v for d, v in other.ours.items()}, {}, other.theirs, 0.0)])
    kept_there = json.loads(path.read_text())
    assert [row[0] for row in kept_there["rows"]] == ["net", "other"]
    shown = kept_there["readme"]["rows"]
    assert shown[0] == ["other", "1", "80 %", "0.25x"] and shown[-1] == ["net", "1", "98 %", "8.00x"]
    assert "<svg" in path.with_suffix(".html").read_text()


def test_finished_rows_are_kept_and_those_of_other_sources_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "speed.json"
    assert finished(path, quick=False) == set()
    write(path, [made(_2=1.0, _5=2.0, _10=4.0, _20=16.0)])
    assert finished(path, quick=False) == {("net", 1)}
    assert finished(path, quick=True) == set()
    monkeypatch.setattr(record, "_MEASURED", ("kernels/*.h",))
    assert finished(path, quick=False) == set()


def test_every_matrix_keeps_its_share_or_all_of_them_together() -> None:
    lot = np.random.default_rng(0)
    weights = {"a": lot.standard_normal((40, 50)), "b": 10 * lot.standard_normal((40, 50)), "bias": np.ones(3)}
    each, all_of_them = kept(weights, 0.1), kept(weights, 0.1, together=True)
    assert [np.count_nonzero(each[name]) for name in weights] == [200, 200, 3]
    assert np.count_nonzero(all_of_them["a"]) + np.count_nonzero(all_of_them["b"]) == 400
    assert np.count_nonzero(all_of_them["b"]) > 300
    whole = kept(weights, 1.0)
    weights["a"][:] = 0  # as a network changes that shares its numbers
    assert np.count_nonzero(whole["a"]) == 2000


def test_a_network_is_measured_against_its_peers_and_answers_as_torch_does() -> None:
    names = set(subjects())
    assert {"digit CNN", "ResNet-18", "VGG-16", "MobileNet-like", "MLP 17-400-300-6"} <= names
    threads = torch.get_num_threads()
    one = curve(subjects()["MLP 17-400-300-6"], 2, densities=(0.1, 1.0), quick=True)
    assert torch.get_num_threads() == threads
    assert {ONNX, "torch"} <= set(one.theirs) and one.error < 1e-5
    assert all(seconds > 0 for seconds in [*one.ours.values(), *one.theirs.values(), *one.together.values()])
