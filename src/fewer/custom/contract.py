"""The contract suite: what `fewer check` runs on anybody's task class, and the tests on ours.

Each check is a function of a task that raises when the contract is broken; the sentence it raises is the report.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from fewer.core.abilities import Attackable, Classifier, perturbable_input
from fewer.core.data import convert, place_constants_, size
from fewer.core.engines.base import Training
from fewer.core.engines.cohort import Cohort
from fewer.core.engines.evaluate import evaluate, evaluate_cohort, predictor
from fewer.core.engines.nets import NetworkSet, frozen
from fewer.core.engines.optimizer import Optimizer
from fewer.core.engines.plain import Plain, draws_itself
from fewer.core.engines.state import fresh_modules, refuse_shared
from fewer.core.errors import UserError
from fewer.core.mask import prunable
from fewer.core.seed import Stream
from fewer.core.task import Task
from fewer.pruning import reach
from fewer.pruning.criteria import CRITERIA
from fewer.pruning.criteria.magnitude import magnitude
from fewer.pruning.follow import followed
from fewer.pruning.keep import keep
from fewer.pruning.pruning import Pruning, mask_for
from fewer.sparse.engine import sparse_engine

__all__ = ["CHECKS", "Outcome", "check"]

_STEPS = 5


@dataclass(frozen=True)
class Outcome:
    """`fault` is None where the check passed or does not apply; then `skipped` says why not, `note` what it found.

    A fault with a `cost` blocks no training: it says what alone is lost. `remedy` says what to do about it.
    """

    name: str
    fault: str | None
    skipped: str | None = None
    note: str | None = None
    cost: str | None = None
    remedy: str | None = None

    @property
    def blocks(self) -> bool:
        """Whether nothing can be trained before this is mended."""
        return self.fault is not None and self.cost is None


class _Skipped(Exception):
    """A check that does not apply to this task; what is said is the reason."""


def _require(condition: bool, sentence: str) -> None:
    if not condition:
        raise UserError(sentence, "the contract of fewer.core.task")


def _batch(task: Task[Any], count: int = 8, dtype: torch.dtype = torch.float64) -> Any:
    data = task.data("train")
    place_constants_(task, torch.device("cpu"), dtype)
    return convert(data.take(torch.arange(min(count, len(data)))), torch.device("cpu"), dtype)


def _noise(dtype: torch.dtype = torch.float64) -> Stream:
    return Stream(torch.tensor(0), torch.tensor(0), dtype)


def _training(task: Task[Any]) -> Training:
    batch = min(16, len(task.data("train")))
    options = {**task.recommended, "steps": _STEPS, "batch": batch, "precision": "float64", "device": "cpu"}
    return Training(**options)


def networks_are_a_function_of_the_seed(task: Task[Any]) -> str | None:
    first, again, other = (fresh_modules(task, seed) for seed in (1, 1, 2))
    _require(bool(first), "networks() gives none")
    _require(_same(first, again), "networks() differs under the same seed: draw from torch's global generator alone")
    return "the same under every seed, as pretrained ones are: seeds differ in the order of samples" * _same(
        first, other
    )


def _same(a: Any, b: Any) -> bool:
    return all(torch.equal(p, q) for name in a for p, q in zip(a[name].parameters(), b[name].parameters(), strict=True))


def networks_share_no_parameters(task: Task[Any]) -> None:
    refuse_shared(task.networks())


def names_agree(task: Task[Any]) -> None:
    names = set(task.networks())
    trained = {name for objective in task.objectives() for name in objective.trains}
    _require(bool(task.objectives()), "objectives() gives none")
    _require(trained <= names, f"objectives train {sorted(trained - names)}, which networks() does not give")
    for name, target in task.copies().items():
        _require(target.of in names, f"copies()[{name!r}] is of {target.of!r}, which networks() does not give")
        _require(name not in names, f"{name!r} is both a network and a copy")
    for follower, leader in task.same_mask().items():
        _require({follower, leader} <= names, f"same_mask() names {follower!r}, {leader!r}; networks are {names}")


def batches_hold_tensors_with_samples_on_axis_0(task: Task[Any]) -> None:
    data = task.data("train")
    for count in (1, 3):
        leaves = pytree.tree_leaves(data.take(torch.arange(count)))
        _require(bool(leaves), "take() gives a batch without tensors")
        for leaf in leaves:
            _require(torch.is_tensor(leaf), f"a batch leaf is {type(leaf).__name__}, not a tensor")
            _require(len(leaf) == count, f"take() of {count} samples gives a leaf of {tuple(leaf.shape)}")
            _require(not leaf.is_floating_point() or bool(torch.isfinite(leaf).all()), "the data has NaN or infinity")


def losses_are_finite_scalars_that_reach_their_networks(task: Task[Any]) -> None:
    modules = {name: module.double() for name, module in fresh_modules(task, 0).items()}
    for index, objective in enumerate(task.objectives()):
        loss = objective.loss(NetworkSet(modules), _batch(task), _noise())
        value = float(loss.detach().sum())
        _require(loss.ndim == 0, f"objective {index} gives a loss of shape {tuple(loss.shape)}, not a scalar")
        _require(math.isfinite(value), f"objective {index} gives a loss of {value}")
        for name in objective.trains:
            found = torch.autograd.grad(
                loss, list(modules[name].parameters()), retain_graph=True, materialize_grads=True
            )
            _require(any(bool(g.any()) for g in found), f"objective {index} trains {name!r} but has no gradient there")


def losses_are_pure(task: Task[Any]) -> None:
    modules = {name: module.double() for name, module in fresh_modules(task, 0).items()}
    for index, objective in enumerate(task.objectives()):
        values = [
            float(objective.loss(frozen(NetworkSet(modules), training=True), _batch(task), _noise()).detach())
            for _ in range(2)
        ]
        _require(
            values[0] == values[1] or any(map(draws_itself, modules.values())),
            f"objective {index} gives {values[0]} and then {values[1]} on the same batch: draw from noise alone",
        )


def a_cohort_trains_each_replica_as_if_alone(task: Task[Any]) -> None:
    if not task.data("train").in_memory:
        raise _Skipped("its data is not in memory, and one order is shared by the whole cohort")
    training = _training(task)
    cohort = Cohort(task, training, [0, 1])
    if why := cohort.refusal():
        raise UserError(f"the losses do not run under vmap ({why})", "losses that it knows")
    cohort.advance(_STEPS)
    plain = Plain(task, training, 1)
    plain.advance(_STEPS)
    for name, network in plain.state.networks.items():
        difference = (network.weights[0] - cohort.state.networks[name].weights[1]).abs().max()
        _require(float(difference) < 1e-7, f"{name} ends {float(difference):.1e} away from where it ends alone")


def every_criterion_prunes_what_can_be_pruned(task: Task[Any]) -> str:
    modules = fresh_modules(task, 0)
    samples = min(8, len(task.data("train")))
    refused: dict[str, str] = {}
    for method in CRITERIA:
        try:
            mask = mask_for(task, modules, Pruning(method, 0.5, "layer", samples=samples, iterations=2), seed=0)
        except UserError as error:
            refused[method] = str(error)
            continue
        for name, by_parameter in mask.items():
            weights = sum(modules[name].get_parameter(key).numel() for key in prunable(modules[name]))
            kept = sum(int(m.sum()) for m in by_parameter.values())
            _require(kept == round(0.5 * weights), f"{method} keeps {kept} of {weights} in {name!r}")
    if len(refused) == len(CRITERIA):
        raise UserError(f"no criterion prunes it: {next(iter(refused.values()))}", "one that does")
    found = reach.count(task, modules, {})
    told = f"{found.prunable:,} of {found.weights:,} weights ({100 * found.prunable / max(found.weights, 1):.3g} %)"
    return told + "".join(f"; not {method}: {why}" for method, why in refused.items())


def masked_weights_stay_zero(task: Task[Any]) -> None:
    training = dataclasses.replace(_training(task), optimizer=Optimizer("adamw", weight_decay=0.1))
    plain = Plain(task, training, 0)
    count = min(8, len(task.data("train")))
    plain.state.mask_(
        0, mask_for(task, plain.state.modules_of(0), Pruning("magnitude", 0.5, "layer", samples=count), seed=0)
    )
    plain.advance(_STEPS)
    for name, network in plain.state.networks.items():
        if network.mask is not None:
            _require(not bool(network.weights[network.mask == 0].any()), f"pruned weights of {name!r} came back")


def kept_weights_alone_train_as_masked_ones(task: Task[Any]) -> None:
    masked, alone = Plain(task, _training(task), 0), Plain(task, _training(task), 0)
    # at this sparsity every linear layer and convolution is converted, small or large
    mask = followed(task, keep(magnitude(task, masked.state.modules_of(0), [], _noise()), 0.8, "layer"))
    for engine in (masked, alone):
        engine.state.mask_(0, mask)
    sparse = sparse_engine(alone)
    masked.advance(_STEPS)
    sparse.advance(_STEPS)
    found = sparse.state.weights_of(0)
    for name, weights in masked.state.weights_of(0).items():
        for key, tensor in weights.items():
            difference = float((tensor.double() - found[name][key].double()).abs().max()) if tensor.numel() else 0.0
            _require(difference < 1e-7, f"{name}.{key} ends {difference:.1e} away from where it ends with a mask")


def predictions_have_samples_on_axis_0_and_need_no_labels(task: Task[Any]) -> None:
    batch = _batch(task, dtype=torch.float32)
    answer = predictor(task, fresh_modules(task, 0))(batch)
    _require(len(answer) == size(batch), f"{size(batch)} samples give predictions of shape {tuple(answer.shape)}")
    _require(bool(torch.isfinite(answer).all()), "a prediction is not finite")


def evaluation_returns_finite_metrics(task: Task[Any]) -> None:
    metrics = evaluate(task, predictor(task, fresh_modules(task, 0)))
    _require(bool(metrics), "evaluate() returns no metric")
    for name, value in metrics.items():
        _require(isinstance(value, float | int) and math.isfinite(value), f"figure {name!r} is {value!r}")


def a_cohort_evaluates_each_replica_as_if_alone(task: Task[Any]) -> None:
    training = _training(task)
    together = evaluate_cohort(task, Cohort(task, training, [0, 1]).state)[1]
    alone = evaluate(task, predictor(task, Plain(task, training, 1).state.modules_of(0), seed=1))
    for name, value in alone.items():
        close = abs(together[name] - value) <= 1e-6 + 1e-6 * abs(value)
        _require(close, f"figure {name!r} is {together[name]} in a cohort and {value} alone")


def an_attack_can_replace_the_perturbable_input(task: Task[Any]) -> None:
    if not isinstance(task, Attackable):
        raise _Skipped("it does not say what an adversary may change (fewer.core.abilities.Attackable)")
    batch = _batch(task)
    try:
        perturbable_input(task, batch)
    except UserError as error:
        raise _Skipped(f"{error.given}, cannot be attacked along gradients") from None
    modules = {name: module.double() for name, module in fresh_modules(task, 0).items()}
    perturbable = task.perturbable(batch)
    low, high = (bound.to(perturbable) for bound in task.bounds)
    _require(
        bool(((perturbable >= low) & (perturbable <= high)).all()), "the perturbable lies outside the task's own bounds"
    )
    moved = task.perturbable(task.replace(batch, perturbable * 0.5 + 0.25 * (low + high)))
    # a perturbable in units of its own comes back with a rounding
    put_in = torch.allclose(moved, perturbable * 0.5 + 0.25 * (low + high), rtol=1e-9, atol=1e-9)
    _require(put_in, "replace() does not put the perturbable in")
    shape = task.attack_loss(frozen(NetworkSet(modules)), batch, _noise()).shape
    _require(shape == (size(batch),), f"attack_loss has shape {tuple(shape)}, not one number a sample")


def a_classifier_gives_logits_and_labels(task: Task[Any]) -> None:
    if not isinstance(task, Classifier):
        raise _Skipped("it does not choose among classes (fewer.core.abilities.Classifier)")
    batch, modules = _batch(task), {name: module.double() for name, module in fresh_modules(task, 0).items()}
    logits, labels = task.logits(frozen(NetworkSet(modules)), task.inputs(batch), _noise()), task.labels(batch)
    _require(logits.ndim == 2 and labels.shape == logits.shape[:1], f"logits {logits.shape}, labels {labels.shape}")


CHECKS: tuple[Callable[[Task[Any]], str | None], ...] = (
    networks_are_a_function_of_the_seed,
    networks_share_no_parameters,
    names_agree,
    batches_hold_tensors_with_samples_on_axis_0,
    losses_are_finite_scalars_that_reach_their_networks,
    losses_are_pure,
    a_cohort_trains_each_replica_as_if_alone,
    every_criterion_prunes_what_can_be_pruned,
    masked_weights_stay_zero,
    kept_weights_alone_train_as_masked_ones,
    predictions_have_samples_on_axis_0_and_need_no_labels,
    evaluation_returns_finite_metrics,
    a_cohort_evaluates_each_replica_as_if_alone,
    an_attack_can_replace_the_perturbable_input,
    a_classifier_gives_logits_and_labels,
)


# what alone a fault costs where training goes on without, and what to do about it
_LOCKSTEP = "write losses without .item(), `if` on a tensor, boolean indexing or dropout inside attention and RNNs"
COSTS: dict[Callable[[Task[Any]], str | None], tuple[str, str]] = {
    losses_are_pure: ("a killed run does not repeat its bits", "draw from the `noise` argument alone"),
    a_cohort_trains_each_replica_as_if_alone: ("several seeds train one by one", _LOCKSTEP),
    a_cohort_evaluates_each_replica_as_if_alone: ("several seeds train one by one", _LOCKSTEP),
    every_criterion_prunes_what_can_be_pruned: ("it is not pruned", "have a matrix that a loss depends on"),
    kept_weights_alone_train_as_masked_ones: ("kept weights alone are not trained", "train with --engine plain"),
    an_attack_can_replace_the_perturbable_input: ("it is neither attacked nor hardened", "see fewer.Attackable"),
    a_classifier_gives_logits_and_labels: ("it is not audited", "see fewer.Classifier"),
}


def check(task: Task[Any]) -> list[Outcome]:
    """Every check's outcome; an error inside the task's own code is its fault too."""
    outcomes = []
    for function in CHECKS:
        fault, skipped, note = None, None, None
        try:
            note = function(task)
        except _Skipped as reason:
            skipped = str(reason)
        except UserError as error:
            fault = str(error)
        except Exception as error:
            fault = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        cost, remedy = COSTS.get(function, (None, "fewer.Task is the contract")) if fault else (None, None)
        outcomes.append(Outcome(function.__name__.replace("_", " "), fault, skipped, note or None, cost, remedy))
    return outcomes
