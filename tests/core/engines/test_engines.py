"""Each replica of a cohort ends where it ends alone; masks hold whatever the optimiser does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fewer.attack.hardening.harden import harden
from fewer.core.data import TensorData
from fewer.core.engines.base import Engine, Training
from fewer.core.engines.cohort import Cohort
from fewer.core.engines.optimizer import Optimizer
from fewer.core.engines.plain import Plain
from fewer.core.errors import UserError
from fewer.core.task import Copy, Task
from fewer.pruning.pruning import Pruning, prune_
from fewer.sparse.engine import sparse_engine
from tests.toys import Blobs, Control, Fit, Graph, Pairs, Patches

SEEDS = (3, 8)
Make = Callable[[], Task[Any]]


def training(steps: int = 100, **options: Any) -> Training:
    return replace(Training(steps=steps, batch=10, precision="float64", optimizer=Optimizer("adam", 3e-3)), **options)


def furthest(cohort: Engine, row: int, alone: Engine) -> float:
    distances = [
        (cohort.state.networks[name].weights[row] - network.weights[0]).abs().max()
        for name, network in alone.state.networks.items()
    ]
    distances += [
        (cohort.state.networks[name].buffers[key][row] - buffer[0]).abs().max()
        for name, network in alone.state.networks.items()
        for key, buffer in network.buffers.items()
    ]
    return float(torch.stack([distance.double() for distance in distances]).max())


def gap(make: Make, chosen: Training, sparsities: tuple[float | None, ...] = (None, None)) -> float:
    """The largest distance of any weight or buffer of any replica, after all steps."""
    cohort = Cohort(make(), chosen, SEEDS)
    for row, sparsity in enumerate(sparsities):
        if sparsity is not None:
            prune_(cohort, Pruning("magnitude", sparsity, samples=10), row)
    cohort.advance(chosen.steps)
    found = 0.0
    for row, seed in enumerate(SEEDS):
        alone = Plain(make(), chosen, seed)
        if sparsities[row] is not None:
            prune_(alone, Pruning("magnitude", sparsities[row], samples=10))  # type: ignore[arg-type]
        alone.advance(chosen.steps)
        assert not any(torch.equal(n.weights, n.weights * 0) for n in alone.state.networks.values())
        found = max(found, furthest(cohort, row, alone))
    return found


@pytest.mark.parametrize("make", [Fit, Blobs, Patches, Control, Graph], ids=lambda make: make.__name__)
def test_a_replica_ends_after_100_steps_where_it_ends_alone(make: Make) -> None:
    assert gap(make, training()) < 1e-7


class SlowTarget(Control):
    def copies(self) -> dict[str, Copy]:
        return {"critic_target": Copy("critic", 0.1), "critic2_target": Copy("critic2", 0.2, every=3)}


def pruned_sparse(task: Task[Any], chosen: Training) -> Engine:
    plain = Plain(task, chosen)
    prune_(plain, Pruning("magnitude", 0.5, samples=10))
    return sparse_engine(plain)


@pytest.mark.parametrize(
    "made",
    [Plain, lambda task, chosen: Cohort(task, chosen, SEEDS), pruned_sparse],
    ids=["plain", "cohort", "sparse"],
)
def test_a_target_moves_towards_its_source_only_in_the_steps_that_its_copy_names(
    made: Callable[[Task[Any], Training], Engine],
) -> None:
    task = SlowTarget()
    engine = made(task, training(13))
    for step in range(13):
        before = {name: engine.state.networks[name].weights.clone() for name in task.copies()}
        engine.advance(1)
        for name, target in task.copies().items():
            now, source = engine.state.networks[name].weights, engine.state.networks[target.of].weights
            assert not torch.equal(source, before[name])
            tau = target.tau if step % target.every == 0 else 0.0
            assert torch.equal(now, before[name].lerp(source, tau)), (step, name)


@pytest.mark.parametrize("make", [Fit, Patches, Control], ids=lambda make: make.__name__)
def test_a_cohort_of_one_ends_where_the_plain_engine_does(make: Make) -> None:
    cohort, alone = Cohort(make(), training(20), (8,)), Plain(make(), training(20), 8)
    cohort.advance(20)
    alone.advance(20)
    assert furthest(cohort, 0, alone) < 1e-9


@pytest.mark.parametrize(("make", "sparsities"), [(Patches, (None, 0.6)), (Control, (0.3, 0.6))])
def test_replicas_with_masks_of_their_own_end_where_they_end_alone(make: Make, sparsities: tuple[Any, ...]) -> None:
    assert gap(make, training(), sparsities) < 1e-7


@pytest.mark.parametrize(
    "settings",
    [
        Optimizer("sgd", 1e-2, weight_decay=0.01, clip=0.1),
        Optimizer("adabelief", 1e-3, warmup=10),
        Optimizer("adamw", 1e-3, weight_decay=0.1, decay_from=0.5, clip=1.0),
    ],
    ids=lambda settings: settings.kind,
)
def test_every_optimiser_with_clipping_and_schedules_agrees_too(settings: Optimizer) -> None:
    assert gap(Patches, training(40, optimizer=settings)) < 1e-7


@pytest.mark.parametrize("recipe", ["fgsm:0.1", "pgd:0.1,steps=3", "pgd:0.1,steps=3,norm=2"])
@pytest.mark.parametrize("make", [Fit, Blobs, Graph], ids=lambda make: make.__name__)
def test_hardened_replicas_end_where_they_end_alone(make: Make, recipe: str) -> None:
    assert gap(lambda: harden(make(), recipe, total=25), training(25)) < 1e-7


def test_float32_gradients_of_one_step_agree_to_rounding() -> None:
    chosen = training(1, precision="float32")
    cohort = Cohort(Patches(), chosen, SEEDS)
    losses, together = cohort.gradients(cohort.objectives[0], cohort._sample())
    for row, seed in enumerate(SEEDS):
        alone = Plain(Patches(), chosen, seed)
        loss, gradient = alone.gradients(alone.objectives[0], alone._sample())
        assert torch.allclose(losses[row], loss[0], rtol=1e-5)
        assert torch.allclose(together["net"][row], gradient["net"][0], rtol=1e-4, atol=1e-6)


def test_who_else_is_in_the_cohort_does_not_matter() -> None:
    small, large = (Cohort(Control(), training(30), seeds) for seeds in ((3, 0), (9, 3, 4, 0)))
    small.advance(30), large.advance(30)
    for name, network in small.state.networks.items():
        assert (network.weights[1] - large.state.networks[name].weights[3]).abs().max() < 1e-12


@pytest.mark.parametrize("clip", [0.0, 1.0])
def test_a_replica_that_turns_nan_stays_alone(clip: float) -> None:
    chosen = training(20, optimizer=Optimizer("adam", 1e-3, clip=clip))
    sick, well = (Cohort(Patches(), chosen, SEEDS) for _ in range(2))
    sick.state.networks["net"].weights[1, 5] = torch.nan
    sick.advance(20), well.advance(20)
    weights = sick.state.networks["net"].weights
    assert bool(weights[1].isnan().any())
    assert torch.equal(weights[0], well.state.networks["net"].weights[0])


def test_objectives_take_their_turns_and_losses_are_means_over_them() -> None:
    plain = Plain(Control(slow=3), training(7))
    plain.advance(4)
    losses = plain.mean_losses()
    before = plain.state.networks["actor"].weights.clone()
    plain.advance(2)  # steps 4 and 5: none is the actor's
    assert torch.equal(plain.state.networks["actor"].weights, before)
    assert bool(losses.isfinite().all()) and bool(plain.mean_losses()[1].isnan())
    plain.advance(1)
    assert not torch.equal(plain.state.networks["actor"].weights, before)


def test_the_step_of_an_engine_is_the_step_of_torch_written_out() -> None:
    """Ten steps of clipped SGD by hand, with torch's own autograd, clipping and optimiser."""
    chosen = training(10, optimizer=Optimizer("sgd", 0.05, clip=0.02))
    plain = Plain(Fit(), chosen, 4)
    module = plain.state.modules_of(0)["net"]
    theirs = torch.optim.SGD(module.parameters(), 0.05, momentum=0.9)
    for _ in range(10):
        batch = plain._sample()
        x, y = batch.x[0], batch.y[0]
        theirs.zero_grad()
        (module(x) - y).square().sum(1).mean().backward()
        torch.nn.utils.clip_grad_norm_(list(module.parameters()), 0.02)
        theirs.step()
        plain.advance(1)
    expected = torch.cat([p.detach().reshape(-1) for p in module.parameters()])
    assert (plain.state.networks["net"].weights[0] - expected).abs().max() < 1e-12


