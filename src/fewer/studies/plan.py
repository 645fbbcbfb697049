"""What a study would train, and how long that takes here: a few updates of every training, timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fewer.core.engines.base import Engine
from fewer.core.system import imported
from fewer.studies.order import Order

__all__ = ["Planned", "estimate", "planned", "spelled"]

_UPDATES = 2  # timed, after as many that warm up


@dataclass(frozen=True)
class Planned:
    """One training of a study, or several that are alike."""

    name: str
    updates: int  # of one such training
    engine: Callable[[], Engine]  # ready for its first update
    times: int = 1  # how many such trainings follow each other


def planned(order: Order) -> list[Planned]:
    """Every training of a study; none for one that trains nothing, or does not say."""
    found: list[Planned] = imported(order.asked.plan)(order) if order.asked.plan else []
    return found


def estimate(trainings: Sequence[Planned]) -> dict[str, float]:
    """Seconds of each training, from a few of its updates on this machine."""
    return {one.name: one.times * one.updates * _seconds_an_update(one.engine()) for one in trainings}


def _seconds_an_update(engine: Engine) -> float:
    seconds = []
    for _ in range(2):
        begin = time.monotonic()
        engine.advance(_UPDATES)
        engine.mean_losses()  # waits for the device
        seconds.append(time.monotonic() - begin)
    return seconds[-1] / _UPDATES


def spelled(seconds: float) -> str:
    """As one says it: 40 s, 12 min, 3.5 h, 6 days."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.1f} days"
