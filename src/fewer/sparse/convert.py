"""Between dense networks with masks and sparse networks: the same function, held differently."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping

from torch import Tensor, nn

from fewer.core.errors import UserError
from fewer.sparse.convolution import Dense, SparseConvolution, fits
from fewer.sparse.linear import SparseLinear, SparseSequential
from fewer.sparse.norm import normed

__all__ = ["BREAK_EVEN", "convert", "gains", "pays"]

BREAK_EVEN = 0.4  # share kept
SMALL = 32_768  # weights

_CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)


def pays(in_features: int, out_features: int, kept: int) -> bool:
    """Whether a layer trains faster with kept weights only: from 60 % sparsity on, and always when it is small.

    Measured on one AVX-512 core, forward and backward through layers of 300 and 750 units at batches of 100 and
    1,000: break-even at 40 % to 50 % kept, where dense products reach 100 GFLOP/s; slower dense products move it
    up. Layers of some ten thousand weights cost what a call costs, and leaving one dense would break a chain.
    """
    weights = in_features * out_features
    return weights <= SMALL or kept <= BREAK_EVEN * weights


def convolution_pays(shape: tuple[int, ...], kept: int) -> bool:
    """Whether a convolution trains faster with kept weights only; `shape` is (out, in / groups, *kernel).

    Measured on one AVX-512 core, forward and backward with 64 and 128 images of 4 to 32 pixels a side, 3 x 3, against
    torch's dense layers: break-even at half kept and more with 16 and 32 channels, at a third with 64, at a fifth with
    128 to 512, which torch does at full speed while small images with their padding leave vectors empty.
    """
    channels = min(shape[:2])
    return kept <= (BREAK_EVEN if channels <= 32 else 0.3 if channels <= 64 else 0.2) * math.prod(shape)


def _pays(mask: Tensor) -> bool:
    return convolution_pays(tuple(mask.shape), int(mask.sum()))


def gains(module: nn.Module, kept: Tensor) -> bool:
    """Whether a layer is large enough, and pruned enough, for a training to be faster because of it alone."""
    if type(module) is nn.Linear:
        return kept.numel() > 4096 and int(kept.sum()) <= BREAK_EVEN * kept.numel()
    return fits(module) and kept.numel() > 1024 and _pays(kept)


def convert(module: nn.Module, masks: Mapping[str, Tensor]) -> nn.Module:
    """The network with sparse layers in place of its pruned linear ones and convolutions, where that pays.

    `masks` names weights as `named_parameters` does. The argument is taken apart; use what is returned.
    Layers inside torch's own composite modules stay dense, since those read `.weight` themselves; so do layers
    that share their weight with another.
    """
    known = dict(module.named_parameters(remove_duplicate=False))
    for name, mask in masks.items():
        if name not in known or known[name].shape != mask.shape:
            raise UserError(f"a mask {name} of shape {tuple(mask.shape)}", "the name and shape of a parameter")
    tensors = [id(parameter) for parameter in known.values()]
    shared = {tensor for tensor in tensors if tensors.count(tensor) > 1}
    own = {n: m for n, m in masks.items() if id(known[n]) not in shared}
    layers = {name: module.get_submodule(name.rpartition(".")[0]) for name in own}
    norms = any(fits(layers[name]) and _pays(mask) for name, mask in own.items())
    return _convert(module, "", own, {}, norms=norms)


def _convert(
    module: nn.Module, path: str, masks: Mapping[str, Tensor], done: dict[int, nn.Module], *, norms: bool
) -> nn.Module:
    """`norms`: batch norms as well, which beside sparse convolutions take longest."""
    if id(module) in done:
        return done[id(module)]
    result = _layer(module, masks.get(f"{path}weight"), norms)
    if result is module and (type(module) in _CONTAINERS or not type(module).__module__.startswith("torch.")):
        for name, child in list(module._modules.items()):
            if child is not None:
                module._modules[name] = _convert(child, f"{path}{name}.", masks, done, norms=norms)
        if type(module) is nn.Sequential and any(isinstance(child, SparseLinear) for child in module):
            result = SparseSequential(OrderedDict(module._modules))
            result.train(module.training)
    done[id(module)] = result
    return result


def _layer(module: nn.Module, mask: Tensor | None, norms: bool) -> nn.Module:
    """One layer by its kept weights, where that pays; or itself."""
    if (
        type(module) is nn.Linear
        and mask is not None
        and pays(module.in_features, module.out_features, int(mask.sum()))
    ):
        return SparseLinear.from_dense(module, mask.bool())
    if isinstance(module, Dense) and fits(module) and mask is not None and _pays(mask):
        return SparseConvolution.from_dense(module, mask.bool())
    return normed(module) if norms else module
