"""The C that a pack exports, compiled here, against the pack itself: a batch of 128 on one thread."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from fewer.bench.row import Row, interleaved_seconds
from fewer.core.errors import UserError
from fewer.packs.export import c as export_c
from fewer.packs.pack import load
from fewer.zoo import names, path

__all__ = ["run"]

USES_PACKS = True  # and is slower where the C kernels are missing

_BATCH = 128
_QUICK = 2  # the smallest packs
_FLAGS = {"-O3 -march=native": 1 / 3, "-O2": None}  # and how many times as fast as the pack is asked for


def run(quick: bool = False) -> list[Row]:
    """Every shipped pack; quickly: the smallest."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise UserError("no C compiler", "one called cc", "install gcc or clang")
    rows = []
    ordered = sorted(names(), key=lambda name: path(name).stat().st_size)
    for name in ordered[:_QUICK] if quick else names():
        with tempfile.TemporaryDirectory() as folder:
            rows += _rows(name, compiler, Path(folder), rounds=3 if quick else 7)
    return rows


def _rows(name: str, compiler: str, folder: Path, *, rounds: int) -> list[Row]:
    pack = load(path(name))
    inputs, lot = next(iter(pack.networks.values())).inputs, np.random.default_rng(0)
    drawn = {one.name: lot.random((_BATCH, *one.shape)) for one in inputs}
    given = {one.name: np.asarray(drawn[one.name], dtype=one.dtype) for one in inputs}
    answers = _by_sample(pack.predict(**given))
    export_c.export(pack, folder / "net.c", "net")
    calls: dict[str, Callable[[], object]] = {"pack": lambda: pack.predict(**given)}
    for flags in _FLAGS:
        found = np.zeros_like(answers)
        calls[flags] = _exported(compiler, flags, folder, _by_sample(list(given.values())), found)
        calls[flags]()
        if np.abs(found - answers).max() > 1e-4 * max(1.0, float(np.abs(answers).max())):
            raise RuntimeError(f"{name} in C with {flags} answers otherwise than the pack")
    seconds = interleaved_seconds(calls, rounds=rounds)
    return [
        Row(f"{name}, {_BATCH} samples, C with {flags}", seconds[flags] * 1e6, seconds["pack"] * 1e6, "us",
            seconds["pack"] / seconds[flags], "the pack", required)
        for flags, required in _FLAGS.items()
    ]  # fmt: skip


def _by_sample(values: object) -> np.ndarray:
    """One array or several as C takes and gives them: each sample's, one after another."""
    several = values if isinstance(values, tuple | list) else [values]
    return np.concatenate([np.asarray(one, np.float32).reshape(_BATCH, -1) for one in several], axis=1)


def _exported(compiler: str, flags: str, folder: Path, given: np.ndarray, answers: np.ndarray) -> Callable[[], object]:
    library = folder / f"net{len(list(folder.iterdir()))}.so"
    command = [
        compiler,
        "-std=c99",
        *flags.split(),
        "-shared",
        "-fPIC",
        str(folder / "net.c"),
        "-o",
        str(library),
        "-lm",
    ]
    subprocess.run(command, check=True)
    function = ctypes.CDLL(str(library)).net_batch
    places = [value.ctypes.data_as(ctypes.c_void_p) for value in (given, answers)]
    return lambda: function(*places, _BATCH)
