"""Which units of a network's layers an output reads, under a mask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from fewer.pruning.paths.skeleton import Linearised, skeleton

__all__ = ["constant", "reads"]


def reads(
    module: nn.Module, kept: Mapping[str, Tensor], arguments: tuple[Any, ...], output: int | None = None
) -> dict[str, Tensor]:
    """Per layer, which units reach an output, or the one at this place, under the mask."""
    bare = skeleton(module, {key: mask.to(torch.float64) for key, mask in kept.items()})
    outputs: dict[str, tuple[Tensor, int]] = {}

    def note(name: str, part: nn.Module, out: Tensor) -> None:
        outputs.setdefault(name, (out, -1 if isinstance(part, nn.Linear) else 1))

    hooks = [
        part.register_forward_hook(lambda module, _args, out, name=name: note(name, module, out))
        for name, part in bare.named_modules()
        if isinstance(part, nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d)
    ]
    with torch.enable_grad(), Linearised():
        answer = bare(*constant(arguments, dict.fromkeys(range(len(arguments)), 1.0)))
        total = answer.sum() if output is None else answer[0].reshape(-1)[output]
    for hook in hooks:
        hook.remove()
    found = {}
    for name, (out, axis) in outputs.items():
        gradient = torch.autograd.grad(total, out, retain_graph=True, materialize_grads=True)[0]
        found[name] = gradient.movedim(axis, 0).reshape(gradient.shape[axis], -1).abs().sum(1) > 0
    return found


def constant(arguments: tuple[Any, ...], values: Mapping[int, float]) -> list[Any]:
    """The arguments with these numbers everywhere, by place; whole numbers as they are."""
    return [
        torch.full_like(a, values.get(i, 0.0), dtype=torch.float64)
        if torch.is_tensor(a) and a.is_floating_point()
        else a
        for i, a in enumerate(arguments)
    ]
