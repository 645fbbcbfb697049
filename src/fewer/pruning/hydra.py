"""Learned scores (HYDRA, Sehwag et al. 2020): the weights stand still, a score for each decides whether it is kept.

The task's networks are wrapped so that their only parameters are scores; the ordinary engines then train them on the
task's own objectives, attacked ones if the task is hardened. The mask is the exact top k of the scores in the forward
pass and transparent in the backward pass (straight-through).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from fewer.core.abilities import Variant
from fewer.core.engines.base import Engine, Training
from fewer.core.engines.cohort import Cohort
from fewer.core.engines.loop import Loop, fit
from fewer.core.engines.plain import Plain
from fewer.core.engines.state import fresh_modules
from fewer.core.errors import UserError
from fewer.core.mask import choose_, prunable
from fewer.core.task import Task
from fewer.pruning.follow import followed

__all__ = ["SCOPES", "Scored", "WithScores", "hydra", "learned_masks"]

SCOPES = ("layer", "network")
Masks = dict[str, dict[str, Tensor]]


class Scored(nn.Module):
    """A network whose weights are held still and gated by scores.

    Scope `layer` keeps the same share of every layer, as published; `network` ranks all of its weights together.
    Biases and norms are held still as well.
    """

    def __init__(self, module: nn.Module, sparsity: float, scope: str = "layer") -> None:
        super().__init__()
        if not 0 <= sparsity < 1:
            raise UserError(f"sparsity {sparsity}", "at least 0 and below 1", "0.95 removes 95 % of the prunable ones")
        if scope not in SCOPES:
            raise UserError(f"scope {scope!r}", f"one of {', '.join(SCOPES)}")
        self.sparsity, self.scope, self.names = sparsity, scope, prunable(module)
        self.held = _held_still(module)
        self.scores = nn.ParameterList(self._first(self.held.get_buffer(name)) for name in self.names)

    def _first(self, weight: Tensor) -> nn.Parameter:
        """Scores proportional to the weights, so that training begins at the mask of the largest."""
        if self.scope == "network":
            return nn.Parameter(weight.detach().clone())
        bound = math.sqrt(6 / max(weight[0].numel(), 1))  # the spread that Kaiming's initialisation would have
        return nn.Parameter(weight.detach() * (bound / weight.abs().max().clamp(min=1e-12)))

    def gates(self) -> list[Tensor]:
        """0 or 1 for each weight, exactly k ones whatever the ties, by prunable parameter."""
        sizes = [score.abs().reshape(-1) for score in self.scores]
        if self.scope == "network":
            parts = _top(torch.cat(sizes), self.sparsity).split([size.shape[0] for size in sizes])
        else:
            parts = tuple(_top(size, self.sparsity) for size in sizes)
        return [part.reshape(score.shape) for part, score in zip(parts, self.scores)]

    def forward(self, *arguments: Any, **options: Any) -> Tensor:
        """The held network with its gated weights."""
        gated = {}
        for name, gate, score in zip(self.names, self.gates(), self.scores):
            size = score.abs()
            # the gate in value, the score in gradient
            gated[name] = self.held.get_buffer(name) * (gate.detach() + size - size.detach())
        answer: Tensor = functional_call(self.held, gated, arguments, options)
        return answer


def _held_still(module: nn.Module) -> nn.Module:
    """A copy whose parameters have become buffers."""
    still = copy.deepcopy(module)
    held: dict[Tensor, Tensor] = {}  # what layers share they go on sharing
    for part in still.modules():
        for name, parameter in list(part.named_parameters(recurse=False)):
            del part._parameters[name]
            part.register_buffer(name, held.setdefault(parameter, parameter.detach().clone()))
    return still


def _top(sizes: Tensor, sparsity: float) -> Tensor:
    """1 for the largest, 0 for the rest; the first of equals wins. Ranks instead of writes, so that it vmaps."""
    count = sizes.shape[0] - round(sparsity * sizes.shape[0])
    order = torch.sort(sizes.detach(), descending=True, stable=True).indices
    rank = torch.sort(order).indices
    return (rank < count).to(sizes.dtype)


class WithScores(Variant):
    """A task with networks that learn scores instead of weights; everything else is as it was.

    Networks that no objective trains, and target copies, are wrapped too, so that a copy still fits its source.
    """

    def __init__(self, task: Task[Any], sparsity: float, scope: str = "layer") -> None:
        super().__init__(task)
        self.sparsity, self.scope = sparsity, scope

    def networks(self) -> dict[str, nn.Module]:
        modules = self.task.networks()
        choose_(modules, only=self.task.only, skip=self.task.whole)
        return {name: Scored(module, self.sparsity, self.scope) for name, module in modules.items()}


def learned_masks(task: Task[Any], modules: Mapping[str, nn.Module]) -> Masks:
    """What the scores keep, by network and parameter of the task's own networks."""
    found: Masks = {}
    for name in {name: None for objective in task.objectives() for name in objective.trains}:
        module = modules[name]
        assert isinstance(module, Scored)
        with torch.no_grad():
            found[name] = {key: gate.bool() for key, gate in zip(module.names, module.gates())}
    return followed(task, found)


def hydra(
    task: Task[Any],
    sparsity: float,
    *,
    training: Training,
    seeds: Sequence[int],
    modules: Sequence[Mapping[str, nn.Module]] | None = None,
    scope: str = "layer",
    loop: Loop | None = None,
) -> list[Masks]:
    """A mask for each seed, learned on the task's objectives for `training.steps` steps.

    `modules` are trained networks, one set a seed; without them scores are learned for fresh ones. Then give the mask
    to an engine with the same networks and train on.
    """
    rows = [fresh_modules(task, seed) for seed in seeds] if modules is None else modules
    wrapped = [{name: Scored(module, sparsity, scope) for name, module in row.items()} for row in rows]
    scored = WithScores(task, sparsity, scope)
    engine: Engine
    if len(seeds) == 1 and training.device == "cpu":
        engine = Plain(scored, training, seeds[0], modules=wrapped[0])
    else:
        engine = Cohort(scored, training, seeds, modules=wrapped)
    fit(engine, loop=loop)
    return [learned_masks(task, engine.state.modules_of(replica)) for replica in range(len(seeds))]
