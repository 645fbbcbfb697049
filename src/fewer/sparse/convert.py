"""Between dense networks with masks and sparse networks: the same function, held differently."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

from torch import Tensor, nn

from fewer.core.errors import UserError
from fewer.sparse.linear import SparseLinear, SparseSequential

__all__ = ["BREAK_EVEN", "convert", "pays"]

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


def convert(module: nn.Module, masks: Mapping[str, Tensor]) -> nn.Module:
    """The network with sparse layers in place of its pruned `nn.Linear` ones, where that pays.

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
    return _convert(module, "", {n: m for n, m in masks.items() if id(known[n]) not in shared}, {})


def _convert(module: nn.Module, path: str, masks: Mapping[str, Tensor], done: dict[int, nn.Module]) -> nn.Module:
    if id(module) in done:
        return done[id(module)]
    result = module
    mask = masks.get(f"{path}weight")
    if type(module) is nn.Linear:
        if mask is not None and pays(module.in_features, module.out_features, int(mask.sum())):
            result = SparseLinear.from_dense(module, mask.bool())
    elif type(module) in _CONTAINERS or not type(module).__module__.startswith("torch."):
        for name, child in list(module._modules.items()):
            if child is not None:
                module._modules[name] = _convert(child, f"{path}{name}.", masks, done)
        if type(module) is nn.Sequential and any(isinstance(child, SparseLinear) for child in module):
            result = SparseSequential(OrderedDict(module._modules))
            result.train(module.training)
    done[id(module)] = result
    return result