def test_targets_follow_their_sources_by_the_stated_share() -> None:
    plain = Plain(Control(), training(2))
    target, source = plain.state.networks["critic_target"], plain.state.networks["critic"]
    before = target.weights.clone()
    plain.advance(1)
    assert torch.allclose(target.weights, before + 0.1 * (source.weights - before), atol=1e-15)


OPTIMISERS = [
    Optimizer("sgd", 0.05, weight_decay=0.1), Optimizer("adam", 0.01, weight_decay=0.1),
    Optimizer("adamw", 0.01, weight_decay=0.1), Optimizer("adabelief", 0.01, weight_decay=0.1),
]  # fmt: skip


@pytest.mark.parametrize("settings", OPTIMISERS, ids=lambda settings: settings.kind)
@pytest.mark.parametrize("engine", ["plain", "cohort"])
def test_masked_weights_are_exactly_zero_after_training_and_re_masking(settings: Optimizer, engine: str) -> None:
    chosen = training(12, optimizer=settings)
    built: Engine = Plain(Patches(), chosen) if engine == "plain" else Cohort(Patches(), chosen, (0, 1))
    built.advance(4)  # momentum that would carry a weight on
    for sparsity in (0.3, 0.5, 0.6):
        prune_(built, Pruning("magnitude", sparsity, samples=10))
        built.advance(2)
        weights, mask = built.state.networks["net"].weights[0], built.state.mask_of(0)["net"]
        named = built.state.weights_of(0)["net"]
        assert all(not bool(named[key][~kept].any()) for key, kept in mask.items())
        assert sum(int((~kept).sum()) for kept in mask.values()) >= int(sparsity * 300)
        assert bool(weights.any())


