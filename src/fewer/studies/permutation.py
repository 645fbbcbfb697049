"""A permutation test: how often chance alone parts two groups as far as they are apart."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence

import numpy as np

__all__ = ["permutation_p"]

_MOST = 200_000  # groupings that are all tried; of more, as many are drawn
_ROUNDING = 1e-9  # of the largest value: differences closer than that are equal


def permutation_p(first: Sequence[float], second: Sequence[float]) -> float:
    """The share of groupings of all values whose means are at least as far apart as those given; two-sided.

    Exact where there are few groupings; else from 200,000 that a fixed seed draws, the given one counted among them.

    >>> permutation_p([1, 2, 3], [4, 5, 6])
    0.1
    """
    return _share(tuple(map(float, first)), tuple(map(float, second)))


@functools.cache  # a claim, its page and its remark ask the same
def _share(first: tuple[float, ...], second: tuple[float, ...]) -> float:
    values = np.asarray([*first, *second], dtype=float)
    size, total = len(first), len(values)
    if not 0 < size < total:
        raise ValueError(f"{size} and {total - size} values; expected at least one of each")
    exact = math.comb(total, size) <= _MOST
    if exact:
        chosen = np.fromiter(itertools.chain(*itertools.combinations(range(total), size)), dtype=np.intp)
        sums = values[chosen.reshape(-1, size)].sum(1)
    else:
        random = np.random.default_rng(0)
        sums = np.array([random.permutation(values)[:size] for _ in range(_MOST)]).sum(1)
    far = np.abs(sums / size - (values.sum() - sums) / (total - size))
    given = abs(np.mean(first) - np.mean(second))
    hits = int((far >= given - _ROUNDING * np.abs(values).max()).sum())
    return hits / len(sums) if exact else (hits + 1) / (len(sums) + 1)
