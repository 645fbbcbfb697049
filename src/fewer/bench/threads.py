"""Packs of large networks on two threads against one: time on the clock, so it wants two quiet cores."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import numpy as np

from fewer.bench.row import Row
from fewer.bench.speed.networks import drawn, kept, subjects
from fewer.core.errors import UserError
from fewer.packs.pack import load
from fewer.packs.runtime.runtime import Pack
from fewer.packs.trace.trace import trace
from fewer.zoo import path

__all__ = ["run"]

USES_PACKS = True  # and is slower where the C kernels are missing

_NETWORKS, _DENSITY = ("ResNet-18", "VGG-16"), 0.1
_SHIPPED = ("nowcast-80", "nowcast-90", "photos-hardened")
_BATCHES, _ASKED = (1, 16, 128), 1.6  # times, where several samples can be shared out
_SECONDS = 0.2  # of a turn, at least


def run(quick: bool = False) -> list[Row]:
    """All networks and batches; quickly: one shipped pack."""
    if (os.cpu_count() or 1) < 2:
        raise UserError("one core", "two", "threads cannot gain anything here")
    rows = []
    for name in _SHIPPED[:1] if quick else (*_SHIPPED, *_NETWORKS):
        one, two = _pack(name, 1), _pack(name, 2)
        for batch in _BATCHES[1:2] if quick else _BATCHES:
            rows.append(_row(name, one, two, batch, turns=3 if quick else 15))
    return rows


def _pack(name: str, threads: int) -> Pack:
    if name in _SHIPPED:
        return load(path(name), threads=threads)
    import torch

    subject = subjects()[name]
    with torch.no_grad():
        program, tensors = trace(drawn(subject), {"x": torch.zeros(2, *subject.shape)})
    return Pack({"net": program}, kept(tensors, _DENSITY), threads=threads)


def _row(name: str, one: Pack, two: Pack, batch: int, *, turns: int) -> Row:
    inputs, lot = next(iter(one.networks.values())).inputs, np.random.default_rng(0)
    given = {item.name: np.asarray(lot.random((batch, *item.shape)), dtype=item.dtype) for item in inputs}
    fastest = {1: np.inf, 2: np.inf}
    for turn in range(turns):  # what disturbs a turn makes it slower: the fastest was disturbed least
        for threads, pack in ((1, one), (2, two)):
            seconds = _seconds(lambda pack=pack: pack.predict(**given))  # type: ignore[misc]
            fastest[threads] = min(fastest[threads], seconds) if turn else np.inf
    whose = name if name in _SHIPPED else f"{name}, {1 - _DENSITY:.0%} removed"
    what = f"{whose}, batch {batch}, two threads"
    ratio = float(fastest[1] / fastest[2])
    return Row(what, fastest[2] * 1e3, fastest[1] * 1e3, "ms", ratio, "one thread", _ASKED if batch > 1 else None)


def _seconds(call: Callable[[], object]) -> float:
    """Of one call on the clock, the mean of as many as fill a turn."""
    begin, calls = time.perf_counter(), 0
    while (past := time.perf_counter() - begin) < _SECONDS:
        call()
        calls += 1
    return past / calls
