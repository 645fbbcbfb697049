"""How far a figure of one network can be trusted: the test samples behind it, counted again and again.

A task's figure is a statistic of its test units (images, phones, episodes, windows). Of shares that are right or wrong
the interval is Wilson's; of any other figure it is the bootstrap's: units are drawn anew with replacement and the
figure is counted on each draw. Two networks that were judged on the same units are compared pair by pair: how often a
random exchange of the two networks' answers parts them as far (of right or wrong answers, the exact sign test).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Difference", "Interval", "Units", "difference", "holm", "intervals", "wilson"]

Array = NDArray[Any]
_SEED = 0
_ROUNDS, _FEWER_ROUNDS, _LARGE = 2000, 400, 20_000  # draws; fewer where a record holds many numbers
_Z = 1.959964  # of a 95 % interval


class Interval(NamedTuple):
    """A figure and its 95 % interval, NaN where there is none."""

    mean: float
    low: float = math.nan
    high: float = math.nan

    @property
    def known(self) -> bool:
        """Whether there is an interval."""
        return math.isfinite(self.low) and math.isfinite(self.high)


@dataclass(frozen=True)
class Units:
    """What one network did on every test unit."""

    word: str  # what they are, in the plural
    records: Array  # (units, ...); bool (units,) is right or wrong
    statistic: Callable[[Array], Mapping[str, float]]  # figures of any such records
    truth: Array  # (units, ...): what was asked; networks that were asked the same can be compared pair by pair

    def __len__(self) -> int:
        return len(self.records)

    @property
    def counted(self) -> bool:
        """Whether units are right or wrong, and the figure is the share that is right."""
        return self.records.dtype == np.bool_ and self.records.ndim == 1

    def same_as(self, other: Units) -> bool:
        """Whether both were asked the same."""
        return self.records.shape == other.records.shape and np.array_equal(self.truth, other.truth)

    @property
    def rounds(self) -> int:
        """How many draws its figures are worth."""
        return _ROUNDS if self.records.size <= _LARGE else _FEWER_ROUNDS


class Difference(NamedTuple):
    """Second less first."""

    mean: float
    low: float
    high: float
    p: float  # of a difference at least as large by chance alone
    how: str  # in words


def wilson(right: int, count: int) -> tuple[float, float]:
    """The 95 % interval of a share of right answers."""
    share, room = right / count, _Z**2 / count
    centre = (share + room / 2) / (1 + room)
    half = _Z / (1 + room) * math.sqrt(share * (1 - share) / count + room / (4 * count))
    return max(centre - half, 0.0), min(centre + half, 1.0)


def _middle(values: Array) -> tuple[float, float]:
    """Where 95 % of the draws lie; those without a number, such as a ratio of nothing, are left out."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return math.nan, math.nan
    low, high = np.quantile(finite, [0.025, 0.975])
    return float(low), float(high)


def intervals(units: Units) -> dict[str, tuple[float, float]]:
    """Of every figure of the statistic; of fewer than two units there is none."""
    if len(units) < 2:
        return {}
    if units.counted:
        name = next(iter(units.statistic(units.records)))
        return {name: wilson(int(units.records.sum()), len(units))}
    random = np.random.default_rng(_SEED)
    drawn = [units.statistic(units.records[_draw(random, len(units))]) for _ in range(units.rounds)]
    return {name: _middle(np.array([one[name] for one in drawn])) for name in drawn[0]}


def _draw(random: np.random.Generator, count: int) -> Array:
    return random.integers(0, count, count)


def difference(first: Units, second: Units, name: str) -> Difference:
    """How far the second network's figure lies above the first's."""
    paired = first.same_as(second)
    mean = float(second.statistic(second.records)[name] - first.statistic(first.records)[name])
    low, high = _middle(np.array(_drawn_differences(first, second, name, paired=paired)))
    if paired and first.counted:
        p = _sign_p(int((second.records & ~first.records).sum()), int((first.records & ~second.records).sum()))
        return Difference(mean, low, high, p, f"the same {len(first):,} {first.word}, exact sign test")
    if paired:
        p = _exchange_p(first, second, name, mean)
        return Difference(mean, low, high, p, f"the same {len(first):,} {first.word}, exchanged pair by pair")
    p = _pooled_p(first, second, name, mean)
    return Difference(mean, low, high, p, f"{len(first):,} and {len(second):,} different {first.word}")


def _drawn_differences(first: Units, second: Units, name: str, *, paired: bool) -> list[float]:
    random, found = np.random.default_rng(_SEED), []
    for _ in range(first.rounds):
        own = _draw(random, len(first))
        other = own if paired else _draw(random, len(second))
        found.append(second.statistic(second.records[other])[name] - first.statistic(first.records[own])[name])
    return found


def _sign_p(wins: int, losses: int) -> float:
    """Two-sided: how often a fair coin is at least as uneven over the units on which just one was right."""
    count, fewer = wins + losses, min(wins, losses)
    logs = [math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1) for k in range(fewer + 1)]
    return min(1.0, 2 * sum(math.exp(log - count * math.log(2)) for log in logs))


def _share_as_far(found: list[float], given: float) -> float:
    """Of chance's differences, the given one counted among them; one without a number counts as far."""
    far = sum(not abs(value) < abs(given) - 1e-12 for value in found)
    return (far + 1) / (len(found) + 1)


def _exchange_p(first: Units, second: Units, name: str, given: float) -> float:
    random, found = np.random.default_rng(_SEED + 1), []
    shape = (len(first), *[1] * (first.records.ndim - 1))
    for _ in range(first.rounds):
        swap = random.integers(0, 2, len(first)).astype(bool).reshape(shape)
        one = np.where(swap, second.records, first.records)
        other = np.where(swap, first.records, second.records)
        found.append(second.statistic(other)[name] - first.statistic(one)[name])
    return _share_as_far(found, given)


def _pooled_p(first: Units, second: Units, name: str, given: float) -> float:
    random, found = np.random.default_rng(_SEED + 1), []
    pool = np.concatenate([first.records, second.records])
    for _ in range(first.rounds):
        mixed = pool[random.permutation(len(pool))]
        one, other = mixed[: len(first)], mixed[len(first) :]
        found.append(second.statistic(other)[name] - first.statistic(one)[name])
    return _share_as_far(found, given)


def holm(found: list[float]) -> list[float]:
    """Holm's p-values, in the order given: with several comparisons some look real by chance.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(found)), key=found.__getitem__)
    adjusted, largest = [0.0] * len(found), 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, (len(found) - rank) * found[index]))
        adjusted[index] = largest
    return adjusted
