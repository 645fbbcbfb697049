"""Removing whole features, so that the network itself becomes smaller: no mask is left behind."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from fewer.core.errors import UserError

__all__ = ["best_features", "feature_layer", "remove_features"]


def best_features(score: Tensor, count: int, *, tie: Tensor | None = None) -> Tensor:
    """(count,) numbers of the best features, in order; equal scores go by `tie`, then the earlier feature stays."""
    if not 1 <= count <= len(score):
        raise UserError(f"{count} features to keep", f"1 to {len(score)}")
    order = torch.arange(len(score), device=score.device)
    for key in (tie, score):
        if key is not None:
            order = order[key[order].argsort(descending=True, stable=True)]
    return order[:count].sort().values


def feature_layer(module: nn.Module, head: str = "head") -> str:
    """The linear layer whose outputs, after an activation, are the head's inputs."""
    parts = [(name, part) for name, part in module.named_modules() if not list(part.children())]
    names: list[str] = [name for name, _ in parts]
    last = dict(parts).get(head)
    if not isinstance(last, nn.Linear):
        raise UserError(f"head {head!r}", "a linear layer of the network", f"one of {', '.join(names)}")
    for name, part in reversed(parts[: names.index(head)]):
        if isinstance(part, nn.Linear) and part.out_features == last.in_features:
            return str(name)
        if any(True for _ in part.parameters()):
            break  # a layer in between would have to shrink as well
    raise UserError(f"{type(module).__name__}", "a linear layer and an activation before the head")


@torch.no_grad()
def remove_features(module: nn.Module, keep: Tensor, *, head: str = "head") -> nn.Module:
    """A smaller copy with only the features in `keep` (numbers, or a bool for each).

    Feature i is row i of the last hidden layer and column i of the head; the answers are those of the whole network
    with the other features at zero.
    """
    smaller = copy.deepcopy(module)
    before, after = smaller.get_submodule(feature_layer(module, head)), smaller.get_submodule(head)
    assert isinstance(before, nn.Linear) and isinstance(after, nn.Linear)
    size = after.in_features
    keep = keep.nonzero()[:, 0] if keep.dtype == torch.bool and len(keep) == size else keep.long()
    if len(keep) < 1 or len(keep.unique()) != len(keep) or int(keep.min()) < 0 or int(keep.max()) >= size:
        raise UserError(f"features {keep.tolist()} to keep", f"one or more different ones of 0 to {size - 1}")
    before.weight = nn.Parameter(before.weight[keep].clone())
    if before.bias is not None:
        before.bias = nn.Parameter(before.bias[keep].clone())
    after.weight = nn.Parameter(after.weight[:, keep].clone())
    before.out_features = after.in_features = len(keep)
    return smaller
