"""What a mask does to a network: paths from each input to each output, weights left per layer.

A mask can be perfectly legal and the network useless: a critic whose action inputs are all pruned learns a value of the
state alone, trains without complaint and never improves a policy. So it is counted after every pruning.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from fewer.core.engines.nets import NetworkSet, frozen, recorded
from fewer.core.errors import UserError
from fewer.core.mask import Mask
from fewer.core.task import Noise, Task
from fewer.pruning.paths.skeleton import Linearised, skeleton

_TOKENS = -1  # the place of whole numbers among arguments
T = TypeVar("T")

__all__ = ["NetworkReport", "calls_of", "examine", "on_paths", "reaching", "refuse_useless"]


@dataclass(frozen=True)
class NetworkReport:
    """One network under its mask; `lost` and `reached` have one entry for each argument, shaped like the output."""

    network: str
    kept: dict[str, tuple[int, int]]  # parameter: kept, all
    lost: list[Tensor]  # bool: outputs that the argument reaches in the unpruned network, and no more
    reached: list[Tensor]  # bool: outputs that it still reaches

    def faults(self, spare: bool = False) -> list[str]:
        """What is broken, as nouns; empty if the network can do its job. `spare`: it can without some outputs."""
        found = [
            f"none of the {n} weights of {self.network}.{name}" for name, (k, n) in self.kept.items() if k == 0 < n
        ]
        for index, (lost, reached) in enumerate(zip(self.lost, self.reached)):
            if bool(lost.any()) and not bool(reached.any()):
                found.append(f"no path from input {index} of {self.network} to any output")
        if self.lost and not found and not spare and bool(self.cut.any()):
            several = f"{int(self.cut.sum())} of {self.cut.numel()} outputs of {self.network}"
            found.append(f"{several} that no input reaches")
        return found

    @property
    def cut(self) -> Tensor:
        """Outputs that some argument reaches in the unpruned network, and none any more."""
        if not self.lost:
            return torch.zeros(0, dtype=torch.bool)
        return torch.stack(self.lost).any(0) & ~torch.stack(self.reached).any(0)


def calls_of(task: Task[Any], modules: Mapping[str, nn.Module], batch: Any, noise: Noise) -> dict[str, tuple[Any, ...]]:
    """The arguments each network is first called with in the task's losses, cut to one sample."""
    nets, calls = recorded(frozen(NetworkSet(modules), training=False))
    with torch.no_grad():
        for objective in task.objectives():
            objective.loss(nets, batch, noise)
    return {name: tuple(a[:1] if torch.is_tensor(a) else a for a in arguments) for name, arguments in calls.items()}


def examine(modules: Mapping[str, nn.Module], mask: Mask, calls: Mapping[str, tuple[Any, ...]]) -> list[NetworkReport]:
    """A report on every network that the mask speaks of and that was called; an empty one if it cannot be followed."""
    return [_examine(name, modules[name], mask[name], calls[name]) for name in mask if name in calls]


def _examine(name: str, module: nn.Module, mask: Mapping[str, Tensor], arguments: tuple[Any, ...]) -> NetworkReport:
    found = attempted(lambda: _followed(name, module, mask, arguments))
    return NetworkReport(name, {}, [], []) if found is None else found


def _followed(name: str, module: nn.Module, mask: Mapping[str, Tensor], arguments: tuple[Any, ...]) -> NetworkReport:
    ones = {key: m.to(torch.float64) for key, m in mask.items()}
    drawn = _drawn(mask)
    probe = _Probe(skeleton(module, {key: ones[key] * drawn[key] for key in ones}), arguments)
    whole = _Probe(skeleton(module, drawn), arguments)
    reached = [paths != 0 for paths in probe.answers()]
    lost = [(before != 0) & ~after for before, after in zip(whole.answers(), reached)]
    # a layer on no path even of the unpruned network, as one that only another output reads, is nobody's loss
    used = on_paths(module, {key: torch.ones_like(m) for key, m in mask.items()}, arguments)
    kept = {key: (int(m.sum()), m.numel()) for key, m in mask.items() if not probe.groups or bool(used[key].any())}
    return NetworkReport(name, kept, lost, reached)


