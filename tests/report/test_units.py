"""Intervals and differences over test samples: as the textbooks have them, and calibrated."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import stats

from fewer.core.engines.evaluate import evaluate, predictor
from fewer.core.engines.state import fresh_modules
from fewer.core.maths.student import student_p
from fewer.core.registry import make, system_of
from fewer.core.system import imported
from fewer.report.certainty.units import Units, difference, holm, intervals

SMALL = {
    "cellfree": ["access_points=15", "side_m=400", "candidates=5", "train_phones=50", "test_phones=80"],
    "control": ["environment=hopper", "algorithm=plain-bc", "transitions=500", "episodes=3", "horizon=20"],
    "nowcast": ["size=24", "width=4", "train_windows=2", "validation_windows=1", "test_windows=5"],
}


def mean(values: NDArray[Any]) -> Mapping[str, float]:
    return {"mean": float(values.mean())}


def units(values: NDArray[Any]) -> Units:
    return Units("samples", values, mean, np.arange(len(values)))


@pytest.mark.parametrize(("right", "count"), [(0, 20), (3, 20), (250, 300), (20, 20)])
def test_a_share_has_wilsons_interval(right: int, count: int) -> None:
    found = intervals(units(np.arange(count) < right))["mean"]
    expected = stats.binomtest(right, count).proportion_ci(method="wilson")
    assert found == pytest.approx((expected.low, expected.high), abs=1e-6)


def test_a_mean_has_about_the_interval_of_its_standard_error() -> None:
    values = np.random.default_rng(3).normal(5.0, 2.0, 400)
    low, high = intervals(units(values))["mean"]
    assert high - low == pytest.approx(2 * 1.96 * values.std() / 20, rel=0.1) and low < values.mean() < high
    assert intervals(units(values[:1])) == {}


def test_right_and_wrong_are_compared_by_the_exact_sign_test() -> None:
    first, second = np.zeros(40, bool), np.zeros(40, bool)
    first[:30], second[:22], second[30:33] = True, True, True
    found = difference(units(first), units(second), "mean")
    assert found.p == pytest.approx(stats.binomtest(3, 11).pvalue) and found.mean == pytest.approx(-5 / 40)
    assert found.low < found.mean < found.high and "the same 40 samples" in found.how


def test_pairs_tell_apart_what_two_samples_do_not() -> None:
    random = np.random.default_rng(0)
    hard = random.normal(0, 10, 200)
    first, second = units(hard), units(hard + 0.5 + random.normal(0, 1, 200))
    assert difference(first, second, "mean").p < 0.01
    other = Units("samples", second.records, mean, np.arange(200) + 1)
    assert difference(first, other, "mean").p > 0.3


def test_networks_that_do_not_differ_are_called_different_as_rarely_as_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fewer.report.certainty.units._ROUNDS", 200)
    random = np.random.default_rng(1)
    found = [difference(units(random.normal(size=30)), units(random.normal(size=30)), "mean").p for _ in range(100)]
    assert sum(p < 0.05 for p in found) <= 11  # of 100, 5 are expected


def test_holm_is_that_of_scipys_own() -> None:
    given = [0.01, 0.04, 0.03, 0.2]
    assert holm(given) == pytest.approx([0.04, 0.09, 0.09, 0.2]) and holm([]) == []


@pytest.mark.parametrize(("t", "freedom"), [(0.3, 1), (2.2, 4), (3.1, 9)])
def test_students_p_is_that_of_scipy(t: float, freedom: int) -> None:
    assert student_p(t, freedom) == pytest.approx(2 * stats.t.sf(t, freedom), abs=1e-9)
    assert student_p(-t, freedom) == student_p(t, freedom)


@pytest.mark.parametrize("name", SMALL)
def test_figures_of_the_units_are_those_of_the_evaluation(name: str) -> None:
    torch.manual_seed(0)
    task = make(name, SMALL[name])
    predict = predictor(task, fresh_modules(task, 0))
    found = imported(system_of(name).units)(task, predict)
    expected = evaluate(task, predict)
    counted = found.statistic(found.records)
    assert next(iter(expected)) in counted and len(found) == len(found.truth) > 2
    for metric, value in counted.items():
        assert value == pytest.approx(expected[metric], abs=1e-6, nan_ok=True), metric
    again = found.statistic(found.records[np.arange(len(found)) % 2])
    assert all(math.isfinite(value) for value in again.values())
