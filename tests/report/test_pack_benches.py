"""Benches of packs against themselves: the C that they export, and two threads."""

from __future__ import annotations

import os
import shutil

import pytest

from fewer import zoo
from fewer.bench import exported, threads
from fewer.core.errors import UserError


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_exported_c_is_held_to_a_third_of_the_packs_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exported, "_QUICK", 1)
    native, plain = exported.run(quick=True)
    assert native.required == pytest.approx(1 / 3) and plain.required is None
    smallest = min(zoo.names(), key=lambda name: zoo.path(name).stat().st_size)
    assert native.what == f"{smallest}, 128 samples, C with -O3 -march=native"
    assert native.ratio == pytest.approx(native.theirs / native.ours) and plain.ratio > 0


def test_two_threads_are_asked_for_where_there_are_several_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_LARGE", 1e5)
    monkeypatch.setattr(threads, "_SECONDS", 0.001)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    (row,) = threads.run(quick=True)
    assert row.what.endswith(", batch 16, two threads") and row.required == 1.6
    assert row.ratio == pytest.approx(row.theirs / row.ours)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    with pytest.raises(UserError, match="one core"):
        threads.run(quick=True)
