"""A network's skeleton: the same wiring with every nonlinearity taken out, so that sums of products count paths.

With weights 0 or 1 the output counts the paths from the inputs that are 1; with |w| it is SynFlow's synaptic strength.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from fewer.core.mask import prunable
from fewer.pruning.paths import mixing

__all__ = ["Linearised", "skeleton"]

_IDENTITY = {
    "relu", "relu_", "relu6", "leaky_relu", "elu", "selu", "celu", "gelu", "silu", "mish", "tanh", "sigmoid",
    "softplus", "softmax", "log_softmax", "hardtanh", "hardswish", "hardsigmoid", "rrelu", "prelu", "logsigmoid",
    "dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_dropout",
    "batch_norm", "layer_norm", "instance_norm", "group_norm", "rms_norm", "normalize",
    "clamp", "clip", "clamp_", "exp", "abs", "tanh_", "sigmoid_", "threshold",
}  # fmt: skip
_TO_SUM = {"amax", "amin"}


class Linearised(TorchFunctionMode):
    """While active, activations and norms are the identity, a maximum is a sum, and what mixes by rules of its own
    (attention, recurrence, tables) is a sum over all that it could let through. `tokens`: what every row of a table is
    worth; 0 turns whole numbers off.
    """

    def __init__(self, tokens: float = 1.0) -> None:
        super().__init__()
        self.tokens = tokens

    def __torch_function__(
        self, function: Any, types: Any, arguments: Sequence[Any] = (), options: Mapping[str, Any] | None = None
    ) -> Any:
        name, options = getattr(function, "__name__", ""), dict(options or {})
        if name in _IDENTITY:
            return arguments[0] if arguments else options["input"]
        if name in mixing.TABLES:
            return self.tokens * mixing.TABLES[name](*arguments, **options)
        if name in mixing.OPERATIONS:
            return mixing.OPERATIONS[name](*arguments, **options)
        if name in _TO_SUM:
            return torch.sum(*arguments, **options)
        if name in ("max", "min") and len(arguments) + len(options) > 1 and not isinstance(arguments[-1], Tensor):
            values = torch.sum(*arguments, **options)
            return torch.return_types.max((values, torch.zeros_like(values, dtype=torch.int64)))
        for rank, average in ((1, functional.avg_pool1d), (2, functional.avg_pool2d), (3, functional.avg_pool3d)):
            if name in (f"max_pool{rank}d", f"boolean_dispatch_max_pool{rank}d", f"max_pool{rank}d_with_indices"):
                return _sum_pool(average, rank, arguments, options)
        return function(*arguments, **options)


def _sum_pool(average: Any, rank: int, arguments: Sequence[Any], options: Mapping[str, Any]) -> Tensor:
    names = ("input", "kernel_size", "stride", "padding", "dilation", "ceil_mode")
    named = dict(zip(names, arguments)) | dict(options)
    kernel, padding = _each(named["kernel_size"], rank), _each(named.get("padding", 0), rank)
    stride = _each(named.get("stride") or kernel, rank)
    x: Tensor = named["input"]
    if named.get("ceil_mode", False):  # zeros complete the last windows: they add nothing to a sum
        left = [n + 2 * p - k for n, p, k in zip(x.shape[-rank:], padding, kernel)]
        extra = [-(-max(rest, 0) // s) * s - rest for rest, s in zip(left, stride)]
        x = functional.pad(x, [size for more in reversed(extra) for size in (0, more)])
    return average(x, kernel, stride, padding) * math.prod(kernel)  # type: ignore[no-any-return]


def _each(value: Any, rank: int) -> tuple[int, ...]:
    return (value,) * rank if isinstance(value, int) else tuple(value)


def skeleton(module: nn.Module, weights: Mapping[str, Tensor]) -> nn.Module:
    """A float64 copy in eval mode: prunable parameters as given, biases zero, everything else one."""
    bare = copy.deepcopy(module).to(torch.float64).train(False)
    names = set(prunable(module))
    with torch.no_grad():
        for name, parameter in bare.named_parameters():
            if name in names:
                parameter.copy_(weights.get(name, torch.ones_like(parameter)))
            else:
                parameter.fill_(0.0 if "bias" in name.rpartition(".")[2] else 1.0)
    return bare.requires_grad_(True)
