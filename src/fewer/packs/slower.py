"""Whether a pack will be slower than the same network dense, from what its weights keep of the arithmetic."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from fewer.packs.program import Program
from fewer.packs.runtime.ops import Array
from fewer.packs.runtime.recurrent import GATES
from fewer.packs.runtime.runtime import Pack
from fewer.packs.shapes.demand import Allowance, shapes_of

__all__ = ["kept_work", "slower_than_dense"]

# densities up to which packs were not slower than onnxruntime, the worst batch of each kind (bench-speed.json):
# ResNet-18, a MobileNet-like network, a block of a transformer, MLPs and a GRU (level when dense)
_SEPARABLE, _ATTENDING = "separable conv", "linear beside attention"
_BREAK_EVEN = {"conv": 0.45, _SEPARABLE: 0.41, _ATTENDING: 0.45, "linear": 1.0, **dict.fromkeys(GATES, 1.0)}


def kept_work(program: Program, tensors: Mapping[str, Array]) -> dict[str, tuple[float, float]]:
    """Multiplications of one sample, those of kept weights and all, by kind of layer."""
    shapes = shapes_of(program, {name: value.shape for name, value in tensors.items()}, 1, Allowance.unlimited())
    found: dict[str, tuple[float, float]] = {}
    kinds = {}
    if any(node.op == "conv" and node.attributes["groups"] > 1 for node in program.nodes):
        kinds["conv"] = _SEPARABLE
    if any(node.op in ("attention", "matmul") for node in program.nodes):
        kinds["linear"] = _ATTENDING
    for node in program.nodes:
        weights = [tensors[name] for name in node.inputs[1:3] if name in tensors and tensors[name].ndim > 1]
        if node.op not in _BREAK_EVEN or not weights:
            continue
        made = shapes[node.output]
        times = math.prod(made[2:]) if node.op == "conv" else math.prod(made[:-1])
        kind = kinds.get(node.op, node.op)
        kept, size = found.get(kind, (0.0, 0.0))
        for weight in weights:
            kept, size = kept + times * float(np.count_nonzero(weight)), size + times * float(weight.size)
        found[kind] = kept, size
    return found


def slower_than_dense(pack: Pack) -> str:
    """A sentence, or nothing where the pack is expected to be at least as fast as a dense runtime."""
    ours = theirs = 0.0
    for network in pack.networks.values():
        for op, (kept, size) in kept_work(network.program, pack.tensors()).items():
            ours, theirs = ours + min(kept / _BREAK_EVEN[op], size / _BREAK_EVEN[op]), theirs + size
    if ours <= theirs:
        return ""
    return "may be slower than the dense network in onnxruntime, one thread: `fewer bench sparse` measures it"
