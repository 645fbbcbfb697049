"""How useful each feature is, and how useful it stays when an adversary moves the input.

With feature f_i before the head, its weight w_i there and a target t = +1 or -1:

    raw        u_i   = E[t (2 s(w_i f_i(x)) - 1)],  s the sigmoid: what the head makes of the feature alone
    standard   rho_i = |E[t (f_i(x) - mean_i) / deviation_i]|  (Ilyas 2019), mean and deviation of the training set
    robust     the same expectations of the least value within the adversary's budget

Two classes ask one question, more ask one against the rest for each class, both sides weighing half. All of these are
monotone in f_i, so one search for the lowest and one for the highest reachable f_i answer every question.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from fewer.core.abilities import Attackable, Classifier, Featured, ability, perturbable_input
from fewer.core.data import batches, convert
from fewer.core.engines.nets import NetworkSet, frozen
from fewer.core.errors import UserError
from fewer.core.seed import Stream, name_key, shuffled
from fewer.core.task import Task

__all__ = ["Reach", "Usefulness", "usefulness"]

_PER_BATCH = 500
_PER_SEARCH = {"cpu": 256, "cuda": 8192}  # pairs of feature and sample that move together; 256 fit a CPU's cache


@dataclass(frozen=True)
class Reach:
    """How far and how hard the adversary searches: signed gradient steps inside an L-infinity ball.

    The steps must be able to cross the ball: three steps of 0.01, as the paper prints, never leave 0.03.
    """

    budget: float = 0.3  # in the input's own units
    step: float = 0.05
    steps: int = 10
    starts: int = 1  # the first from the sample itself, further ones from random points of the ball
    seed: int = 0

    def __post_init__(self) -> None:
        if not (self.budget >= 0 and self.step > 0 and self.steps >= 0 and self.starts >= 1):
            raise UserError(
                f"a reach of {self.budget} in {self.steps} steps of {self.step} from {self.starts} starts",
                "budget >= 0, step > 0, steps >= 0, starts >= 1",
            )


@dataclass(frozen=True)
class Usefulness:
    """(features, questions) each; one question for two classes, else one per class. Dead features score zero."""

    raw: Tensor
    standard: Tensor
    robust_raw: Tensor | None  # None: no adversary was asked for
    robust_standard: Tensor | None
    weight: Tensor  # of the feature in the head, for each question
    dead: Tensor  # (features,): constant over the training set, the free first step of pruning

    def score(self, kind: str = "raw", over: str = "max") -> Tensor:
        """(features,): the largest or the mean answer over the questions."""
        table = getattr(self, kind, None) if kind in ("raw", "standard", "robust_raw", "robust_standard") else None
        if table is None or over not in ("max", "mean"):
            raise UserError(
                f"score {kind!r} over {over!r}", "a measured kind, over max or mean", "robust ones need a Reach"
            )
        return table.amax(1) if over == "max" else table.mean(1)  # type: ignore[no-any-return]


def usefulness(
    task: Task[Any],
    modules: Mapping[str, nn.Module],
    *,
    split: str = "test",
    limit: int | None = None,
    reach: Reach | None = None,
) -> Usefulness:
    """Measure every feature on up to `limit` samples of a split; with a `reach`, robustly too."""
    featured = ability(task, Featured, "usefulness")  # type: ignore[type-abstract]
    classifier = ability(task, Classifier, "usefulness")  # type: ignore[type-abstract]
    nets = frozen(NetworkSet(modules))
    head = _head(featured, modules)
    mean, deviation = _moments(task, featured, nets, like=head)
    batch = _samples(task, classifier, split, limit, like=head)
    with torch.no_grad():
        clean = featured.features(nets, task.inputs(batch)).T  # (features, samples)
    weight, target, share = _questions(head, classifier.labels(batch))
    measure = _Measure(weight, target, share, mean=mean, deviation=deviation, clean=clean)
    raw, standard = measure.answers(clean, clean)
    if reach is None:
        return Usefulness(raw, standard, None, None, weight, deviation == 0)
    # Rounding may differ between batch sizes; the clean point itself is always among those visited.
    low = -_highest(task, nets, batch, -clean, wanted=measure.wanted(+1), reach=reach, sign=-1)
    high = _highest(task, nets, batch, clean, wanted=measure.wanted(-1), reach=reach, sign=+1)
    return Usefulness(raw, standard, *measure.answers(low, high), weight, deviation == 0)


class _Measure:
    """The expectations of the module's docstring, for features known to lie between two bounds."""

    def __init__(
        self, weight: Tensor, target: Tensor, share: Tensor, *, mean: Tensor, deviation: Tensor, clean: Tensor
    ) -> None:
        self.weight, self.target, self.share = weight, target, share
        self.mean, self.deviation = mean[:, None], deviation.clamp(min=torch.finfo(deviation.dtype).tiny)[:, None]
        self.alive = (deviation > 0)[:, None]
        signed = ((clean - self.mean) / self.deviation) @ (target * share).T
        self.sign = torch.where(signed < 0, -1.0, 1.0).to(clean.dtype)  # a feature that speaks against may be turned

    def answers(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        """Raw and standard, (features, questions): the least expectation with each feature in [low, high]."""
        raw, standard = [], []
        for weight, sign, target, share in zip(self.weight.T, self.sign.T, self.target, self.share):
            weight, sign = weight[:, None], sign[:, None]
            worst = torch.where(weight * target > 0, low, high)
            raw.append((torch.tanh(weight * worst / 2) * target * share).sum(1))  # 2 s(z) - 1 = tanh(z / 2)
            worst = torch.where(sign * target > 0, low, high)
            standard.append((sign * (worst - self.mean) / self.deviation * target * share).sum(1))
        zero = torch.zeros((), dtype=low.dtype, device=low.device)
        return torch.where(self.alive, torch.stack(raw, 1), zero), torch.where(
            self.alive, torch.stack(standard, 1), zero
        )

    def wanted(self, sign: int) -> Tensor:
        """(features, samples): whether an answer needs the lowest (+1) or the highest (-1) value of a feature."""
        needed = torch.zeros_like(self.alive.expand(-1, self.target.shape[1]))
        for weight, turned, target in zip(self.weight.T, self.sign.T, self.target):
            needed = needed | (weight[:, None] * target * sign > 0) | (turned[:, None] * target * sign > 0)
        return needed & self.alive


def _head(featured: Featured, modules: Mapping[str, nn.Module]) -> Tensor:
    """(features, outputs)."""
    network, parameter = featured.head()
    return modules[network].get_parameter(parameter).detach().T


def _moments(task: Task[Any], featured: Featured, nets: NetworkSet, *, like: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and deviation of each feature over the training set; exactly zero deviation where it is constant."""
    data = task.data("train")
    parts = []
    with torch.no_grad():
        for index in batches(data, _PER_BATCH):
            parts.append(featured.features(nets, task.inputs(convert(data.take(index), like.device, like.dtype))))
    values = torch.cat(parts).double()
    constant = values.amax(0) == values.amin(0)
    deviation, mean = torch.std_mean(values, 0, correction=0)
    return mean.to(like.dtype), torch.where(constant, 0.0, deviation).to(like.dtype)


def _samples(task: Task[Any], classifier: Classifier, split: str, limit: int | None, *, like: Tensor) -> Any:
    """All samples, or about as many of each class as a limit allows."""
    data = task.data(split)
    count = len(data) if limit is None else min(limit, len(data))
    if count < 1:
        raise UserError(f"{count} samples of {split}", "at least one")
    pool = torch.arange(min(len(data), 20 * count))
    order = shuffled(torch.tensor(name_key("usefulness") >> 8), pool, len(data))
    labels = classifier.labels(data.take(order))
    by_class = labels.argsort(stable=True)
    first = torch.searchsorted(labels[by_class].contiguous(), labels[by_class].contiguous())
    turn = torch.empty_like(by_class)
    turn[by_class] = torch.arange(len(labels)) - first  # how many of its class come before a sample
    chosen = order[turn.argsort(stable=True)[:count]]
    return convert(data.take(chosen), like.device, like.dtype)


def _questions(head: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Weights (features, questions), targets and shares (questions, samples); a question's shares add up to one."""
    outputs = head.shape[1]
    if outputs <= 2:
        weight = head if outputs == 1 else head[:, 1:] - head[:, :1]  # a softmax of two is a sigmoid of the difference
        target = torch.where(labels > 0, 1.0, -1.0).to(head.dtype)[None]
        return weight, target, torch.full_like(target, 1 / len(labels))
    target = torch.where(labels == torch.arange(outputs, device=labels.device)[:, None], 1.0, -1.0).to(head.dtype)
    sizes = torch.where(target > 0, (target > 0).sum(1, keepdim=True), (target < 0).sum(1, keepdim=True))
    if int((target > 0).sum(1).min()) == 0:
        raise UserError(f"{len(labels)} samples without one of the {outputs} classes", "some of each", "take more")
    return head, target, 0.5 / sizes.to(head.dtype)


def _highest(
    task: Task[Any], nets: NetworkSet, batch: Any, start: Tensor, *, wanted: Tensor, reach: Reach, sign: int
) -> Tensor:
    """(features, samples): the highest `sign` times feature met on the way, for the wanted pairs; else `start`."""
    attackable = ability(task, Attackable, "robust usefulness")  # type: ignore[type-abstract]
    featured = ability(task, Featured, "usefulness")  # type: ignore[type-abstract]
    best, together = start.clone(), _PER_SEARCH.get(start.device.type, 256)
    lowest, highest = (bound.to(start.device, start.dtype) for bound in attackable.bounds)
    for number, pairs in enumerate(wanted.nonzero().split(together)):
        feature, sample = pairs.unbind(1)
        moved = pytree.tree_map(lambda leaf, rows=sample: leaf.index_select(0, rows), batch)
        middle = perturbable_input(attackable, moved)
        low, high = (middle - reach.budget).clamp(min=lowest), (middle + reach.budget).clamp(max=highest)
        noise = Stream(torch.tensor(reach.seed), torch.tensor(number), start.dtype)
        for turn in range(reach.starts):
            point = middle
            if turn:
                lot = noise.uniform(f"start/{turn}", tuple(middle.shape)).to(middle.device)
                point = low + (high - low) * lot
            for left in range(reach.steps, -1, -1):
                point = point.detach().requires_grad_(left > 0)
                with torch.set_grad_enabled(left > 0):
                    values = featured.features(nets, task.inputs(attackable.replace(moved, point)))
                    own = sign * values.gather(1, feature[:, None])[:, 0]
                best[feature, sample] = torch.maximum(best[feature, sample], own.detach())
                if left:
                    (gradient,) = torch.autograd.grad(own.sum(), point)
                    point = torch.clamp(point + reach.step * gradient.sign(), low, high)
    return best
