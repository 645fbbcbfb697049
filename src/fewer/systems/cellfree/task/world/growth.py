"""A network that grows: new access points join a trained local model, and only their own rows are learned."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn
from torch.func import functional_call

from fewer.core.engines.nets import NetworkSet
from fewer.core.errors import UserError
from fewer.core.seed import Stream, shuffled
from fewer.systems.cellfree.task.models.local import Local
from fewer.systems.cellfree.task.task import CellFree

__all__ = ["grown", "learn_new_rows"]


@torch.no_grad()
def grown(task: CellFree, modules: Mapping[str, nn.Module]) -> dict[str, nn.Module]:
    """The trained model on a larger network whose first access points are the old ones.

    New access points start with the average row: the shared layers and what surrounds them already serve their phones.
    """
    old, new = modules["net"], task.networks()["net"]
    if not isinstance(old, Local) or not isinstance(new, Local):
        raise UserError("a model that is not local", "the local model", "train with model=local")
    before, after = old.own.num_embeddings, new.own.num_embeddings
    if after < before or old.enter.weight.shape != new.enter.weight.shape:
        raise UserError(f"{before} access points to grow to {after}", "at least as many, and the same settings")
    weights = dict(old.state_dict())
    average = weights["own.weight"].mean(dim=0, keepdim=True)
    weights["own.weight"] = torch.cat([weights["own.weight"], average.expand(after - before, -1)])
    new.load_state_dict(weights)
    return {"net": new}


def learn_new_rows(
    task: CellFree, modules: Mapping[str, nn.Module], *, before: int, steps: int = 300, rate: float = 0.02
) -> None:
    """Fit the rows from `before` on to the phones of new masters; nothing else moves."""
    net, phones = modules["net"], task.data("train")
    master = phones.take(torch.arange(len(phones))).master
    own = torch.nonzero(master >= before)[:, 0]
    if len(own) == 0:
        raise UserError("no training phone of a new access point", "at least one", "survey around it")
    fixed = {name: value.detach() for name, value in net.state_dict().items()}
    rows = fixed["own.weight"][before:].clone().requires_grad_(True)
    optimizer = torch.optim.Adam([rows], lr=rate)
    objective = task.objectives()[0]
    for step in range(steps):
        noise = Stream(torch.tensor(0), torch.tensor(step))
        position = torch.arange(step * 64, (step + 1) * 64)
        batch = phones.take(own[shuffled(torch.tensor(0), position, len(own))])
        table = torch.cat([fixed["own.weight"][:before], rows])
        nets = NetworkSet({"net": _Lent(net, {**fixed, "own.weight": table})})
        optimizer.zero_grad()
        objective.loss(nets, batch, noise).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    with torch.no_grad():
        net.get_parameter("own.weight")[before:] = rows


class _Lent(nn.Module):
    """A module that runs with other tensors than its own."""

    def __init__(self, module: nn.Module, tensors: Mapping[str, torch.Tensor]) -> None:
        super().__init__()
        self._call = lambda *arguments: functional_call(module, dict(tensors), arguments)

    def forward(self, *arguments: object) -> torch.Tensor:
        """The lent module's answer."""
        return self._call(*arguments)  # type: ignore[no-any-return]
