"""Which weights are kept: bool tensors by network and parameter; a parameter that is not named is kept whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

import torch
from torch import Tensor, nn

__all__ = ["Mask", "choose_", "dense", "density", "either_of", "kept", "named", "prunable", "total"]

Mask = Mapping[str, Mapping[str, Tensor]]
_CHOICE = "_prunable"  # where a module notes what `choose_` said of it, so that its copies know too
_NORMS = (nn.LayerNorm, nn.RMSNorm)  # their scales can have two axes as well


def prunable(module: nn.Module) -> list[str]:
    """Names of the parameters that pruning may touch: those of two dimensions or more, but biases, norms and vectors.

    Where `choose_` named some they are taken by name, whatever their layer, and others are left whole.
    """
    only, skip = getattr(module, _CHOICE, ((), ()))
    norms = {id(p) for part in module.modules() if isinstance(part, _NORMS) for p in part.parameters(recurse=False)}
    # one that several layers share has one name here, that of the first, as it has everywhere else
    return [
        name
        for name, parameter in module.named_parameters()
        if parameter.ndim >= 2
        and (named(name, only) if only else id(parameter) not in norms and _matrix(name, parameter))
        and not named(name, skip)
    ]


def _matrix(name: str, parameter: Tensor) -> bool:
    """A weight of a layer, also with a single row, or whatever else is no vector in disguise (a class token)."""
    own = name.rpartition(".")[2]
    if "bias" in own:
        return False
    return sum(size > 1 for size in parameter.shape) > 1 or ("weight" in own and own != "weight_g")


def choose_(modules: Mapping[str, nn.Module], *, only: Sequence[str] = (), skip: Sequence[str] = ()) -> None:
    """Let pruning touch `only` what these patterns name and `skip` what those do, as `encoder.*` or `critic.head`."""
    for network, module in modules.items():
        setattr(module, _CHOICE, tuple(_of_network(network, patterns) for patterns in (only, skip)))


def _of_network(network: str, patterns: Sequence[str]) -> tuple[str, ...]:
    """Each pattern as one of a parameter's name in that network."""
    own = [pattern.partition(".")[2] for pattern in patterns if fnmatchcase(network, pattern.partition(".")[0])]
    return (*patterns, *filter(None, own))


def named(name: str, patterns: Sequence[str]) -> bool:
    """Whether a pattern matches the parameter or a module that holds it."""
    return any(fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}.*") for pattern in patterns)


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


def either_of(first: Mask, second: Mask) -> dict[str, dict[str, Tensor]]:
    """What at least one of them keeps, of all that one of them speaks of."""
    found = {network: dict(by_name) for network, by_name in first.items()}
    for network, by_name in second.items():
        own = found.setdefault(network, {})
        for name, some in by_name.items():
            own[name] = own[name] | some if name in own else some
    return found


def dense(modules: Mapping[str, nn.Module]) -> dict[str, dict[str, Tensor]]:
    """The mask that keeps everything prunable."""
    return {
        network: {name: torch.ones_like(module.get_parameter(name), dtype=torch.bool) for name in prunable(module)}
        for network, module in modules.items()
    }
