"""Steps for images that would leave their buffers: none is taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fewer.packs.images import planes

STEP = (0, 0, -1, 0, (0, 0.0, 0.0, 0.0))
SPARSE = (1, 8, 8, 0, 0, 0, 0, 8)


def sparse(*sizes: int, offset: int = 0) -> tuple[Any, ...]:
    """A convolution of one kept weight on a buffer of 16 numbers."""
    kept = np.array([0, 1], np.uint32), np.array([offset], np.uint32), np.ones(1, np.float32), np.zeros(1, np.float32)
    return (*STEP, (*sizes, *kept, np.zeros((0, 2), np.uint32)))


def dense(unit: int = 8, start: int = 0, offset: int = 0, taps: int = 1) -> tuple[Any, ...]:
    """A dense convolution to one channel, of one run of places."""
    tables = np.full(1, offset, np.uint32), np.ones((1, 8), np.float32), np.zeros(8, np.float32)
    return (1, *STEP[1:], (*SPARSE, 1, taps, unit, *tables, np.full(1, start, np.uint32)))


def panel(unit: int = 8, start: int = 0, offset: int = 0, deep: int = 1, tap: int = 0) -> tuple[Any, ...]:
    """Two kept weights of one channel on a copy of two taps."""
    starts, taps = np.array([0, 1, 2][: 1 + -(-2 // max(deep, 1))], np.uint32), np.array([tap, 0], np.uint32)
    starts[-1] = 2
    tables = np.array([0, offset], np.uint32), starts, taps, np.ones(2, np.float32), np.zeros(1, np.float32)
    return (6, *STEP[1:], (*SPARSE, 2, deep, unit, *tables, np.full(1, start, np.uint32)))


def spaced(step: int = 2, offset: int = 0, sizes: tuple[int, ...] = (1, 1, 1, 1, 4)) -> tuple[Any, ...]:
    """A convolution of one kept weight that reads every second place."""
    kept = np.array([0, 1], np.uint32), np.array([offset], np.uint32), np.ones(1, np.float32), np.zeros(1, np.float32)
    steps, to = (0, 16, 16, 16, step), (16, 16, 16, 16, 1)
    return (4, *STEP[1:], (sizes, 0, steps, 0, to, 0, to, *kept))


def resize(low: int = 1, inside: int = 2, places: int = 3) -> tuple[Any, ...]:
    """A row that is made longer, from one buffer of 16 numbers to another."""
    steps = (16, 16, 16, 16, 1)
    zero, along, share = np.zeros(1, np.uint32), np.full(places, low, np.uint32), np.zeros(places, np.float32)
    rest = ((1, 1, 1, 1, places), 0, steps, 0, steps, (1, 1, inside), zero, zero, along, None, None, share)
    return (5, 0, -1, 1, (0, 0.0, 0.0, 0.0), rest)


@pytest.mark.parametrize(
    "wrong",
    [
        resize(low=2), resize(inside=17), resize(places=17), (5, 0, 0, 1, *resize()[4:]),
        panel(unit=3), panel(start=1), panel(offset=9), panel(tap=1), panel(deep=2, tap=2), panel(deep=0),
        panel(deep=3),
        dense(unit=3), dense(unit=32), dense(start=1), dense(offset=9), dense(taps=2), dense(taps=0),
        spaced(step=1), spaced(offset=10), spaced(sizes=(1, 1, 1, 1, 9)), spaced(sizes=(2, 1, 1, 1, 4)),
        sparse(1, 17, 0, 0, 0, 0, 0, 8),  # more places than the buffer has
        sparse(*SPARSE, offset=9),
        sparse(1, 8, 8, -1, 0, 0, 0, 8),
        sparse(1, 8, 8, 0, 0, 0, 9, 8),
        sparse(0, 8, 8, 0, 0, 0, 0, 8),
        (9, *sparse(*SPARSE)[1:]),
        (0, 3, -1, 0, *sparse(*SPARSE)[4:]),  # no such buffer
        "nonsense",
    ],
)  # fmt: skip
def test_steps_that_would_leave_their_buffers_are_refused(wrong: Any) -> None:
    compiled = planes.kernels()
    if compiled is None:
        pytest.skip("no C kernels")
    assert compiled.Planes(
        [sparse(*SPARSE), dense(), panel(), panel(deep=2, tap=1), spaced(), resize()], (16, 16), (1,), (1,), 1
    )
    with pytest.raises((ValueError, TypeError)):
        compiled.Planes([wrong], (16, 16), (1,), (1,), 1)
