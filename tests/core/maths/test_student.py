"""Student's t against tables and scipy."""

from __future__ import annotations

import itertools

import pytest

from fewer.core.maths.student import student_t
from fewer.report.groups import interval


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_students_t_is_scipys_for_every_number_of_seeds(level: float) -> None:
    from scipy.stats import t

    for freedom in [*range(1, 60), 99, 100, 999, 1000]:
        assert student_t(freedom, level) == pytest.approx(t.ppf((1 + level) / 2, freedom), rel=1e-9)


def test_students_t_falls_with_every_further_seed_towards_the_normal_quantile() -> None:
    found = [student_t(freedom) for freedom in range(1, 200)]
    assert all(later < sooner for sooner, later in itertools.pairwise(found)) and 1.96 < found[-1] < 1.98
    assert found[0] == pytest.approx(12.7062, abs=1e-4) and found[9] == pytest.approx(2.2281, abs=1e-4)


def test_the_interval_of_eleven_seeds_is_students_not_the_normal_one() -> None:
    values = [float(value) for value in range(11)]  # deviation sqrt(11)
    assert interval(values) == pytest.approx((5.0, 2.2281), abs=1e-4)
