"""Everything that training changes, for all replicas at once.

The weights of a network lie in one (replicas, weights) tensor, biases included; parameters are views of its columns.
So an optimiser step, a mask and a target copy are a few operations on one tensor, whatever the network looks like,
and replica r of a cohort is row r.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from fewer.core.engines import optimizer
from fewer.core.engines.stochastic import keyed_
from fewer.core.errors import UserError
from fewer.core.mask import Mask, choose_, prunable
from fewer.core.seed import torch_seed
from fewer.core.task import Task

__all__ = ["Network", "State", "check_finite", "fill_", "fresh_modules", "refuse_shared", "start", "tensors_of"]

_STATISTICS = ("running_mean", "running_var")  # of norms; another buffer may hold an infinity on purpose, as masks do


@dataclass
class Network:
    """One network of all replicas. `module` gives the shapes; whose weights it holds is the engine's affair."""

    module: nn.Module
    weights: Tensor  # (replicas, weights)
    buffers: dict[str, Tensor]  # each (replicas, ...)
    mask: Tensor | None = None  # (replicas, weights) in the weights' precision; None: nothing is pruned
    columns: dict[str, tuple[int, int, torch.Size]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        offset = 0
        for name, parameter in self.module.named_parameters():
            self.columns[name] = (offset, offset + parameter.numel(), parameter.shape)
            offset += parameter.numel()

    def parameter(self, name: str) -> Tensor:
        """(replicas, *shape): a view."""
        begin, end, shape = self.columns[name]
        return self.weights[:, begin:end].view(len(self.weights), *shape)  # a shape may have no elements

    def views(self) -> dict[str, Tensor]:
        """Every parameter, stacked over replicas: views."""
        return {name: self.parameter(name) for name in self.columns}

    def flat(self, named: Mapping[str, Tensor], default: float) -> Tensor:
        """(weights,) from tensors by parameter name, `default` where a parameter is not named."""
        row = torch.full_like(self.weights[0], default)
        for name, tensor in named.items():
            begin, end, _ = self.columns[name]
            row[begin:end] = tensor.reshape(-1).to(row)
        return row

    def bind_(self, replica: int) -> None:
        """Let the module's own parameters and buffers be that replica's row: changes go both ways."""
        for name, parameter in self.module.named_parameters():
            parameter.data = self.parameter(name)[replica]
        for prefix, part in self.module.named_modules():
            for name in part._buffers:
                if part._buffers[name] is not None:
                    part._buffers[name] = self.buffers[f"{prefix}.{name}" if prefix else name][replica]


@dataclass
class State:
    """`moments[i][network]` is the optimiser state of objective i; `step` counts finished steps, on the device."""

    seeds: tuple[int, ...]
    networks: dict[str, Network]
    step: Tensor
    moments: list[dict[str, optimizer.State]]

    @property
    def replicas(self) -> int:
        return len(self.seeds)

    def named(self) -> Iterator[tuple[str, Tensor]]:
        """Every tensor that resuming needs, by a name fit for a file."""
        yield "step", self.step
        for name, network in self.networks.items():
            yield f"weights/{name}", network.weights
            for key, buffer in network.buffers.items():
                yield f"buffers/{name}/{key}", buffer
            if network.mask is not None:
                yield f"mask/{name}", network.mask
        for index, by_network in enumerate(self.moments):
            for name, moments in by_network.items():
                for key, tensor in moments.items():
                    yield f"moments/{index}/{name}/{key}", tensor

    def finite(self) -> Tensor:
        """(replicas,): whose weights and running statistics are."""
        found = [network.weights for network in self.networks.values()]
        for network in self.networks.values():
            found += [buffer.flatten(1) for key, buffer in network.buffers.items() if key.endswith(_STATISTICS)]
        return torch.stack([tensor.isfinite().all(1) for tensor in found]).all(0).cpu()

    def kept_of(self, name: str) -> tuple[int, int]:
        """Weights that one network's first replica keeps, and all it has, biases included."""
        network = self.networks[name]
        total = network.weights.shape[1]
        return total if network.mask is None else int(network.mask[0].count_nonzero()), total

    def load_(self, tensors: Mapping[str, Tensor]) -> None:
        """Take over what `named` gave; a tensor that is missing or of another shape is an error."""
        for name in tensors:
            if name.startswith("mask/") and (network := self.networks.get(name.removeprefix("mask/"))) is not None:
                network.mask = torch.ones_like(network.weights)
        for name, tensor in self.named():
            if name not in tensors or tensors[name].shape != tensor.shape:
                raise UserError(f"a saved state without a fitting {name}", "the state of this very run", "train anew")
            tensor.copy_(tensors[name])

    def mask_(self, replica: int, mask: Mask) -> None:
        """Prune: weights, moments and target copies outside the mask become zero, and stay so."""
        for name, by_parameter in mask.items():
            network = self.networks[name]
            if network.mask is None:
                network.mask = torch.ones_like(network.weights)
            network.mask[replica] = network.flat(by_parameter, 1.0)
            # not a product: that would leave -0.0, which is another bit pattern in every file
            network.weights[replica].masked_fill_(network.mask[replica] == 0, 0.0)
            for by_network in self.moments:
                for tensor in by_network.get(name, {}).values():
                    tensor[replica] *= network.mask[replica]

    def mask_of(self, replica: int) -> dict[str, dict[str, Tensor]]:
        """The mask over all prunable parameters; networks that were never pruned are left out."""
        found: dict[str, dict[str, Tensor]] = {}
        for name, network in self.networks.items():
            if network.mask is not None:
                row = network.mask[replica]
                found[name] = {
                    key: row[network.columns[key][0] : network.columns[key][1]].view(network.columns[key][2]) != 0
                    for key in prunable(network.module)
                }
        return found

    def weights_of(self, replica: int) -> dict[str, dict[str, Tensor]]:
        """Parameters and buffers by network and name, as a state dict holds them."""
        return {
            name: {
                **{key: view[replica] for key, view in network.views().items()},
                **{key: buffer[replica] for key, buffer in network.buffers.items()},
            }
            for name, network in self.networks.items()
        }

    def modules_of(self, replica: int) -> dict[str, nn.Module]:
        """Separate modules with that replica's weights: for scoring, attacking and predicting."""
        modules = {}
        for name, weights in self.weights_of(replica).items():
            module = copy.deepcopy(self.networks[name].module)
            fill_(module, weights)
            modules[name] = module.requires_grad_(True)
        return modules


def tensors_of(module: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers by name, also the buffers that a state dict leaves out."""
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


@torch.no_grad()
def fill_(module: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Take over what `tensors_of` gave of an equal module, and its precision."""
    own = tensors_of(module)
    shapes = {key: tuple(tensor.shape) for key, tensor in own.items()}
    given = {key: tuple(tensor.shape) for key, tensor in tensors.items()}
    if shapes != given:
        key = min(key for key in {*shapes, *given} if shapes.get(key) != given.get(key))
        raise UserError(
            f"weights that do not fit, such as {key} {given.get(key, 'missing')}", f"{shapes.get(key, 'none of that')}",
            "choose a run of the same task and settings",
        )  # fmt: skip
    module.to(next((tensor.dtype for tensor in tensors.values() if tensor.is_floating_point()), torch.float32))
    for key, tensor in tensors_of(module).items():
        tensor.copy_(tensors[key])


def check_finite(modules: Mapping[str, nn.Module], whose: str) -> None:
    """Refuse the networks of a training that diverged, as `State.finite` tells them."""
    for name, module in modules.items():
        statistics = [(key, buffer) for key, buffer in module.named_buffers() if key.endswith(_STATISTICS)]
        for key, tensor in [*module.named_parameters(), *statistics]:
            if not bool(tensor.isfinite().all()):
                raise UserError(
                    f"{whose}, whose {name}.{key} is not finite", "the weights of a training that converged",
                    "train anew, with a lower learning rate",
                )  # fmt: skip


def fresh_modules(task: Task[Any], seed: int) -> dict[str, nn.Module]:
    """The task's networks and copies as that seed makes them; the global random state is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(torch_seed(seed, "networks"))
        modules = keyed_(task.networks())
    choose_(modules, only=task.only, skip=task.whole)
    refuse_shared(modules)
    for name, target in task.copies().items():
        modules[name] = copy.deepcopy(modules[target.of])
    return modules


def refuse_shared(modules: Mapping[str, nn.Module]) -> None:
    """Each network has weights of its own in the state: a parameter of two of them would come apart unnoticed.

    So has each parameter a shape: those of lazy layers are refused here too.
    """
    seen: dict[int, str] = {}
    for name, module in modules.items():
        for key, parameter in module.named_parameters():
            if isinstance(parameter, nn.UninitializedParameter):
                raise UserError(
                    f"{name}.{key}, whose shape is not known yet", "networks of which every layer is made",
                    "call the network once on a batch, or write the layer without Lazy",
                )  # fmt: skip
            if id(parameter) in seen:
                raise UserError(
                    f"{name}.{key}, which is also {seen[id(parameter)]}", "networks that share no parameters",
                    "make one network of the two, or give each its own",
                )  # fmt: skip
            seen[id(parameter)] = f"{name}.{key}"


def start(
    task: Task[Any],
    seeds: Sequence[int],
    settings: Sequence[optimizer.Optimizer],
    *,
    device: torch.device,
    dtype: torch.dtype,
    modules: Sequence[Mapping[str, nn.Module]] | None = None,
) -> State:
    """The state before the first step; `modules`, one set a seed, replaces fresh ones."""
    rows = [fresh_modules(task, seed) for seed in seeds] if modules is None else modules
    networks = {}
    for name in rows[0]:
        parts = [row[name].to(device, dtype) for row in rows]
        flat = [torch.cat([p.detach().reshape(-1) for p in part.parameters()] or [torch.zeros(0)]) for part in parts]
        buffers = {}
        for key, _ in parts[0].named_buffers():
            buffers[key] = torch.stack([part.get_buffer(key) for part in parts])
        shape = copy.deepcopy(parts[0])
        networks[name] = Network(shape, torch.stack(flat).to(device, dtype), buffers)
    moments = [
        {name: optimizer.start(chosen, networks[name].weights) for name in objective.trains}
        for objective, chosen in zip(task.objectives(), settings)
    ]
    step = torch.zeros((), dtype=torch.int64, device=device)
    return State(tuple(seeds), networks, step, moments)
