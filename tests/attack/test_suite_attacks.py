"""APGD, FAB and Square: their formulas, their invariants, and stacked replicas."""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import linprog, minimize

from fewer.attack import attack_loss as attack_losses
from fewer.attack.attacks.apgd import apgd, apgd_targeted, checkpoints
from fewer.attack.attacks.bumps import bump, first_bumps, moved_bump
from fewer.attack.attacks.fab import fab_targeted, to_hyperplane
from fewer.attack.attacks.square import share_at, square
from fewer.attack.attacks.targets import lead, ratio, targets_of
from fewer.attack.ball import lengths
from fewer.core.engines.nets import NetworkSet
from fewer.core.errors import UserError
from fewer.core.seed import Stream
from fewer.systems.vision.task.task import Settings, Vision

from .examples import Regression, stream

ATTACKS: dict[str, Callable[[Any, float], Any]] = {
    "apgd": lambda task, budget: apgd(task, budget, steps=12),
    "apgd x 2": lambda task, budget: apgd(task, budget, steps=6, restarts=2),
    "apgd-t": lambda task, budget: apgd_targeted(task, budget, steps=6, targets=2),
    "fab-t": lambda task, budget: fab_targeted(task, budget, steps=6, targets=2),
    "square": lambda task, budget: square(task, budget, queries=12),
    "apgd L2": lambda task, budget: apgd(task, 8 * budget, steps=6, norm=2),
    "square L2": lambda task, budget: square(task, 8 * budget, queries=12, norm=2),
    "fab-t L2": lambda task, budget: fab_targeted(task, 8 * budget, steps=6, targets=2, norm=2),
}


def test_checkpoints_are_those_of_the_paper() -> None:
    assert checkpoints(100) == [22, 41, 57, 70, 80, 87, 93, 99]


def test_squares_shrink_on_the_papers_schedule() -> None:
    assert [share_at(query, 10_000) for query in (1, 10, 11, 50, 51, 501)] == [0.8, 0.8, 0.4, 0.4, 0.2, 0.05]
    assert share_at(6, 5000) == 0.4 and share_at(4999, 5000) == 0.8 / 512


def test_a_bump_is_a_hill_beside_a_valley_of_unit_energy() -> None:
    found = bump(5, 5)
    assert found.square().sum().item() == pytest.approx(1)
    assert (found[:2] > 0).all() and (found[2:] < 0).all()
    # rows 0 and 1 are a hill of 2 x 5 around (1, 2), three steps high
    worth = [1 + 1 / 4 + 1 / 9, 1 / 4 + 1 / 9, 1 / 9]
    ratios = found[1] / found[1, 2]
    assert torch.allclose(ratios, torch.tensor([worth[2], worth[1], worth[0], worth[1], worth[2]]).double() / worth[0])
    assert bump(1, 6).shape == (1, 6) and bump(1, 1).item() == 1


def test_moving_a_bump_keeps_the_energy_of_the_whole_budget(images: Callable[[int], Any], mlp: Vision) -> None:
    batch = images(8)._replace(pixels=torch.full((8, 1, 28, 28), 0.5, dtype=torch.float64))
    attack = square(mlp, 2.0, queries=6, norm=2)
    state = attack.begin(batch, stream(4, dtype=torch.float64))
    offset = first_bumps(state, "a")
    assert torch.allclose(lengths(offset), torch.full((8, 1, 1, 1), 2.0).double())
    state = state.noted(state.fooled, state.ball.centre + offset)
    for query, side in enumerate((19, 9, 3)):
        moved = moved_bump(state, f"b{query}", side)
        assert torch.allclose(lengths(moved - batch.pixels), torch.full((8, 1, 1, 1), 2.0).double(), rtol=1e-9)
        changed = (moved != state.perturbable).flatten(1).sum(1)
        assert (changed > 0).all() and (changed <= 2 * side * side).all()
        state = state.noted(state.fooled, moved)


