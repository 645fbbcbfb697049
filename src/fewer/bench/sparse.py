"""Packs against what else there is: one sample, a batch, the exported C, the length of the file, and sparsities.

The networks of the first rows are BCQ's at 95 % sparsity: a 17-400-300-6 actor, and a 23-750-750-6 decoder. They are
trained for a short while on a made-up regression, pruned before that by |weight * gradient|, because random masks and
untrained weights would compress and run differently.
"""

from __future__ import annotations

import ctypes
import io
import itertools
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fewer.bench.row import Row, interleaved_seconds
from fewer.bench.speed.rows import speed_rows
from fewer.packs.export import c as export_c
from fewer.packs.export import onnx as export_onnx
from fewer.packs.pack import load, write
from fewer.packs.runtime.runtime import Pack
from fewer.packs.trace.trace import trace

__all__ = ["run", "trained"]

USES_PACKS = True  # and is slower where the C kernels are missing

_SPARSITY = 0.95


@dataclass(frozen=True)
class Trained:
    """A sparse network, its masks, and the data that it was fitted to."""

    net: nn.Sequential
    masks: dict[str, Tensor]
    inputs: Tensor
    targets: Tensor

    def loss(self, answers: Any) -> float:
        """Share of the targets' variance that is left."""
        error = torch.as_tensor(answers) - self.targets
        return float(error.square().mean() / self.targets.var())


def trained(sizes: tuple[int, ...], *, steps: int, seed: int = 0) -> Trained:
    """A network pruned by |weight * gradient| at the start, then fitted to a small random teacher."""
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    net = nn.Sequential(*layers[:-1], nn.Tanh())
    teacher = nn.Sequential(nn.Linear(sizes[0], 64), nn.Tanh(), nn.Linear(64, sizes[-1]), nn.Tanh())
    # correlated inputs of very different size, then normalised, as observations of a robot are
    mixing = torch.randn(sizes[0], sizes[0], generator=generator) * torch.rand(sizes[0], generator=generator)
    data = torch.randn(20_000, sizes[0], generator=generator) @ mixing
    data = (data - data.mean(0)) / (data.std(0) + 1e-3)
    with torch.no_grad():
        targets = teacher(2 * data)
    weights = {name: value for name, value in net.named_parameters() if value.ndim == 2}
    loss = (net(data[:100]) - targets[:100]).square().mean()
    gradients = torch.autograd.grad(loss, list(weights.values()))
    scores = [(w * g).abs().flatten() for w, g in zip(weights.values(), gradients)]
    ranked = torch.cat(scores)
    keep = torch.zeros(len(ranked), dtype=torch.bool)
    keep[ranked.topk(round((1 - _SPARSITY) * len(ranked))).indices] = True
    parts = keep.split([value.numel() for value in weights.values()])
    masks = {name: part.view_as(weights[name]) for name, part in zip(weights, parts)}
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)
    for _ in range(steps):
        with torch.no_grad():
            for name, mask in masks.items():
                weights[name].mul_(mask)
        index = torch.randint(len(data), (100,), generator=generator)
        optimizer.zero_grad()
        (net(data[index]) - targets[index]).square().mean().backward()
        optimizer.step()
    with torch.no_grad():
        for name, mask in masks.items():
            weights[name].mul_(mask)
    return Trained(net.eval(), masks, data[:4000], targets[:4000])


def _packed(made: Trained, path: Path, values: str) -> int:
    program, tensors = trace(made.net, [made.inputs[:2]])
    masks = {name: mask.numpy() for name, mask in made.masks.items()}
    batch = [made.inputs[:1000].numpy()] if values == "int8" else None
    return write(path, program, tensors, masks=masks, values=values, calibration=batch)


def _csr(net: nn.Sequential) -> Callable[[Tensor], Tensor]:
    """The same network with torch's sparse matrices, whose warning to be young says nothing here."""
    warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta state")
    layers = [
        (part.weight.detach().to_sparse_csr(), part.bias.detach()[:, None])
        for part in net
        if isinstance(part, nn.Linear)
    ]

    def call(x: Tensor) -> Tensor:
        value = x.T
        for place, (weight, bias) in enumerate(layers):
            value = weight @ value + bias
            value = value.relu() if place + 1 < len(layers) else value.tanh()
        return value.T

    return call


def _numpy(net: nn.Sequential, sparse: Any = None) -> Callable[[Any], Any]:
    """The same network in numpy, or with matrices of another library."""
    layers = [(part.weight.detach().numpy(), part.bias.detach().numpy()) for part in net if isinstance(part, nn.Linear)]
    matrices = [(sparse(weight) if sparse else weight, bias) for weight, bias in layers]

    def call(x: Any) -> Any:
        value = x
        for place, (weight, bias) in enumerate(matrices):
            value = weight @ value + bias
            value = np.maximum(value, 0) if place + 1 < len(matrices) else np.tanh(value)
        return value

    return call


def _compiled(net: nn.Sequential, x: Tensor) -> Callable[[Tensor], Any] | None:
    """torch.compile's version, where a C++ compiler makes it possible."""
    if shutil.which("g++") is None and shutil.which("clang++") is None:
        return None
    made: Callable[[Tensor], Any] = torch.compile(net)
    made(x)
    return made


def _onnx(pack: Pack, path: Path) -> Callable[[Any], Any]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    export_onnx.export(pack, path)
    session = onnxruntime.InferenceSession(str(path), options)
    return lambda x: session.run(None, {"x": x})