def attempted(work: Callable[[], T]) -> T | None:
    """What following a network's wiring gives; None where it is one that the skeleton cannot stand for."""
    try:
        return work()
    except UserError:
        raise
    except Exception:  # whatever a user's own forward does not take: other shapes, other types, a value it checks
        return None


def on_paths(module: nn.Module, mask: Mapping[str, Tensor], arguments: tuple[Any, ...]) -> dict[str, Tensor]:
    """The weights, kept or not, whose input an argument reaches and whose output reaches an output."""
    return reaching(module, mask, arguments, None)


def reaching(
    module: nn.Module, mask: Mapping[str, Tensor], arguments: tuple[Any, ...], output: int | None
) -> dict[str, Tensor]:
    """The same for the output at one place alone."""
    drawn = _drawn(mask)
    probe = _Probe(skeleton(module, {key: m * drawn[key] for key, m in mask.items()}), arguments)
    with torch.enable_grad():
        answer = probe.run(probe.groups) - probe.run(())  # what a constant adds is no path
        total = _weighed(answer) if output is None else answer[0].reshape(-1)[output]
    parameters = [probe.bare.get_parameter(key) for key in mask]
    slopes = torch.autograd.grad(total, parameters, materialize_grads=True)
    return {key: slope != 0 for key, slope in zip(mask, slopes)}


def _drawn(mask: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Numbers in general position, so that paths of opposite sign (a centring by hand) do not cancel."""
    lot = torch.Generator().manual_seed(0)
    return {key: torch.rand(m.shape, generator=lot, dtype=torch.float64).to(m.device) + 0.5 for key, m in mask.items()}


def _general(like: Tensor) -> Tensor:
    lot = torch.Generator().manual_seed(1)
    return (torch.rand(like.shape, generator=lot, dtype=torch.float64) + 0.5).to(like.device)


class _Probe:
    """A skeleton to be run with some of its arguments on and the others zero."""

    def __init__(self, bare: nn.Module, arguments: tuple[Any, ...]) -> None:
        self.bare, self.arguments = bare, arguments
        tensors = [(i, a) for i, a in enumerate(arguments) if torch.is_tensor(a)]
        self.groups = [i for i, a in tensors if a.is_floating_point()]
        # whole numbers are one group: whichever they are, they are rows of tables
        self.tokens = any(not a.is_floating_point() for _, a in tensors)
        self.groups += [_TOKENS] if self.tokens else []

    def run(self, active: Collection[int]) -> Tensor:
        """The first sample's output."""
        inputs = [
            (_general(a) if i in active else torch.zeros_like(a)).to(torch.float64) if i in self.groups else a
            for i, a in enumerate(self.arguments)
        ]
        with Linearised(float(_TOKENS in active or not self.tokens)):
            return self.bare(*inputs)  # type: ignore[no-any-return]

    @torch.no_grad()
    def answers(self) -> list[Tensor]:
        """For each argument, what it alone adds to each output; a normaliser's shift is not a path."""
        nothing = self.run(())
        return [(self.run((index,)) - nothing)[0] for index in self.groups]


def _weighed(outputs: Tensor) -> Tensor:
    """A sum in general position, for the same reason."""
    return (outputs * _general(outputs)).sum()


def refuse_useless(reports: list[NetworkReport], spare: Collection[str] = ()) -> None:
    """An error that names what is broken and the cure; silence if all is well. `spare` names networks with outputs
    that may be lost.
    """
    faults = [fault for report in reports for fault in report.faults(report.network in spare)]
    if faults:
        raise UserError(
            f"a mask that leaves {faults[0]}" + (f" (and {len(faults) - 1} more faults)" if faults[1:] else ""),
            "a network in which every input reaches an output",
            "lower the sparsity, normalise the inputs, or set scope=layer, connected=yes, layer_quota or input_quota",
        )