def test_targets_are_the_likeliest_wrong_classes() -> None:
    logits = torch.tensor([[5.0, 1.0, 3.0, 2.0], [0.0, 1.0, 2.0, 3.0]])
    assert targets_of(logits, torch.tensor([0, 1]), 9).tolist() == [[2, 3, 1], [3, 2, 0]]
    assert targets_of(logits, torch.tensor([0, 1]), 2).tolist() == [[2, 3], [3, 2]]


def test_the_ratio_is_the_lead_over_the_spread_and_ignores_scale() -> None:
    logits, labels = torch.tensor([[5.0, 1.0, 3.0, 2.0]]), torch.tensor([0])
    for scaled in (logits, 100 * logits):
        value, fooled = ratio(lambda *_, z=scaled: (z, labels), torch.tensor([2]))(None, None, stream())
        assert value.item() == pytest.approx((3 - 5) / (5 - (2 + 1) / 2))
        assert not fooled.item()
    three = ratio(lambda *_: (logits[:, :3], labels), torch.tensor([2]))(None, None, stream())[0]
    assert three.item() == lead(lambda *_: (logits, labels), torch.tensor([2]))(None, None, stream())[0].item() == -2


@pytest.mark.parametrize("seed", range(4))
def test_the_projection_on_a_hyperplane_in_a_box_is_the_shortest(seed: int) -> None:
    draw = np.random.default_rng(seed)
    for norm, scale in itertools.product((math.inf, 2.0), (0.2, 2.0)):
        x, w, gap = draw.uniform(0, 1, 5), draw.normal(size=5), np.float64(scale * draw.normal())
        reach = np.where(-np.sign(gap) * w > 0, 1 - x, x) @ np.abs(w)
        tensors = [torch.tensor(part)[None] for part in (x, w)]
        offset = to_hyperplane(*tensors, torch.tensor(gap)[None], torch.tensor(0.0), torch.tensor(1.0), norm)[0].numpy()
        assert (x + offset >= -1e-12).all() and (x + offset <= 1 + 1e-12).all()
        if abs(gap) > reach:
            assert w @ offset == pytest.approx(-np.sign(gap) * reach)
            continue
        assert w @ offset == pytest.approx(-gap, abs=1e-9)
        if norm == 2:
            sides = list(zip(-x, 1 - x))
            equal = {"type": "eq", "fun": lambda d, w=w, gap=gap: w @ d + gap}
            best = minimize(lambda d: d @ d, offset * 0, bounds=sides, constraints=equal, tol=1e-14)
            assert offset @ offset <= best.fun + 1e-7
        else:
            # variables d and t: least t with -t <= d <= t
            rows = np.block([[np.eye(5), -np.ones((5, 1))], [-np.eye(5), -np.ones((5, 1))]])
            sides = [*zip(-x, 1 - x), (0, None)]
            best = linprog([0] * 5 + [1], rows, np.zeros(10), [[*w, 0]], [-gap], bounds=sides)
            assert np.abs(offset).max() <= best.fun + 1e-9


def test_apgd_does_what_its_paper_does_unless_told_otherwise() -> None:
    usual = {
        attack: {key: word.default for key, word in inspect.signature(attack).parameters.items() if word.kind > 1}
        for attack in (apgd, apgd_targeted)
    }
    assert usual[apgd]["steps"] == usual[apgd_targeted]["steps"] == 100
    assert usual[apgd]["restarts"] == 1 and usual[apgd_targeted]["targets"] == 9


@pytest.mark.parametrize("name", ATTACKS)
def test_the_answer_stays_in_the_ball_and_in_the_bounds_and_hurts(
    name: str, mlp: Vision, fragile_mlp: NetworkSet, images: Callable[[int], Any]
) -> None:
    batch = images(32)
    budget, norm = (0.8, 2.0) if "L2" in name else (0.1, math.inf)
    changed = ATTACKS[name](mlp, 0.1)(fragile_mlp, batch, stream())
    assert changed.pixels.min() >= 0 and changed.pixels.max() <= 1
    assert lengths(changed.pixels - batch.pixels, norm).max() <= budget + 1e-6
    margin = attack_losses.margin(mlp)
    before, after = (margin(fragile_mlp, part, stream())[0].detach().mean() for part in (batch, changed))
    assert after > before