def test_masks_reach_target_copies_and_partners_and_stay() -> None:
    plain = Plain(Control(), training(20))
    plain.advance(3)
    prune_(plain, Pruning("snip", 0.6, samples=20))
    plain.advance(10)
    mask, weights = plain.state.mask_of(0), plain.state.weights_of(0)
    assert set(mask) == {"actor", "critic", "critic2", "critic_target", "critic2_target"}
    for name in ("critic2", "critic_target", "critic2_target"):
        assert all(torch.equal(mask[name][key], kept) for key, kept in mask["critic"].items())
    for name, by_parameter in mask.items():
        for key, kept in by_parameter.items():
            assert not bool(weights[name][key][~kept].any()), (name, key)


class Strided:
    """Data of a user's own making, in memory, whose leaves are not contiguous."""

    in_memory = True

    def __init__(self, samples: Pairs) -> None:
        self.samples = samples

    def __len__(self) -> int:
        return len(self.samples.x)

    def take(self, index: Tensor) -> Pairs:
        return Pairs(self.samples.x[index].t().contiguous().t(), self.samples.y[index])


class OwnData(Fit):
    def data(self, split: str) -> Any:
        return Strided(self.samples.samples)


def test_data_of_ones_own_class_trains_like_tensors() -> None:
    own, ours = Cohort(OwnData(), training(5), SEEDS), Cohort(Fit(), training(5), SEEDS)
    own.advance(5), ours.advance(5)
    assert torch.equal(own.state.networks["net"].weights, ours.state.networks["net"].weights)


class NoData(Fit):
    def data(self, split: str) -> Any:
        return TensorData(Pairs(torch.zeros(0, 4), torch.zeros(0, 1)))


def test_an_empty_training_split_is_refused() -> None:
    with pytest.raises(UserError, match="without samples"):
        Plain(NoData(), training(1))


@pytest.mark.parametrize(
    "options",
    [{"steps": -1}, {"batch": 0}, {"precision": "float16"}, {"device": "gpu"}, {"device": "cuda:99"}],
)
def test_trainings_that_cannot_run_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="expected"):
        training(**options)


def test_leaves_of_different_lengths_are_refused() -> None:
    with pytest.raises(UserError, match="samples"):
        TensorData(Pairs(torch.zeros(3, 1), torch.zeros(2, 1)))


def test_networks_that_share_a_parameter_are_refused_before_it_comes_apart() -> None:
    class Shared(Control):
        def networks(self) -> dict[str, nn.Module]:
            networks = super().networks()
            networks["critic2"].l1.weight = networks["critic"].l1.weight  # type: ignore[union-attr]
            return networks

    with pytest.raises(UserError, match=r"critic2\.l1\.weight, which is also critic\.l1\.weight"):
        Plain(Shared(), training())
