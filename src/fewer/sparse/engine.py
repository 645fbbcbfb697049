"""The engine `sparse`: the plain engine over networks that hold only their kept weights.

It has no training step of its own. What differs is the state, whose weights, gradients and moments exist for kept
weights alone; whoever asks it for weights, masks or modules, or saves it, is given the dense ones.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from fewer.core.data import TensorData
from fewer.core.engines.base import Engine
from fewer.core.engines.plain import Plain
from fewer.core.engines.state import Network, State
from fewer.core.errors import UserError
from fewer.core.mask import Mask
from fewer.core.task import Noise
from fewer.sparse.convert import convert, gains
from fewer.sparse.convolution import SparseConvolution
from fewer.sparse.draws import CompiledStream
from fewer.sparse.linear import SparseLinear
from fewer.sparse.pattern import has_kernels, kernels
from fewer.sparse.replay import Repeater

__all__ = ["Sparse", "SparseState", "sparse_engine", "worthwhile"]


def sparse_engine(engine: Engine) -> Engine:
    """The same training from here on, with kept weights only; the plain engine must not be used any more."""
    if not isinstance(engine, Plain):
        raise UserError(f"the engine {type(engine).__name__}", "Plain, one replica", "train seeds one by one")
    if engine.device.type != "cpu" or engine.training.precision == "bfloat16":
        given = f"device {engine.device} and precision {engine.training.precision}"
        raise UserError(given, "a CPU and float32 or float64", "use the engine plain")
    return engine if isinstance(engine, Sparse) else Sparse(engine)


def worthwhile(engine: Engine) -> bool:
    """Whether kept weights only would train faster: a CPU, the compiled kernels, and a large layer pruned enough."""
    if not isinstance(engine, Plain) or not has_kernels(engine.losses):
        return False
    if engine.training.precision == "bfloat16":
        return False
    mask = engine.state.mask_of(0)
    return any(
        gains(engine.modules[name].get_submodule(key.rpartition(".")[0]), kept)
        for name, by_name in mask.items()
        for key, kept in by_name.items()
    )


class Sparse(Plain):
    """Made from a plain engine by `sparse_engine`."""

    def __init__(self, plain: Plain) -> None:
        if kernels is not None:
            kernels.keep_memory()
        self.adopt_(plain)
        self.state = sparse(plain.state)
        self.bind_()

    def bind_(self) -> None:
        super().bind_()
        self.bound = self.state.networks
        self.samples: Tensor | None = None  # this step's, where a recorded step looks for them
        self.repeater: Repeater | None = None

    def step_(self) -> None:
        if self.bound is not self.state.networks:  # a new mask or a restored state came with new modules
            self.bind_()
        if self.random_layers or not isinstance(self.data, TensorData):
            super().step_()  # each step asks Python for something
            return
        order = super()._order()
        if self.samples is None:
            self.samples = order.clone()
        self.samples.copy_(order)
        state = list(self._tensors())
        if self.repeater is None or not self.repeater.holds(state):  # somebody replaced a part of the state
            self.repeater = Repeater(super().step_, state)
        turns = [self.count % objective.every == 0 for objective in self.objectives]
        moves = [self.count % target.every == 0 for target in self.copies.values()]
        if self.repeater((*turns, *moves)):
            self.count += 1

    def noise(self) -> Noise:
        return CompiledStream(self.seeds[0], self.state.step, self.training.dtype)

    def _order(self) -> Tensor:
        return super()._order() if self.samples is None else self.samples

    def _tensors(self) -> Iterator[Tensor]:
        yield self.state.step
        yield self.losses
        for network in self.state.networks.values():
            yield network.weights
            yield from network.buffers.values()
            if network.mask is not None:
                yield network.mask
        for by_network in self.state.moments:
            for moments in by_network.values():
                yield from moments.values()


@dataclass
class SparseState(State):
    """`networks` hold converted modules and kept weights; everything else is answered by `dense`."""

    skeletons: dict[str, nn.Module] = field(default_factory=dict)  # the dense modules, without memory
    pruned: frozenset[str] = frozenset()

    def dense(self) -> State:
        """The state that the plain engine would have here."""
        networks = {}
        for name, network in self.networks.items():
            chosen = selected(network.module)
            module = _emptied(self.skeletons[name], network.weights.device)
            networks[name] = Network(module, _spread(network.weights, chosen), network.buffers)
            if name in self.pruned:
                mask = chosen.to(network.weights)[None].clone()
                if network.mask is not None:
                    mask[:, chosen] = network.mask
                networks[name].mask = mask
        moments = [
            {
                name: {key: _spread(t, selected(self.networks[name].module)) for key, t in tensors.items()}
                for name, tensors in by_network.items()
            }
            for by_network in self.moments
        ]
        return State(self.seeds, networks, self.step, moments)

    def become_(self, dense: State) -> None:
        """Take over a dense state."""
        found = sparse(dense)
        self.seeds, self.networks, self.step, self.moments = found.seeds, found.networks, found.step, found.moments
        self.skeletons, self.pruned = found.skeletons, found.pruned

    def kept_of(self, name: str) -> tuple[int, int]:
        return super().kept_of(name)[0], sum(parameter.numel() for parameter in self.skeletons[name].parameters())

    def named(self) -> Iterator[tuple[str, Tensor]]:
        return self.dense().named()

    def load_(self, tensors: Mapping[str, Tensor]) -> None:
        dense = self.dense()
        dense.load_(tensors)
        self.become_(dense)

    def mask_(self, replica: int, mask: Mask) -> None:
        dense = self.dense()
        dense.mask_(replica, mask)
        self.become_(dense)

    def mask_of(self, replica: int) -> dict[str, dict[str, Tensor]]:
        return self.dense().mask_of(replica)

    def weights_of(self, replica: int) -> dict[str, dict[str, Tensor]]:
        return self.dense().weights_of(replica)

    def modules_of(self, replica: int) -> dict[str, nn.Module]:
        return self.dense().modules_of(replica)


def sparse(state: State) -> SparseState:
    """A state of one replica with the pruned layers converted where that pays."""
    networks, skeletons, chosen = {}, {}, {}
    masks = state.mask_of(0)
    for name, network in state.networks.items():
        module = convert(copy.deepcopy(network.module), masks.get(name, {}))
        chosen[name] = selected(module)
        networks[name] = Network(module, network.weights[:, chosen[name]], network.buffers)
        if network.mask is not None and not bool((left := network.mask[:, chosen[name]]).all()):
            networks[name].mask = left  # pruned weights of layers that stay dense
        skeletons[name] = _emptied(network.module, torch.device("meta"))
    moments = [
        {name: {key: t[:, chosen[name]] for key, t in tensors.items()} for name, tensors in by_network.items()}
        for by_network in state.moments
    ]
    return SparseState(state.seeds, networks, state.step, moments, skeletons, frozenset(masks))


def _emptied(module: nn.Module, device: torch.device) -> nn.Module:
    """The module with tensors there that hold nothing; unlike `to_empty`, layers that share a weight still do."""
    memo: dict[int, Tensor] = {id(buffer): torch.empty_like(buffer, device=device) for buffer in module.buffers()}
    for parameter in module.parameters():
        memo[id(parameter)] = nn.Parameter(torch.empty_like(parameter, device=device), parameter.requires_grad)
    return copy.deepcopy(module, memo)


def selected(module: nn.Module) -> Tensor:
    """Which weights of the dense network's row a converted network holds, in the same order."""
    kinds = (SparseLinear, SparseConvolution)
    layers = {f"{path}.values": layer for path, layer in module.named_modules() if isinstance(layer, kinds)}
    parts = [
        layers[name].pattern.mask().reshape(-1) if name in layers else torch.ones(p.numel(), dtype=torch.bool)
        for name, p in ((f".{name}" if "." not in name else name, p) for name, p in module.named_parameters())
    ]
    return torch.cat(parts) if parts else torch.ones(0, dtype=torch.bool)


def _spread(kept: Tensor, chosen: Tensor) -> Tensor:
    row = kept.new_zeros(len(kept), len(chosen))
    row[:, chosen] = kept
    return row