@pytest.mark.parametrize("name", ATTACKS)
def test_stacked_replicas_are_attacked_like_single_ones(name: str, images: Callable[[int], Any]) -> None:
    task = Vision(Settings(network="cnn0", classes="1,4,7,9"))
    batch = task.data("test").take(torch.arange(6))
    batch = batch._replace(pixels=batch.pixels.double())
    attack, sets = ATTACKS[name](task, 0.2), []
    for seed in range(2):
        torch.manual_seed(seed)
        sets.append(task.networks()["net"].double())
    alone = [
        attack(NetworkSet({"net": net}), batch, stream(seed, 3, torch.float64)).pixels for seed, net in enumerate(sets)
    ]
    parameters, _ = torch.func.stack_module_state(sets)

    def one(weights: Any, seed: torch.Tensor) -> torch.Tensor:
        nets = NetworkSet({"net": sets[0]}, {"net": weights})
        pixels: torch.Tensor = attack(nets, batch, Stream(seed, torch.tensor(3), torch.float64)).pixels
        return pixels

    together = torch.func.vmap(one)(parameters, torch.arange(2))
    assert (together - torch.stack(alone)).abs().max() < 1e-9


def test_more_queries_never_harm_less(mlp: Vision, fragile_mlp: NetworkSet, images: Callable[[int], Any]) -> None:
    batch, margin = images(32), attack_losses.margin(mlp)
    nobody = torch.zeros(32, dtype=torch.bool)
    values = []
    for queries in (1, 5, 40):
        # the schedule depends on the number of queries, so the first queries of one long search are compared
        attack, passed = square(mlp, 0.05, queries=40), []
        attack.last(fragile_mlp, batch, stream(), visit=passed.append)
        perturbable = passed[queries - 1].perturbable
        values.append(margin(fragile_mlp, batch._replace(pixels=perturbable), stream())[0].detach())
        nobody |= passed[queries - 1].fooled
    standing = ~nobody
    assert standing.any()
    assert (values[1] >= values[0])[standing].all() and (values[2] >= values[1])[standing].all()
    assert (values[2] > values[0]).any()


def test_apgd_and_square_climb_the_harm_of_a_task_without_classes() -> None:
    task = Regression()
    torch.manual_seed(0)
    nets = NetworkSet({name: module.double() for name, module in task.networks().items()}, training=False)
    batch, noise = task.samples.samples, stream()
    clean = task.attack_loss(nets, batch, noise).detach()
    for attack in (apgd(task, 0.3, steps=20), square(task, 0.3, queries=40)):
        changed = attack(nets, batch, noise)
        low, high = task.bounds
        assert (changed.known >= low).all() and (changed.known <= high).all()
        assert (changed.known - batch.known).abs().max() <= 0.3 + 1e-12
        attack_loss = task.attack_loss(nets, changed, noise).detach()
        assert (attack_loss > clean).float().mean() > 0.9


@pytest.mark.parametrize(
    "make",
    [
        lambda task: apgd(task, -1),
        lambda task: apgd(task, 0.1, steps=0),
        lambda task: apgd_targeted(task, 0.1, targets=0),
        lambda task: fab_targeted(task, 0.1, norm=1),
        lambda task: fab_targeted(task, 0.1, steps=0),
        lambda task: square(task, 0.1, queries=0),
        lambda task: square(task, math.nan),
    ],
)
def test_a_senseless_setting_is_refused(make: Callable[[Any], Any], mlp: Vision) -> None:
    with pytest.raises(UserError, match="expected"):
        make(mlp)