def _exported(pack: Pack, folder: Path, x: Any, outputs: int) -> Callable[[], object] | None:
    """A thousand calls of the exported C, timed without Python in between."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    export_c.export(pack, folder / "net.c", "net")
    loop = "for (int i = 0; i < 1000; i++) net(x, y);"
    text = f"void net(const float *, float *);\nvoid many(const float *x, float *y) {{ {loop} }}\n"
    (folder / "many.c").write_text(text)
    sources = [str(folder / "net.c"), str(folder / "many.c")]
    subprocess.run(
        [compiler, "-std=c99", "-O2", "-shared", "-fPIC", *sources, "-o", str(folder / "net.so"), "-lm"], check=True
    )
    function, answer = ctypes.CDLL(str(folder / "net.so")).many, np.zeros(outputs, np.float32)
    places = (x.ctypes.data_as(ctypes.c_void_p), answer.ctypes.data_as(ctypes.c_void_p))
    return lambda: function(*places)


def _one_sample(made: Trained, pack: Pack, folder: Path, *, quick: bool) -> list[Row]:
    from scipy.sparse import csr_matrix

    x, dense = made.inputs[0].numpy().copy(), made.net
    row, tensor, csr = x[None], made.inputs[0], _csr(made.net)
    onnx, plain, scipy = _onnx(pack, folder / "net.onnx"), _numpy(dense), _numpy(dense, csr_matrix)
    calls: dict[str, Callable[[], object]] = {
        "ours": lambda: pack.predict(x),
        "torch eager dense": lambda: dense(tensor),
        "onnxruntime dense": lambda: onnx(row),
        "numpy dense": lambda: plain(x),
        "scipy CSR": lambda: scipy(x),
        "torch CSR": lambda: csr(tensor[None]),
    }
    compiled = None if quick else _compiled(dense, tensor)
    if compiled is not None:
        calls["torch.compile dense"] = lambda: compiled(tensor)
    seconds = interleaved_seconds(calls, rounds=5 if quick else 31, repeats=100)
    required = {"torch eager dense": 6.0, "onnxruntime dense": 2.0}
    what = "actor, 1 sample, pack.predict(x)"
    rows = [
        _faster(what, seconds["ours"], value, name, required.get(name))
        for name, value in seconds.items()
        if name != "ours"
    ]
    kernel = _exported(pack, folder, x, made.targets.shape[1])
    if kernel is not None:
        many = interleaved_seconds(
            {"c": kernel, "torch": lambda: [dense(tensor) for _ in range(100)]}, rounds=5 if quick else 31
        )
        rows.append(
            _faster("actor, 1 sample, exported C", many["c"] / 1000, many["torch"] / 100, "torch eager dense", 10.0)
        )
    return rows


def _batch(
    what: str, made: Trained, pack: Pack, folder: Path, *, samples: int, quick: bool, required: float | None
) -> list[Row]:
    x = made.inputs[:samples].numpy().copy()
    tensor, csr, onnx = made.inputs[:samples].clone(), _csr(made.net), _onnx(pack, folder / "batch.onnx")
    calls: dict[str, Callable[[], object]] = {
        "ours": lambda: pack.predict(x),
        "torch eager dense": lambda: made.net(tensor),
        "torch CSR": lambda: csr(tensor),
        "onnxruntime dense": lambda: onnx(x),
    }
    seconds = interleaved_seconds(calls, rounds=5 if quick else 31, repeats=10)
    return [
        _faster(what, seconds["ours"], value, name, required if name == "torch eager dense" else None)
        for name, value in seconds.items()
        if name != "ours"
    ]


def _faster(what: str, ours: float, theirs: float, against: str, required: float | None) -> Row:
    return Row(what, ours * 1e6, theirs * 1e6, "us", theirs / ours, against, required)


def _sizes(name: str, made: Trained, folder: Path) -> list[Row]:
    """File lengths against torch's own, and what rounding does to the fit."""
    buffer = io.BytesIO()
    torch.save(made.net.state_dict(), buffer)
    dense, rows = len(buffer.getvalue()), []
    for values, required in {"float32": 16.0, "float16": 28.0, "int8": 40.0}.items():
        length = _packed(made, folder / f"{values}.pack", values)
        left = made.loss(load(folder / f"{values}.pack").predict(made.inputs.numpy()))
        what = f"{name}, file, {values} (unexplained {left:.4g})"
        rows.append(Row(what, length, dense, "bytes", dense / length, "dense .pt", required))
    return rows


def run(quick: bool = False) -> list[Row]:
    """All rows of one run, on one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            steps = 200 if quick else 3000
            actor, decoder = trained((17, 400, 300, 6), steps=steps), trained((23, 750, 750, 6), steps=steps // 4)
            _packed(actor, folder / "actor.pack", "float32")
            _packed(decoder, folder / "decoder.pack", "float32")
            with torch.inference_mode():
                first, second = load(folder / "actor.pack"), load(folder / "decoder.pack")
                rows = _one_sample(actor, first, folder, quick=quick)
                rows += _batch("actor, 128 samples", actor, first, folder, samples=128, quick=quick, required=6.0)
                rows += _batch("decoder, 100 samples", decoder, second, folder, samples=100, quick=quick, required=None)
            rows += _sizes("actor", actor, folder) + _sizes("decoder", decoder, folder)
        return rows + speed_rows(quick=quick)
    finally:
        torch.set_num_threads(threads)
