"""The permutation test against counting by hand, and against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fewer.studies import permutation
from fewer.studies.permutation import permutation_p


def test_groups_of_two_by_hand() -> None:
    # 1 2 | 3 4 and 3 4 | 1 2 are 2 apart, of the 6 groupings; 1 3 | 2 4 is 1 apart, as are 3 others, and 2 are 0 apart
    assert permutation_p([1, 2], [3, 4]) == pytest.approx(2 / 6)
    assert permutation_p([1, 3], [2, 4]) == pytest.approx(4 / 6)
    assert permutation_p([1, 4], [2, 3]) == 1.0


def test_equal_values_are_not_told_apart_and_the_order_of_groups_does_not_matter() -> None:
    assert permutation_p([0.1, 0.1, 0.1], [0.1, 0.1]) == 1.0
    assert permutation_p([0.1 + 0.2], [0.3]) == 1.0
    assert permutation_p([1, 2, 9], [4, 5]) == permutation_p([4, 5], [1, 2, 9])


def scipys(first: list[float], second: list[float]) -> float:
    def apart(a: np.ndarray, b: np.ndarray, axis: int) -> np.ndarray:
        return np.abs(a.mean(axis) - b.mean(axis))

    done = stats.permutation_test((first, second), apart, alternative="greater", n_resamples=np.inf, vectorized=True)
    return float(done.pvalue)


@pytest.mark.parametrize("sizes", [(3, 3), (5, 5), (2, 7), (3, 6)])
def test_it_agrees_with_scipy(sizes: tuple[int, int]) -> None:
    random = np.random.default_rng(sum(sizes))
    for shift in (0.0, 1.0, 3.0):
        first, second = (list(random.normal(mean, 1, size)) for mean, size in zip((0.0, shift), sizes))
        assert permutation_p(first, second) == pytest.approx(scipys(first, second))


def test_many_values_are_drawn_near_the_exact_share_and_the_same_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(3)
    first, second = list(random.normal(0, 1, 7)), list(random.normal(1.0, 1, 7))
    exact = permutation_p(first, second)
    monkeypatch.setattr(permutation, "_MOST", 3000)
    drawn = permutation_p(first, second)
    assert drawn == permutation_p(first, second) and 0.02 < exact < 0.9
    assert abs(drawn - exact) < 5 * (exact * (1 - exact) / 3000) ** 0.5


def test_a_group_without_values_is_refused() -> None:
    with pytest.raises(ValueError, match="0 and 2 values"):
        permutation_p([], [1, 2])
