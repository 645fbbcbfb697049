"""Packs of large networks on two threads against one: time on the clock, so it wants two quiet cores."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from fewer.bench.row import Row
from fewer.bench.speed.networks import Subject, drawn, kept, subjects
from fewer.core.errors import UserError
from fewer.packs.pack import load
from fewer.packs.runtime.runtime import Pack
from fewer.packs.slower import kept_work
from fewer.packs.trace.trace import trace
from fewer.zoo import names, path

__all__ = ["run"]

USES_PACKS = True  # and is slower where the C kernels are missing

_DENSITY, _LARGE = 0.1, 5e6  # of networks that are not shipped; multiplications of kept weights, for one sample
_BATCHES, _ASKED = (1, 16, 128), 1.6  # times, where several samples can be shared out
_SECONDS = 0.2  # of a turn, at least


def run(quick: bool = False) -> list[Row]:
    """All large networks and batches; quickly: one shipped pack."""
    if (os.cpu_count() or 1) < 2:
        raise UserError("one core", "two", "threads cannot gain anything here")
    made: dict[str, Callable[[int], Pack]] = {name: partial(_shipped, name) for name in names()}
    if not quick:
        told = f", {1 - _DENSITY:.0%} removed"
        made |= {f"{name}{told}": partial(_made, subject) for name, subject in subjects().items()}
    rows = []
    for name, pack in made.items():
        one, two = pack(1), pack(2)
        if _work(one) >= _LARGE:
            for batch in _BATCHES[1:2] if quick else _BATCHES:
                rows.append(_row(name, one, two, batch, turns=3 if quick else 15))
            if quick:
                break
    return rows


def _work(pack: Pack) -> float:
    """Multiplications of kept weights, for one sample."""
    (program,) = [network.program for network in pack.networks.values()][:1]
    return sum(kept for kept, _ in kept_work(program, pack.tensors()).values())


def _shipped(name: str, threads: int) -> Pack:
    return load(path(name), threads=threads)


def _made(subject: Subject, threads: int) -> Pack:
    import torch

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
    what = f"{name}, batch {batch}, two threads"
    ratio = float(fastest[1] / fastest[2])
    return Row(what, fastest[2] * 1e3, fastest[1] * 1e3, "ms", ratio, "one thread", _ASKED if batch > 1 else None)


def _seconds(call: Callable[[], object]) -> float:
    """Of one call on the clock, the mean of as many as fill a turn."""
    begin, calls = time.perf_counter(), 0
    while (past := time.perf_counter() - begin) < _SECONDS:
        call()
        calls += 1
    return past / calls
