"""Pruning a state: score every network, then mask them all, then look at what is left."""

from __future__ import annotations

import copy
import math
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from fewer.core.abilities import Spare
from fewer.core.data import convert, place_constants_
from fewer.core.engines.base import Engine
from fewer.core.errors import UserError
from fewer.core.mask import Mask, density, either_of, kept, total
from fewer.core.seed import Stream, name_key, shuffled
from fewer.core.settings import check_choices, check_ranges, either, setting
from fewer.core.task import Task
from fewer.pruning.criteria import CRITERIA
from fewer.pruning.criteria.scoring import Scores, weights_of
from fewer.pruning.follow import followed
from fewer.pruning.keep import SCOPES, keep
from fewer.pruning.paths import lint
from fewer.pruning.paths.connected import connected
from fewer.pruning.paths.outputs import paths_to_outputs
from fewer.pruning.quota import reserve

__all__ = ["Pruning", "mask_for", "patterns", "prune_", "samples"]

_RANGES = [("swap", 0, 1), ("samples", 1, math.inf)]
_RANGES += [(name, 0, math.inf) for name in ("batches", "iterations", "input_quota", "every")]
_LATER = ("unchecked", "rows", "only", "skip")
_WHEN = ("start", "gradual", "set", "rigl", "rounds")
_TRIES = 8  # times that outputs which others' paths cut off get one too
_BLIND = [name for name, criterion in CRITERIA.items() if criterion.blind]


@dataclass(frozen=True)
class Pruning:
    """What to remove, by which measure, and when."""

    method: str = setting("snip", either(CRITERIA))
    sparsity: float = setting(0.9, "removed at the end", "share of the prunable weights")
    scope: str = setting("network", "what is ranked together: global, network, layer (equal densities) or erk")
    when: str = setting("start", "start (once), gradual, set or rigl (drop and grow) or rounds (lottery tickets)")
    rate: float = setting(0.3, "rounds: pruned after each training", "share of the survivors")
    begin: float = setting(0.2, "gradual: first pruning", "share of the steps")
    end: float = setting(0.6, "gradual, set, rigl: last change of the mask", "share of the steps")
    every: int = setting(0, "gradual, set, rigl: steps between changes; 0: a hundredth of the run", "steps")
    swap: float = setting(0.3, "set, rigl: swapped at the first change, falling by a cosine", "share of kept")
    batches: int = setting(0, "batches to score on; 0: as many as the method needs, two for grasp, else one")
    samples: int = setting(100, f"samples in each of them; {', '.join(_BLIND)} need none")
    iterations: int = setting(0, "prune in so many rounds of scoring; 0: the method's own, 100 for synflow, else 1")
    layer_quota: float = setting(0.0, "every layer keeps at least this much", "share of its weights")
    input_quota: int = setting(0, "every input group keeps at least so many first-layer weights", "weights")
    connected: bool = setting(False, "start, gradual: weights on no path make room for others, every output gets one")
    unchecked: bool = setting(False, "train behind a mask that cuts an input off too, as who does not look for paths")
    rows: bool = setting(False, "embeddings lose whole rows, by their mean score; at most one is cut")
    only: str = setting("", "parameters that alone may lose weights, with + between: encoder.*+head")
    skip: str = setting("", "parameters that stay whole: embeddings+classifier.*")

    def described(self) -> dict[str, Any]:
        """As files hold it; later settings where they are set alone, so that runs from before them are found again."""
        return {name: value for name, value in asdict(self).items() if name not in _LATER or value}

    def __post_init__(self) -> None:
        check_choices(self, {"method": tuple(CRITERIA), "scope": SCOPES, "when": _WHEN}, of="pruning")
        if not 0 <= self.sparsity < 1:
            raise UserError(
                f"sparsity {self.sparsity}", "at least 0 and below 1", "0.95 removes 95 % of the prunable ones"
            )
        if not 0 <= self.begin <= self.end <= 1:
            raise UserError(f"pruning from {self.begin} to {self.end}", "shares with 0 <= begin <= end <= 1")
        if not 0 <= self.layer_quota <= 1 - self.sparsity + 1e-9:
            raise UserError(f"layer_quota {self.layer_quota}", f"at most the density kept, {1 - self.sparsity:.3g}")
        if not 0 < self.rate < 1:
            raise UserError(f"rate {self.rate}", "a share between 0 and 1")
        check_ranges(self, _RANGES, of="pruning")
        self._check_when()

    def _check_when(self) -> None:
        """Not every method and option goes with every time."""
        if self.when == "rounds" and self.method != "magnitude":
            raise UserError(f"{self.method} in rounds", "magnitude", "lottery tickets are found by magnitude")
        if (self.connected or self.rows) and self.when not in ("start", "gradual"):
            given = "connected" if self.connected else "rows"
            raise UserError(f"{given} with when={self.when}", "start or gradual", "others choose weights by themselves")


def patterns(text: str) -> tuple[str, ...]:
    """Of a text such as `encoder.*+head`."""
    return tuple(part.strip() for part in text.split("+") if part.strip())


def samples(task: Task[Any], seed: int, *, count: int, of: int, like: Tensor) -> list[Any]:
    """`of` batches of `count` training samples, in an order of their own that training does not see."""
    data = task.data("train")
    if len(data) < count:
        raise UserError(f"{len(data)} training samples", f"at least the {count} that scoring takes", "lower `samples`")
    order = shuffled(torch.tensor(seed ^ (name_key("prune") >> 8)), torch.arange(count * of), len(data))
    return [convert(data.take(index), like.device, like.dtype) for index in order.split(count)]


