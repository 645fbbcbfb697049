"""The training kernels under the address and undefined-behaviour sanitizers, in a process that does not load torch."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import fewer.sparse
from fewer.sparse.convolution import SparseConvolution
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

def convolution(case, threads, dtype):
    # a layout made outside, with numbers in arrays that end where they end
    numbers = case["layout"].tolist()
    layout = (*numbers[:7], *(tuple(numbers[7 + 3 * i : 10 + 3 * i]) for i in range(4)))
    arrays = [case[f"array{i}"].copy() for i in range(5)]
    plan, double = kernels.planes((*layout, *map(at, arrays))), dtype == np.float64
    x, gy, values, bias = (case[name].astype(dtype) for name in ("x", "gy", "values", "bias"))
    y, gx, flat = np.empty_like(gy), np.empty_like(x), np.empty(len(values) + len(bias), dtype)
    entering = (plan, double, threads, len(x))
    kernels.convolve(*entering, at(x), at(y), at(values), at(bias))
    kernels.convolve_back(*entering, at(x), at(gy), at(values), at(gx), at(flat))
    kernels.convolve_back(*entering, at(gy), at(gy), at(values), at(gx), 0)
    near = dict(rtol=1e-3, atol=1e-2)
    assert np.allclose(y, case["y"], **near) and np.allclose(gx, case["gx"], **near)
    assert np.allclose(flat, case["flat"], **near)

cases = [np.load(path) for path in sys.argv[2:]]
for kernel in kernels.sets():
    kernels.select(kernel)
    for dtype in (np.float32, np.float64):
        for case in cases:
            for threads in (1, 3):
                convolution(case, threads, dtype)
assert cases

for dtype in (np.float32, np.float64):
    x, gy = (lot.normal(size=(5, 3, 37)).astype(dtype) for _ in range(2))
    gx, one, two, three = np.empty_like(x), np.zeros(3), np.zeros(3), np.ones(3)
    size = (dtype == np.float64, 5, 3, 37, at(x))
    kernels.norm(*size, 0, 0, at(one), at(two), at(three))
    assert np.allclose(one, x.mean((0, 2)), atol=1e-6) and np.allclose(two, x.var((0, 2)), atol=1e-5)
    kernels.norm(*size, at(gy), 0, at(one), at(two), at(three))
    assert np.allclose(one, gy.sum((0, 2)), atol=1e-4)
    kernels.norm(*size, at(gy), at(gx), at(three), at(three), at(three))
    assert np.allclose(gx, gy + x + 1, atol=1e-5)

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


def write_convolutions(folder: Path) -> list[str]:
    """Layouts, inputs and the dense layers' answers, for a process without torch."""
    torch.manual_seed(0)
    written = []
    for number, (layer, size) in enumerate((
        (nn.Conv2d(3, 5, 3, padding=1), (9, 11)), (nn.Conv2d(4, 6, 3, 2, 1, groups=2), (7, 8)),
        (nn.Conv1d(2, 3, 5, 3, 2, 2), (40,)), (nn.Conv3d(1, 2, (1, 2, 3)), (3, 4, 5)), (nn.Conv2d(8, 8, 1, 2), (4, 4)),
    )):  # fmt: skip
        mask = torch.rand(layer.weight.shape) < (0.0 if number == 2 else 0.4)
        with torch.no_grad():
            layer.weight.mul_(mask)
        sparse = SparseConvolution.from_dense(layer, mask)
        planes = sparse.pattern.at(size)
        x = torch.randn(75, layer.in_channels, *size, requires_grad=True)
        y = layer(x)
        gy = torch.randn_like(y)
        gx, of_weight, of_bias = torch.autograd.grad(y, [x, layer.weight, layer.bias], gy)
        tensors = {"x": x, "y": y, "gy": gy, "gx": gx, "values": sparse.values, "bias": layer.bias}
        tensors["flat"] = torch.cat([of_weight[mask], of_bias])
        flat = [n for part in planes.layout for n in (part if isinstance(part, tuple) else (part,))]
        arrays = {f"array{i}": array for i, array in enumerate(planes.arrays)} | {"layout": np.array(flat)}
        written.append(str(folder / f"case{number}.npz"))
        np.savez(written[-1], **arrays, **{name: tensor.detach().numpy() for name, tensor in tensors.items()})
    return written


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
    command = [sys.executable, str(tmp_path / "driver.py"), target, *write_convolutions(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=GIVE_UP_SECONDS)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "clean" in done.stdout and "runtime error" not in done.stderr
