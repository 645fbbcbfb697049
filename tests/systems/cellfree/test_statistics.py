"""Ranking metrics and calibration by hand, with a single positive, a single negative and scores of exactly one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from fewer.core.errors import UserError
from fewer.systems.cellfree.task.spectral.efficiency import strongest_clusters
from fewer.systems.cellfree.task.spectral.report import compare
from fewer.systems.cellfree.task.statistics import average_precision, calibration_error, metrics, reliability, roc_area

from .test_spectral_report import QUICK, gains


@pytest.mark.parametrize("labels", [[0, 1, 0, 0], [1, 1, 0, 1], [1, 0, 1, 0]])
def test_areas_and_precisions_are_scikit_learns_with_few_of_a_kind(labels: list[int]) -> None:
    scores, wanted = np.array([0.9, 0.4, 0.4, 0.1]), np.array(labels, dtype=bool)
    assert roc_area(scores, wanted) == pytest.approx(roc_auc_score(wanted, scores))
    assert average_precision(scores, wanted) == pytest.approx(average_precision_score(wanted, scores))


def test_of_one_kind_alone_there_is_no_area() -> None:
    scores = np.array([0.9, 0.4])
    assert math.isnan(roc_area(scores, np.array([True, True]))) and math.isnan(roc_area(scores, np.zeros(2, bool)))
    assert math.isnan(average_precision(scores, np.zeros(2, bool)))


def test_a_probability_of_one_lies_in_the_last_bin() -> None:
    table = reliability(np.array([1.0, 0.999, 0.0]), np.array([True, False, False]), bins=10)
    assert table.shape == (10, 3)
    assert table[9].tolist() == pytest.approx([0.9995, 0.5, 2 / 3]) and table[0].tolist() == pytest.approx(
        [0, 0, 1 / 3]
    )
    assert calibration_error(np.array([1.0, 0.0]), np.array([True, False])) == 0.0


class Two:
    """Two phones with three candidates each, the master first; of the first phone's three serving points two are."""

    serving = np.array([3, 2])

    def __len__(self) -> int:
        return 2

    def serves(self, threshold_db: float) -> np.ndarray:
        return np.array([[True, True, False], [True, False, True]])


def test_precision_and_recall_are_counted_with_and_without_the_master() -> None:
    found = metrics(np.array([[0.9, 0.8, 0.1], [0.9, 0.7, 0.6]]), Two(), 0.0)  # type: ignore[arg-type]
    wanted = {
        "precision": 4 / 5, "recall": 4 / 5, "recall_inside": 1.0, "other_precision": 2 / 3, "other_recall": 2 / 3,
        "ignored": 1 / 5,
    }  # fmt: skip
    assert {name: found[name] for name in wanted} == pytest.approx(wanted)
    one = metrics(np.array([[0.9, 0.8, 0.1], [0.9, 0.2, 0.1]]), Two(), 0.0)  # type: ignore[arg-type]
    assert (one["precision"], one["other_precision"]) == (1.0, 1.0)
    none = metrics(np.zeros((2, 3)), Two(), 0.0)  # type: ignore[arg-type]
    assert (none["precision"], none["recall"], none["other_precision"]) == (0.0, 0.0, 0.0)


def test_every_access_point_may_have_been_measured_and_no_more() -> None:
    gain = gains(0)
    ours = strongest_clusters(gain, np.full(12, 3))
    assert compare(gain, ours, setup=QUICK, measured=20).metrics["measurements_saved_per_phone"] == 0
    for measured in (21, -1):
        with pytest.raises(UserError, match="measurements a phone"):
            compare(gain, ours, setup=QUICK, measured=measured)


def test_what_the_middle_phone_loses_is_the_median_of_each_phones_loss() -> None:
    gain = gains(1)
    found = compare(gain, strongest_clusters(-gain, np.full(12, 3)), setup=QUICK)
    lost = 100 * np.median(1 - found.uplink_predicted / found.uplink_ideal)
    assert found.metrics["uplink_lost_percent_of_median_phone"] == pytest.approx(lost)
