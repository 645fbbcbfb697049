"""FGSM and PGD: the formulas, the ball, other libraries, and stacked replicas."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import foolbox
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some

from fewer.attack.attacks.fgsm import fgsm
from fewer.attack.attacks.pgd import default_step, pgd
from fewer.attack.ball import lengths
from fewer.core.engines.nets import NetworkSet
from fewer.core.errors import UserError
from fewer.core.seed import Stream
from fewer.core.task import Task
from fewer.systems.vision.task.task import Vision

from .examples import Pairs, Regression, stream

KINDS = ("mlp", "cnn")


@pytest.fixture
def model(request: pytest.FixtureRequest) -> tuple[Vision, NetworkSet]:
    return request.getfixturevalue(request.param), request.getfixturevalue(f"fragile_{request.param}")


def theirs(nets: NetworkSet, attack: Any, batch: Any, budget: float) -> torch.Tensor:
    wrapped = foolbox.PyTorchModel(nets.modules["net"].eval(), bounds=(0, 1), device="cpu")
    images: torch.Tensor = attack.run(wrapped, batch.pixels, foolbox.Misclassification(batch.label), epsilon=budget)
    return images


@pytest.mark.parametrize("model", KINDS, indirect=True)
def test_fgsm_equals_foolbox_to_the_bit(model: Any, images: Callable[[int], Any]) -> None:
    task, nets = model
    ours = fgsm(task, 0.3)(nets, images(128), stream()).pixels
    assert torch.equal(ours, theirs(nets, foolbox.attacks.LinfFastGradientAttack(), images(128), 0.3))


@pytest.mark.parametrize("model", KINDS, indirect=True)
def test_pgd_equals_foolbox(model: Any, images: Callable[[int], Any]) -> None:
    task, nets = model
    ours = pgd(task, 0.3, steps=20, step=0.02, start="centre")(nets, images(128), stream()).pixels
    other = foolbox.attacks.LinfProjectedGradientDescentAttack(abs_stepsize=0.02, steps=20, random_start=False)
    assert (ours - theirs(nets, other, images(128), 0.3)).abs().max() < 1e-6


@pytest.mark.parametrize("model", KINDS, indirect=True)
def test_l2_pgd_equals_foolbox(model: Any, images: Callable[[int], Any]) -> None:
    task, nets = model
    ours = pgd(task, 2.0, steps=20, step=0.2, norm=2, start="centre")(nets, images(128), stream()).pixels
    other = foolbox.attacks.L2ProjectedGradientDescentAttack(abs_stepsize=0.2, steps=20, random_start=False)
    assert (ours - theirs(nets, other, images(128), 2.0)).abs().max() < 1e-6


def linear() -> tuple[Regression, NetworkSet]:
    """attack_loss = (w.x)^2 summed over two outputs, with known weights."""
    task = Regression()
    module = torch.nn.Linear(5, 2, bias=False).double()
    module.weight.data = torch.tensor([[1.0, -2.0, 0.0, 3.0, -1.0], [0.0] * 5], dtype=torch.float64)
    return task, NetworkSet({"net": module}, training=False)


def test_fgsm_by_hand_moves_each_number_by_the_sign_of_its_slope() -> None:
    task, nets = linear()
    known = torch.full((1, 5), 0.5, dtype=torch.float64)
    batch = Pairs(known, torch.zeros(1, 2, dtype=torch.float64))
    # w.x = 0.5 > 0, so the gradient has the signs of w; a zero gradient moves nothing
    moved = fgsm(task, 0.25)(nets, batch, stream()).known
    assert torch.equal(moved, torch.tensor([[0.75, 0.25, 0.5, 0.75, 0.25]], dtype=torch.float64))


def test_bounds_of_each_number_clip_the_attack() -> None:
    task, nets = linear()
    batch = Pairs(torch.full((1, 5), 0.5, dtype=torch.float64), torch.zeros(1, 2, dtype=torch.float64))
    moved = fgsm(task, 9.0)(nets, batch, stream()).known
    assert torch.equal(moved, torch.tensor([[1.0, 0.0, 0.5, 1.0, 0.0]], dtype=torch.float64))


@settings(max_examples=30, deadline=None)
@given(
    budget=some.floats(0, 3),
    norm=some.sampled_from([2.0, math.inf]),
    start=some.sampled_from(["uniform", "near", "centre"]),
    seed=some.integers(0, 99),
)
def test_pgd_stays_in_its_ball_and_in_the_bounds(budget: float, norm: float, start: str, seed: int) -> None:
    task, nets = linear()
    batch = task.samples.samples
    attacked = pgd(task, budget, steps=3, restarts=2, norm=norm, start=start)(nets, batch, stream(seed)).known
    low, high = task.bounds
    assert (attacked >= low).all() and (attacked <= high).all()
    assert lengths(attacked - batch.known, norm).max() <= budget + 1e-9


def test_more_restarts_never_harm_less() -> None:
    task = Regression()
    torch.manual_seed(3)
    nets = NetworkSet({name: module.double() for name, module in task.networks().items()}, training=False)
    batch, noise = task.samples.samples, stream(1)
    harms = [
        task.attack_loss(nets, pgd(task, 0.4, steps=3, restarts=count)(nets, batch, noise), noise).detach()
        for count in (2, 4, 8)
    ]
    assert (harms[1] >= harms[0]).all() and (harms[2] >= harms[1]).all()
    assert (harms[2] > harms[0]).any()


@pytest.mark.parametrize("norm", [2.0, math.inf])
@pytest.mark.parametrize("restarts", [1, 3])
def test_stacked_replicas_are_attacked_like_single_ones(norm: float, restarts: int) -> None:
    task = Regression()
    sets = []
    for seed in range(4):
        torch.manual_seed(seed)
        sets.append({name: module.double() for name, module in task.networks().items()})
    batch, attack = task.samples.samples, pgd(task, 0.3, steps=5, restarts=restarts, norm=norm)
    alone = []
    for seed, modules in enumerate(sets):
        alone.append(attack(NetworkSet(modules), batch, stream(seed, 7, torch.float64)).known)
    stacked = torch.func.stack_module_state([modules["net"] for modules in sets])
    shape = sets[0]["net"]

    def one(parameters: Any, buffers: Any, seed: torch.Tensor) -> torch.Tensor:
        nets = NetworkSet({"net": shape}, {"net": {**parameters, **buffers}})
        known: torch.Tensor = attack(nets, batch, Stream(seed, torch.tensor(7), torch.float64)).known
        return known

    together = torch.func.vmap(one)(*stacked, torch.arange(4))
    assert (together - torch.stack(alone)).abs().max() < 1e-9
    assert not torch.equal(alone[0], alone[1])


def test_an_attack_changes_neither_weights_nor_running_statistics_nor_carries_a_gradient() -> None:
    task = Regression()
    modules = {name: module.double() for name, module in task.networks().items()}
    before = {key: value.clone() for key, value in modules["net"].state_dict().items()}
    attacked = pgd(task, 0.3, steps=3)(NetworkSet(modules), task.samples.samples, stream())
    assert all(torch.equal(value, before[key]) for key, value in modules["net"].state_dict().items())
    assert not attacked.known.requires_grad
    assert all(parameter.grad is None for parameter in modules["net"].parameters())


def test_the_randomised_step_reaches_beyond_fgsm_only_inside_the_ball() -> None:
    task, nets = linear()
    batch = task.samples.samples
    moved = pgd(task, 0.1, steps=1, step=0.125)(nets, batch, stream(2)).known
    assert (moved - batch.known).abs().max() <= 0.1 + 1e-12
    assert not torch.equal(moved, fgsm(task, 0.1)(nets, batch, stream(2)).known)


def test_steps_fall_evenly_from_the_first_to_the_last() -> None:
    task, nets = linear()
    batch = task.samples.samples
    attack = pgd(task, 10.0, steps=3, step=0.4, last=0.1, start="centre")
    moved = (attack(nets, batch, stream()).known - batch.known).abs()
    assert moved.max() == pytest.approx(0.4 + 0.25 + 0.1)
    equal = [pgd(task, 0.3, steps=4, step=0.1, last=last)(nets, batch, stream(5)).known for last in (None, 0.1)]
    assert torch.allclose(*equal)


def test_the_default_step_is_the_published_one_and_few_steps_still_cross_the_ball() -> None:
    assert default_step(0.3, 40) == pytest.approx(0.01)
    assert default_step(0.3, 100) == pytest.approx(0.01)
    assert default_step(0.3, 4) == pytest.approx(0.1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"budget": -0.1},
        {"budget": math.nan},
        {"budget": 0.3, "steps": 0},
        {"budget": 0.3, "last": -0.1},
        {"budget": 0.3, "restarts": 0},
        {"budget": 0.3, "norm": 1.0},
        {"budget": 0.3, "start": "corner"},
        {"budget": 0.3, "step": -1.0},
    ],
)
def test_a_senseless_setting_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="expected"):
        pgd(Regression(), wrong.pop("budget"), **wrong)


def test_a_task_that_cannot_be_attacked_is_refused_with_what_it_lacks() -> None:
    names = ("networks", "objectives", "data", "inputs", "predict", "evaluate")
    closed = type("Closed", (Task,), {name: getattr(Regression, name) for name in names})()
    with pytest.raises(UserError, match="Closed has no attack_loss, bounds, perturbable, replace"):
        pgd(closed, 0.1)
