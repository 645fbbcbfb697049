"""Many replicas in lock-step: the forward vmapped over stacked weights, one backward, one optimiser.

On CUDA the whole step, sampling included, is captured once as a graph and replayed, so that small networks do
not wait for Python. A replica's numbers do not depend on who else is in the cohort, but for the order of summation.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import vmap
from torch.utils import _pytree as pytree

from fewer.core.data import TensorData
from fewer.core.engines.aligned import aligned_linear
from fewer.core.engines.base import Engine, move_
from fewer.core.engines.columns import column_conv2d
from fewer.core.engines.instead import Instead
from fewer.core.engines.layers import batchable
from fewer.core.engines.nets import NetworkSet
from fewer.core.errors import UserError
from fewer.core.seed import Stream
from fewer.core.task import Objective

__all__ = ["Cohort"]

Case = tuple[tuple[bool, ...], tuple[bool, ...]]  # which parts take their update, which networks are masked
Arguments = tuple[Any, Any, Any, Tensor, Tensor]  # weights, buffers, batch, seeds, step
Found = tuple[Tensor, dict[str, Tensor]]  # losses (replicas,); gradients (replicas, weights) by network
BACKEND = "inductor"
_WARMUP = 3  # eager steps before capture, so that lazy initialisation and cuDNN's choices are behind us


def _first(stacked: Any) -> Any:
    return pytree.tree_map(lambda tensor: tensor[0], stacked)


class Cohort(Engine):
    """Construct with one seed per replica; give each its mask through `state.mask_`."""

    # convolutions as products of matrices, those of up to so many inputs as sums; the bench of cohorts tries them
    columns: int | None = None

    @cached_property
    def turns(self) -> list[int]:
        """How often each objective and each target copy takes its turn."""
        return [part.every for part in self.objectives] + [part.every for part in self.copies.values()]

    @cached_property
    def graphs(self) -> dict[Case, torch.cuda.CUDAGraph]:
        """Captured steps."""
        return {}

    @cached_property
    def warm(self) -> dict[Case, int]:
        """Eager steps that were taken before a capture."""
        return {}

    def gradients(self, objective: Objective[Any], batch: Any) -> Found:
        networks = self.state.networks
        weights = {name: network.views() for name, network in networks.items()}
        buffers = {name: network.buffers for name, network in networks.items()}
        arguments = (weights, buffers, batch, self.seeds, self.state.step)
        return self._compiled(objective, arguments) if self.compiles else self._differentiated(objective, arguments)

    def refusal(self) -> str | None:
        """Why the losses do not run in lock-step, from one batch without a step; None where they do."""
        batch, networks = self._sample(), self.state.networks
        weights = {name: network.views() for name, network in networks.items()}
        buffers = {name: {k: v.clone() for k, v in network.buffers.items()} for name, network in networks.items()}
        try:
            for objective in self.objectives:
                self._differentiated(objective, (weights, buffers, batch, self.seeds, self.state.step))
        except torch.OutOfMemoryError:
            raise
        except (RuntimeError, NotImplementedError, UserError) as error:  # vmap's refusals have no class of their own
            return " ".join(str(error).split())[:200]
        return None

    def _differentiated(self, objective: Objective[Any], arguments: Arguments) -> Found:
        """Losses (replicas,), and the gradient at the weights of each network that the objective trains."""
        weights, buffers, batch, seeds, step = arguments
        modules = {name: network.module for name, network in self.state.networks.items()}
        weights = dict(weights)
        for name in objective.trains:
            weights[name] = {key: view.detach().requires_grad_(True) for key, view in weights[name].items()}

        def one(weights: Any, buffers: Any, batch: Any, seed: Tensor) -> Tensor:
            state = {name: {**weights[name], **buffers[name]} for name in modules}
            return objective.loss(NetworkSet(modules, state), batch, Stream(seed, step, self.training.dtype))

        if len(seeds) == 1:  # the same from fewer kernels: vmap would make grouped convolutions and batched products
            samples = _first(batch) if self.data.in_memory else batch
            losses = one(_first(weights), _first(buffers), samples, seeds[0]).unsqueeze(0)
        else:
            shared = 0 if self.data.in_memory else None
            with batchable(), self._columns():
                losses = vmap(one, in_dims=(0, 0, shared, 0))(weights, buffers, batch, seeds)
        leaves = [view for name in objective.trains for view in weights[name].values()]
        found = iter(torch.autograd.grad(losses.sum(), leaves, materialize_grads=True))
        return losses.detach(), {
            name: torch.cat([next(found).reshape(len(seeds), -1) for _ in weights[name]], 1)
            for name in objective.trains
        }

    def _columns(self) -> AbstractContextManager[Any]:
        if self.columns is None:
            return nullcontext()
        return Instead(F.conv2d, partial(column_conv2d, direct=self.columns))

    @property
    def compiles(self) -> bool:
        """Whether losses and gradients run as fused kernels; compiling takes a minute or two, and pays on a GPU."""
        return self.training.compile and self.device.type == "cuda"

    @cached_property
    def programs(self) -> dict[tuple[Any, ...], Any]:
        """What was compiled, by what it is for."""
        return {}

    def _compiled(self, objective: Objective[Any], arguments: Arguments) -> Found:
        """The same from fused kernels: forward and backward are recorded together as one list of operations."""

        def whole(arguments: Arguments) -> Found:
            with Instead(F.linear, aligned_linear):
                return self._differentiated(objective, arguments)

        index = next(place for place, found in enumerate(self.objectives) if found is objective)
        return self._run(("gradients", index), whole, arguments)  # type: ignore[no-any-return]

    def update_(self, place: tuple[int, str], gradient: Tensor, rate: Tensor, update: Tensor) -> None:
        if not self.compiles:
            return super().update_(place, gradient, rate, update)
        index, name = place
        network, settings = self.state.networks[name], self.settings[index]
        masks = {} if network.mask is None else {"mask": network.mask}

        def whole(arguments: Any) -> None:
            weights, gradient, masks, moments, rate, update = arguments
            # a rate of two dimensions asks for elementwise operations, which are fused with the masks
            move_(settings, (weights, gradient, masks.get("mask"), moments), rate.reshape(-1, 1), update)

        arguments = (network.weights, gradient, masks, self.state.moments[index][name], rate, update)
        return self._run(("update", index, name, bool(masks)), whole, arguments)  # type: ignore[no-any-return]

    def _run(self, key: tuple[Any, ...], whole: Callable[[Any], Any], arguments: Any) -> Any:
        """Compiled when it is first asked for."""
        inputs, form = pytree.tree_flatten(arguments)
        if key not in self.programs:
            from torch.fx.experimental.proxy_tensor import make_fx

            # recording runs the operations, and some change their inputs: so on copies, with the same strides, since
            # what is recorded for a convolution's weights views them
            copies = [torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=t.device).copy_(t) for t in inputs]
            recorded = make_fx(lambda *tensors: whole(pytree.tree_unflatten(list(tensors), form)))(*copies)
            for node in recorded.graph.nodes:
                # vmap's rules leave zeros on the CPU, where the compiler would follow them, and no graph could
                if node.target is torch.ops.aten.scalar_tensor.default:
                    node.update_kwarg("device", self.device)
            recorded.recompile()
            self.programs[key] = torch.compile(recorded, backend=BACKEND, dynamic=False)
        with torch.no_grad():
            return self.programs[key](*inputs)

    def advance(self, steps: int) -> None:
        """That many steps; on CUDA by replaying a graph for each combination of what takes its turn."""
        if self.device.type != "cuda" or not isinstance(self.data, TensorData):
            return super().advance(steps)
        end = self.count + steps
        while self.count < end:  # recording a graph is no step
            turns = tuple(self.count % every == 0 for every in self.turns)
            masked = tuple(network.mask is not None for network in self.state.networks.values())
            case = (turns, masked)
            if case in self.graphs:
                self.graphs[case].replay()
                self.count += 1
            elif self.warm.setdefault(case, 0) < _WARMUP:
                self.warm[case] += 1
                self._on_side_stream()
            else:
                self._capture(case)
        return None

    def _capture(self, case: Case) -> None:
        graph, count = torch.cuda.CUDAGraph(), self.count
        with torch.cuda.graph(graph):
            self.step_()  # recorded, not run
        self.graphs[case] = graph
        self.count = count

    def _on_side_stream(self) -> None:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self.step_()
        torch.cuda.current_stream().wait_stream(stream)
