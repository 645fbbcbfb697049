"""Which weights are kept: bool tensors by network and parameter; a parameter that is not named is kept whole."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

__all__ = ["Mask", "dense", "density", "kept", "prunable", "total"]

Mask = Mapping[str, Mapping[str, Tensor]]
_NEVER = (nn.Embedding, nn.EmbeddingBag, nn.LayerNorm, nn.RMSNorm)  # their scales can have two axes as well


def prunable(module: nn.Module) -> list[str]:
    """Names of the parameters that pruning may touch: matrices and kernels, never biases, norms or embeddings."""
    spared = [p for part in module.modules() if isinstance(part, _NEVER) for p in part.parameters(recurse=False)]
    never = {id(parameter) for parameter in spared}
    # one that several layers share has one name here, that of the first, as it has everywhere else
    return [
        name
        for name, parameter in module.named_parameters()
        if name.endswith("weight") and parameter.ndim >= 2 and id(parameter) not in never
    ]


def kept(mask: Mask) -> int:
    """How many weights the mask keeps, over all networks."""
    return sum(int(tensor.sum()) for network in mask.values() for tensor in network.values())


def total(mask: Mask) -> int:
    """How many weights the mask speaks of."""
    return sum(tensor.numel() for network in mask.values() for tensor in network.values())


def density(mask: Mask) -> float:
    """The share kept.

    >>> density({"net": {"0.weight": torch.tensor([[True, False], [False, False]])}})
    0.25
    """
    return kept(mask) / max(total(mask), 1)


def dense(modules: Mapping[str, nn.Module]) -> dict[str, dict[str, Tensor]]:
    """The mask that keeps everything prunable."""
    return {
        network: {name: torch.ones_like(module.get_parameter(name), dtype=torch.bool) for name in prunable(module)}
        for network, module in modules.items()
    }
