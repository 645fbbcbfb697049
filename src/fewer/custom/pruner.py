"""Pruning inside somebody else's training loop: told of every step, it keeps a network's masks.

`fewer.lightning.Prune` and `fewer.transformers.Prune` are this, hung into those libraries; in a loop of one's own it is
two calls, `begin_(model, steps)` and after every optimiser step `step_(model, step)`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from fewer.core.count import Count
from fewer.core.errors import UserError
from fewer.core.mask import choose_, prunable
from fewer.core.seed import Stream
from fewer.core.system import imported
from fewer.pruning.criteria.lamp import shares
from fewer.pruning.keep import keep
from fewer.pruning.pruning import Pruning, patterns
from fewer.pruning.recipe import parse_prune
from fewer.pruning.schedules.gradual import Gradual

__all__ = ["Pruner", "base_of"]

_NET = "net"
_METHODS = ("magnitude", "lamp", "random")


def base_of(place: str) -> Any:
    """A class of another library to derive from; where that is not installed `object`, and its use is refused."""
    try:
        return imported(place)
    except ImportError:
        return object


class Pruner:
    """Masks of one network by a criterion that needs no data, at once or gradually; pruned weights are exactly zero."""

    def __init__(self, prune: str = "lamp,when=gradual", *, sparsity: float | None = None, seed: int = 0) -> None:
        more = [] if sparsity is None else [f"sparsity={sparsity}"]
        found = parse_prune(prune, more)
        if found is None or found.method not in _METHODS:
            raise UserError(f"pruning by {prune!r} in another training loop", f"one of {', '.join(_METHODS)}")
        if found.when not in ("start", "gradual"):
            raise UserError(f"when={found.when} in another training loop", "start or gradual")
        self.pruning, self.seed = found, seed
        self.mask: dict[str, Tensor] = {}
        self.schedule: Gradual | None = None

    def begin_(self, model: nn.Module, steps: int) -> None:
        """Before the first step of `steps`; one-shot pruning happens here."""
        choose_({_NET: model}, only=patterns(self.pruning.only), skip=patterns(self.pruning.skip))
        if not prunable(model):
            raise UserError("a network without a weight that pruning may touch", "a matrix or a kernel")
        if self.pruning.when == "start":
            self._prune_(model, self.pruning)
        else:
            self.schedule = Gradual({0: self.pruning}, steps)
            self.step_(model, 0)

    def step_(self, model: nn.Module, step: int) -> None:
        """After an optimiser step, of which `step` are done: prune if it is time, and keep what is pruned at zero."""
        if self.schedule is not None and self.schedule.next(step) == step:
            self._prune_(model, replace(self.pruning, sparsity=self.schedule.sparsity(self.pruning, step)))
        with torch.no_grad():
            for name, kept in self.mask.items():
                model.get_parameter(name).mul_(kept)

    def _prune_(self, model: nn.Module, pruning: Pruning) -> None:
        scores = {name: self._scores(name, model.get_parameter(name)) for name in prunable(model)}
        within = {_NET: self.mask} if self.mask else None
        self.mask = keep({_NET: scores}, pruning.sparsity, pruning.scope, within=within)[_NET]

    def _scores(self, name: str, weight: Tensor) -> Tensor:
        if self.pruning.method == "random":
            noise = Stream(torch.tensor(self.seed), torch.tensor(-1))
            return noise.uniform(f"prune/{_NET}/{name}", tuple(weight.shape)).to(weight.device)
        size = weight.detach().abs()
        return shares(size) if self.pruning.method == "lamp" else size

    def count(self, model: nn.Module) -> Count:
        """What is left, of all parameters and of the prunable ones."""
        sizes = {name: parameter.numel() for name, parameter in model.named_parameters()}
        touched, gone = (sum(sizes[name] for name in prunable(model)), sum(int((~m).sum()) for m in self.mask.values()))
        everything = sum(sizes.values())
        return Count(everything, everything - gone, touched, touched - gone)
