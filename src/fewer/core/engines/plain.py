"""The reference engine: one replica, real modules, ordinary autograd."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from fewer.core.engines.base import Engine, Training
from fewer.core.engines.nets import NetworkSet
from fewer.core.engines.stochastic import drawing
from fewer.core.errors import UserError
from fewer.core.seed import Stream, torch_seed
from fewer.core.task import Noise, Objective, Task

__all__ = ["Plain", "draws_itself"]

_RANDOM = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.RReLU)


def draws_itself(module: nn.Module) -> bool:
    """Whether a network draws from torch's global generator: by a layer that `keyed_` left, or within one."""
    return any(
        isinstance(part, _RANDOM) or (isinstance(part, nn.RNNBase | nn.MultiheadAttention) and part.dropout > 0)
        for part in module.modules()
    )


class Plain(Engine):
    """Modules whose parameters are views of the state's single row."""

    def __init__(
        self, task: Task[Any], training: Training, seed: int = 0, *, modules: Mapping[str, nn.Module] | None = None
    ) -> None:
        super().__init__(task, training, [seed], modules=None if modules is None else [modules])
        self.bind_()

    def bind_(self) -> None:
        """Point the modules at the state; call it again after a network was replaced."""
        for network in self.state.networks.values():
            network.bind_(0)
            network.module.requires_grad_(False)
        self.modules = {name: network.module for name, network in self.state.networks.items()}
        if self.training.compile and self.device.type == "cuda":
            torch.backends.cudnn.benchmark = True
            for module in self.modules.values():
                module.compile(dynamic=False)
        self.random_layers = any(draws_itself(module) for module in self.modules.values())

    def noise(self) -> Noise:
        """What this step's losses draw from."""
        return Stream(self.seeds[0], self.state.step, self.training.dtype)

    def gradients(self, objective: Objective[Any], batch: Any) -> tuple[Tensor, dict[str, Tensor]]:
        if self.random_layers:
            # torch's own random layers draw from the global generator: seeding it per step lets a killed run go on
            torch.manual_seed(torch_seed(self.state.seeds[0], f"step {self.count}"))
        if self.data.in_memory:
            batch = pytree.tree_map(lambda leaf: leaf[0], batch)
        parameters = {name: list(self.modules[name].parameters()) for name in objective.trains}
        leaves = [parameter.requires_grad_(True) for group in parameters.values() for parameter in group]
        noise = self.noise()
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.training.precision == "bfloat16"):
            loss = objective.loss(NetworkSet(self.modules), batch, noise)
        if loss.ndim:
            raise UserError(f"a loss of shape {tuple(loss.shape)}", "a scalar", "take its mean")
        with drawing(noise):  # a checkpointed forward runs again in here
            found = iter(torch.autograd.grad(loss, leaves, materialize_grads=True))
        for leaf in leaves:
            leaf.requires_grad_(False)
        flat = {name: torch.cat([next(found).reshape(-1) for _ in group])[None] for name, group in parameters.items()}
        return loss.detach()[None], flat
