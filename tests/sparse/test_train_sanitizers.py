"""The training kernels under the address and undefined-behaviour sanitizers, driven by numpy: torch is not loaded."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import fewer.sparse
from tests.waiting import GIVE_UP_SECONDS

KERNELS = Path(fewer.sparse.__file__).parent / "kernels"
FLAGS = ["-shared", "-fPIC", "-O0", "-std=c11", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]

DRIVER = """
import importlib.util, struct, sys
import numpy as np
spec = importlib.util.spec_from_file_location("_train", sys.argv[1])
kernels = importlib.util.module_from_spec(spec)
spec.loader.exec_module(kernels)
lot = np.random.default_rng(0)
at = lambda array: 0 if array is None else array.ctypes.data

def aligned(count, dtype):
    room = np.zeros(count * np.dtype(dtype).itemsize + 64, np.uint8)
    begin = -room.ctypes.data % 64
    return room[begin : begin + count * np.dtype(dtype).itemsize].view(dtype)

def starts(index, size):
    return np.concatenate([[0], np.cumsum(np.bincount(index, minlength=size))]).astype(np.int32)

def check(sizes, share, samples, threads, dtype, wide):
    index_type = np.int32 if wide else np.uint16
    masks = [lot.random((o, i)) < share for i, o in zip(sizes, sizes[1:])]
    layers, alive, values, biases = [], [], [], []
    for n, mask in enumerate(masks):
        rows, columns = np.nonzero(mask)
        order = np.lexsort((rows, columns))
        arrays = (starts(rows, mask.shape[0]), columns.astype(index_type), starts(columns, mask.shape[1]),
                  rows[order].astype(index_type), order.astype(np.int32))
        alive.append(arrays)
        layers.append((mask.shape[1], mask.shape[0], len(rows), n < len(masks) - 1, wide, *map(at, arrays)))
        values.append(lot.normal(size=len(rows)).astype(dtype))
        biases.append(lot.normal(size=mask.shape[0]).astype(dtype))
    plan, double = kernels.plan(layers), dtype == np.float64
    x = lot.normal(size=(samples, sizes[0])).astype(dtype)
    gy = lot.normal(size=(samples, sizes[-1])).astype(dtype)
    hidden = aligned(sum(sizes[1:-1]) * kernels.padded(double, threads, samples), dtype)
    y, gx = np.zeros((sizes[-1], samples), dtype), np.zeros((sizes[0], samples), dtype)
    flat = np.zeros(sum(len(v) + len(b) for v, b in zip(values, biases)), dtype)
    weights = [at(w) for pair in zip(values, biases) for w in pair]
    between = at(hidden) if len(sizes) > 2 else 0
    entering = (plan, double, threads, samples, at(x), 1, sizes[0])
    kernels.forward(*entering, at(y), between, *weights)
    kernels.backward(*entering, at(gy), 1, sizes[-1], 0, between, at(gx), at(flat), *map(at, values))
    dense, kept = [], []
    a = x.astype(np.float64)
    for n, (mask, v, b) in enumerate(zip(masks, values, biases)):
        weight = np.zeros(mask.shape)
        weight[mask] = v
        dense.append(weight)
        kept.append(a)
        a = a @ weight.T + b
        a = np.maximum(a, 0) if n < len(masks) - 1 else a
    near = dict(rtol=1e-3, atol=1e-2)
    assert np.allclose(y.T, a, **near)
    g, parts = gy.astype(np.float64), []
    for n in reversed(range(len(masks))):
        parts = [(g.T @ kept[n])[masks[n]], g.sum(0), *parts]
        g = g @ dense[n]
        g = g * (kept[n] > 0) if n else g
    assert np.allclose(gx.T, g, **near) and np.allclose(flat, np.concatenate(parts), **near)

for kernel in kernels.sets():
    kernels.select(kernel)
    for dtype in (np.float32, np.float64):
        for sizes in ([1, 1], [5, 7], [17, 40, 30, 6], [23, 70, 1]):
            for samples in (1, 65, 131):
                for share, threads, wide in ((0.0, 1, False), (0.1, 2, False), (0.6, 1, True), (1.0, 3, False)):
                    check(sizes, share, samples, threads, dtype, wide)

seed, step, drawn = np.array([7]), np.array([9]), np.zeros(1001, np.float32)
kernels.draw(False, at(seed), at(step), -5, 1001, 1.0, 2.0**-24, at(drawn))
assert 0 < drawn.min() and drawn.max() <= 1 and abs(drawn.mean() - 0.5) < 0.05
a, b, out = (lot.normal(size=(6, 50)).astype(np.float32) for _ in range(3))
places = [number for array in (out, a, b) for number in (at(array), 0, 50, 1)]
pack = lambda code, x=0.0, y=0.0: struct.pack("=21q2d", code, 0, 1, 6, 50, *places, 0, 0, 0, 0, x, y)
for code in (*range(12), 16):  # those on numbers of one type
    kernels.play(kernels.program(pack(code, -0.5, 0.5)))
kernels.play(kernels.program(pack(1) + pack(3)))
assert np.array_equal(out, a * b)
for wrong in (pack(99), pack(1)[:-8]):
    try:
        kernels.play(kernels.program(wrong))
        raise SystemExit("accepted")
    except (IndexError, ValueError):
        pass
print("clean")
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no compiler with sanitizers")
def test_the_training_kernels_are_clean_under_the_sanitizers(tmp_path: Path) -> None:
    library = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True).stdout.strip()
    if not Path(library).is_file():
        pytest.skip("the compiler has no address sanitizer")
    target, include = str(tmp_path / "_train.so"), [f"-I{sysconfig.get_path('include')}", f"-I{KERNELS}"]
    source = str(KERNELS / "train.c")
    subprocess.run(["gcc", *FLAGS, *include, source, "-o", target, "-lm", "-pthread"], check=True)
    (tmp_path / "driver.py").write_text(DRIVER)
    # Python itself keeps memory to the end, which is no leak of ours
    environment = {**os.environ, "LD_PRELOAD": library, "ASAN_OPTIONS": "detect_leaks=0", "PYTHONMALLOC": "malloc"}
    command = [sys.executable, str(tmp_path / "driver.py"), target]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=GIVE_UP_SECONDS)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "clean" in done.stdout and "runtime error" not in done.stderr
