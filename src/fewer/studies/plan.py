"""What a study would train, and how long that takes here: a few updates of every training, timed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from fewer.core.engines.base import Engine
from fewer.core.system import imported
from fewer.studies.order import Order

__all__ = ["Planned", "described", "estimate", "planned", "spelled"]

_UPDATES = 2  # timed, after as many that warm up
_SLOW = 10.0  # seconds of the first ones, beyond which they are estimate enough


@dataclass(frozen=True)
class Planned:
    """One training of a study, or several that are alike."""

    name: str
    updates: int  # of one such training
    engine: Callable[[], Engine]  # ready for its first update
    times: int = 1  # how many such trainings follow each other
    heavy: bool = False  # minutes an update without a GPU: neither timed nor tried there


def planned(order: Order) -> list[Planned]:
    """Every training of a study; none for one that trains nothing, or does not say."""
    found: list[Planned] = imported(order.asked.plan)(order) if order.asked.plan else []
    return found


def estimate(order: Order) -> dict[str, Any]:
    """Seconds of every training of a study, all of them on this machine one after the other, and that in words."""
    trainings = list[dict[str, Any]]()
    for one in planned(order):
        timed = torch.cuda.is_available() or not one.heavy
        seconds = one.times * one.updates * _seconds_an_update(one.engine()) if timed else None
        trainings.append({"name": one.name, "times": one.times, "updates": one.updates, "seconds": seconds})
        order.log(f"{one.name}: {described(trainings[-1])}")
    known = [one["seconds"] for one in trainings if one["seconds"] is not None]
    said = {"trainings": trainings, "seconds": sum(known) if len(known) == len(trainings) and known else None}
    return {"study": order.study, "scale": order.scale, **said, "in_words": _in_words(order, trainings)}


def described(training: dict[str, Any]) -> str:
    """One training in words, how long all like it take first."""
    seconds, times, updates = (training[key] for key in ("seconds", "times", "updates"))
    much = f"{updates:,} updates" if times == 1 else f"{times} times {updates:,} updates"
    return f"{'not timed without a CUDA GPU' if seconds is None else spelled(seconds)}, {much}"


def _in_words(order: Order, trainings: list[dict[str, Any]]) -> str:
    if not order.asked.plan:
        return f"{order.study} does not say what it trains: how long it takes is not known before it has run"
    if not trainings:
        return f"{order.study} at scale {order.scale} trains nothing"
    known = [one["seconds"] for one in trainings if one["seconds"] is not None]
    left = len(trainings) - len(known)
    if not known:
        return f"{order.study} at scale {order.scale} trains what is not timed without a CUDA GPU"
    beside = f", and {left} of {len(trainings)} that were not timed" if left else ""
    return f"{order.study} at scale {order.scale} trains for about {spelled(sum(known))} here, from nothing{beside}"


def _seconds_an_update(engine: Engine) -> float:
    first = _seconds(engine)
    return (first if first > _SLOW else _seconds(engine)) / _UPDATES


def _seconds(engine: Engine) -> float:
    begin = time.monotonic()
    engine.advance(_UPDATES)
    engine.mean_losses()  # waits for the device
    return time.monotonic() - begin


def spelled(seconds: float) -> str:
    """As one says it: 40 s, 12 min, 3.5 h, 6 days."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.1f} days"