def mask_for(
    task: Task[Any], modules: Mapping[str, nn.Module], pruning: Pruning, *, seed: int, before: Mask | None = None
) -> dict[str, dict[str, Tensor]]:
    """The mask over every network the task trains; `before` bounds it: what is pruned stays pruned."""
    like = next(p for module in modules.values() for p in module.parameters())
    place_constants_(task, like.device, like.dtype)
    criterion = CRITERIA[pruning.method]
    of = max(pruning.batches, criterion.batches)
    # two, as a normaliser in training mode needs more than one value
    count = min(pruning.samples, 2, len(task.data("train"))) if criterion.blind else pruning.samples
    batches = samples(task, seed, count=count, of=of, like=like)
    noise = Stream(torch.tensor(seed, device=like.device), torch.tensor(-1, device=like.device), like.dtype)
    rounds = pruning.iterations or criterion.iterations
    calls = lint.calls_of(task, modules, batches[0], noise)
    mask: dict[str, dict[str, Tensor]] = {net: dict(found) for net, found in (before or {}).items()}
    spare = task.spare() if isinstance(task, Spare) else ()
    begin = _density_left(mask, pruning.sparsity, fewer=pruning.connected)
    for turn in range(1, rounds + 1):
        # a geometric way from what is left to the goal; the last turn is the goal itself, to the bit
        share = begin * ((1 - pruning.sparsity) / begin) ** (turn / rounds)
        sparsity = pruning.sparsity if turn == rounds else max(0.0, 1 - share)
        shadow = _masked_copies(modules, mask)
        scores = criterion(task, shadow, batches, noise)
        if pruning.rows:
            scores = _by_row(scores, modules)
        mask = _kept(scores, pruning, sparsity, shadow, calls, mask, spare)
    mask = followed(task, mask)
    own = {net: found for net, found in mask.items() if net not in task.copies()}  # a copy has the same paths
    if not pruning.unchecked:
        lint.refuse_useless(lint.examine(modules, own, calls), spare)
    return mask


def _kept(
    scores: Scores,
    pruning: Pruning,
    sparsity: float,
    modules: Mapping[str, nn.Module],
    calls: Mapping[str, tuple[Any, ...]],
    within: Mask,
    spare: Collection[str],
) -> dict[str, dict[str, Tensor]]:
    """The best by their scores, with what the quotas reserve, and paths where they are asked for."""
    found = keep(scores, sparsity, pruning.scope, within=within)
    reserved: Mask = {}
    if pruning.layer_quota or pruning.input_quota:
        reserved = reserve(scores, found, modules, calls, pruning, within=within)
        found = keep(scores, sparsity, pruning.scope, reserved=reserved, within=within)
    if not pruning.connected:
        return found
    found = connected(scores, found, modules, calls, pruning, within=within)
    for _ in range(_TRIES):
        paths = paths_to_outputs(scores, found, modules, calls, within=within, spare=spare)
        if not paths:
            break
        reserved = either_of(reserved, paths)
        try:
            found = keep(scores, sparsity, pruning.scope, reserved=reserved, within=within)
        except UserError:  # more than may be kept: what is cut off is told of the mask as it is
            break
        found = connected(scores, found, modules, calls, pruning, within=within)
    return found


def _by_row(scores: Scores, modules: Mapping[str, nn.Module]) -> Scores:
    """Every weight of an embedding with its row's mean: equals are kept in order, so rows stay or go as a whole."""
    found = {net: dict(by_name) for net, by_name in scores.items()}
    for net, by_name in found.items():
        tables = [part.weight for part in modules[net].modules() if isinstance(part, nn.Embedding | nn.EmbeddingBag)]
        for key, score in by_name.items():
            if any(modules[net].get_parameter(key) is table for table in tables):
                by_name[key] = score.mean(1, keepdim=True).expand_as(score)
    return found


def _density_left(mask: Mask, sparsity: float, *, fewer: bool) -> float:
    """What an earlier pruning left; what it removed cannot be kept now. `fewer`: that may be less than the goal."""
    layers = sum(len(by_parameter) for by_parameter in mask.values())
    if layers == 0:
        return 1.0
    if not fewer and kept(mask) + layers < (1 - sparsity) * total(mask):
        raise UserError(
            f"sparsity {sparsity:g} where {1 - density(mask):.4g} is pruned already", "at least that",
            "what is pruned stays pruned: raise the sparsity, or leave --prune out",
        )  # fmt: skip
    return max(density(mask), 1 - sparsity)


def _masked_copies(modules: Mapping[str, nn.Module], mask: Mask | None) -> dict[str, nn.Module]:
    shadow = {name: copy.deepcopy(module) for name, module in modules.items()}
    with torch.no_grad():
        for name, by_parameter in (mask or {}).items():
            for key, kept in by_parameter.items():
                shadow[name].get_parameter(key).mul_(kept)
    return shadow


def prune_(engine: Engine, pruning: Pruning, replica: int = 0) -> None:
    """Mask one replica of an engine's state, once, from the weights it has now."""
    state = engine.state
    before = state.mask_of(replica) or None
    mask = mask_for(engine.task, state.modules_of(replica), pruning, seed=state.seeds[replica], before=before)
    state.mask_(replica, mask)


def layer_keeps(modules: Mapping[str, nn.Module], mask: Mask) -> dict[str, tuple[int, int]]:
    """Kept and all weights of each layer, named network.parameter."""
    return {
        f"{net}.{key}": (int(mask[net][key].sum()) if net in mask and key in mask[net] else w.numel(), w.numel())
        for net, module in modules.items()
        for key, w in weights_of(module).items()
    }
