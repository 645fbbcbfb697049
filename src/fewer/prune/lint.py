"""What a mask does to a network: paths from each input to each output, dead units, weights left per layer.

A mask can be perfectly legal and the network useless: a critic whose action inputs are all pruned learns a value of the
state alone, trains without complaint and never improves a policy. So it is counted after every pruning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from fewer.core.errors import UserError
from fewer.core.mask import Mask, prunable
from fewer.core.nets import NetworkSet, frozen, recorded
from fewer.core.task import Noise, Task
from fewer.prune.linear import Linearised, skeleton

__all__ = ["NetworkReport", "calls_of", "examine", "refuse_useless"]


@dataclass(frozen=True)
class NetworkReport:
    """One network under its mask. `paths[i]` are the paths from the i-th argument to each output."""

    network: str
    kept: dict[str, tuple[int, int]]  # parameter: kept, all
    paths: list[Tensor]
    dead_units: dict[str, tuple[int, int]] = field(default_factory=dict)  # layer: dead, all

    def faults(self) -> list[str]:
        """Sentences; empty if the network can do its job."""
        found = [f"{self.network}.{name} keeps none of {n} weights" for name, (k, n) in self.kept.items() if k == 0 < n]
        for index, paths in enumerate(self.paths):
            if not bool(paths.any()):
                found.append(f"no path from input {index} of {self.network} to any output")
        if self.paths:
            lost = int((torch.stack([p.reshape(-1) for p in self.paths]).sum(0) == 0).sum())
            outputs = self.paths[0].numel()
            if lost > 0 and not found:
                found.append(f"{lost} of {outputs} outputs of {self.network} are reached by no input")
        return found


def calls_of(task: Task[Any], modules: Mapping[str, nn.Module], batch: Any, noise: Noise) -> dict[str, tuple[Any, ...]]:
    """The arguments each network is first called with in the task's losses, cut to one sample."""
    nets, calls = recorded(frozen(NetworkSet(modules), training=False))
    with torch.no_grad():
        for objective in task.objectives():
            objective.loss(nets, batch, noise)
    return {name: tuple(a[:1] if torch.is_tensor(a) else a for a in arguments) for name, arguments in calls.items()}


def examine(modules: Mapping[str, nn.Module], mask: Mask, calls: Mapping[str, tuple[Any, ...]]) -> list[NetworkReport]:
    """A report on every network that the mask speaks of and that was called."""
    return [_examine(name, modules[name], mask[name], calls[name]) for name in mask if name in calls]


def _examine(name: str, module: nn.Module, mask: Mapping[str, Tensor], arguments: tuple[Any, ...]) -> NetworkReport:
    bare = skeleton(module, {key: m.to(torch.float64) for key, m in mask.items()})
    groups = [i for i, a in enumerate(arguments) if torch.is_tensor(a) and a.is_floating_point()]

    def run(active: set[int]) -> Tensor:
        inputs = [
            torch.full_like(a, float(i in active), dtype=torch.float64) if i in groups else a
            for i, a in enumerate(arguments)
        ]
        with Linearised():
            return bare(*inputs)  # type: ignore[no-any-return]

    with torch.no_grad():
        nothing = run(set())  # a normaliser's shift is not a path
        paths = [(run({index}) - nothing)[0].abs() for index in groups]
    kept = {key: (int(m.sum()), m.numel()) for key, m in mask.items()}
    return NetworkReport(name, kept, paths, _dead_units(bare, run, set(groups), nothing))


def _dead_units(bare: nn.Module, run: Any, groups: set[int], nothing: Tensor) -> dict[str, tuple[int, int]]:
    """Units that no input reaches or that reach no output, per layer with prunable weights."""
    layers = {name.rpartition(".")[0] for name in prunable(bare)}
    seen: dict[str, list[Tensor]] = {}
    hooks = [
        part.register_forward_hook(lambda _m, _a, out, name=name: seen.setdefault(name, []).append(out))
        for name, part in bare.named_modules()
        if name in layers and isinstance(part, nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d)
    ]
    with torch.no_grad():
        run(set())
    baseline = {name: outputs[0] for name, outputs in seen.items()}
    seen.clear()
    with torch.enable_grad():
        total = run(groups).sum()
    for hook in hooks:
        hook.remove()
    found = {}
    names = [name for name in seen if seen[name][0].requires_grad]
    back = torch.autograd.grad(total, [seen[name][0] for name in names], materialize_grads=True) if names else ()
    for name, gradient in zip(names, back):
        part = bare.get_submodule(name)
        axis = -1 if isinstance(part, nn.Linear) else 1
        reached = _any_but(seen[name][0].detach() != baseline[name], axis)
        useful = _any_but(gradient != 0, axis)
        found[name] = (int((~(reached & useful)).sum()), reached.numel())
    return found


def _any_but(flags: Tensor, axis: int) -> Tensor:
    return flags.movedim(axis, 0).reshape(flags.shape[axis], -1).any(1)


def refuse_useless(reports: list[NetworkReport]) -> None:
    """An error that names what is broken and the cure; silence if all is well."""
    faults = [fault for report in reports for fault in report.faults()]
    if faults:
        raise UserError(
            f"a mask that leaves {faults[0]}" + (f" (and {len(faults) - 1} more faults)" if faults[1:] else ""),
            "a network in which every input reaches an output",
            "lower the sparsity, normalise the inputs, or set a quota (layer_quota, input_quota)",
        )
