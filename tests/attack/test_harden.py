"""Hardening: what the losses see, by hand and by kind, alone and stacked."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from fewer.attack.attacks.fgsm import fgsm
from fewer.attack.attacks.pgd import pgd
from fewer.attack.hardening import KINDS
from fewer.attack.hardening.harden import harden, ramped
from fewer.attack.hardening.recipe import Hardening, parse_harden
from fewer.core.abilities import Attackable, Classifier, Featured, Voting, kind_of
from fewer.core.engines.nets import NetworkSet
from fewer.core.engines.state import fresh_modules
from fewer.core.errors import UserError
from fewer.core.seed import Stream
from fewer.core.task import Objective, Task
from fewer.pruning.pruning import Pruning, mask_for
from fewer.systems.vision.task.task import Vision

from .examples import Regression, stream


def fresh(task: Any, seed: int = 0) -> NetworkSet:
    torch.manual_seed(seed)
    return NetworkSet({name: module.double() for name, module in task.networks().items()})


def loss_of(task: Any, nets: NetworkSet, batch: Any, noise: Stream) -> torch.Tensor:
    value: torch.Tensor = task.objectives()[0].loss(nets, batch, noise)
    return value


def test_a_hardened_loss_is_the_loss_of_the_attacked_batch() -> None:
    task, noise = Regression(), stream(3, dtype=torch.float64)
    batch = task.samples.samples
    attacks = {
        "fgsm:0.2,ramp=0": fgsm(task, 0.2),
        "fast:0.2,ramp=0": pgd(task, 0.2, steps=1, step=0.25),
        "pgd:0.2,ramp=0": pgd(task, 0.2, steps=7, step=0.2 / 3),
        "pgd:0.2,ramp=0,steps=3,step=0.05,norm=2": pgd(task, 0.2, steps=3, step=0.05, norm=2),
    }
    for text, attack in attacks.items():
        attacked = attack(fresh(task), batch, noise)
        # a fresh set each time: training moves the running statistics that the attack reads
        expected = loss_of(task, fresh(task), attacked, noise)
        assert torch.allclose(loss_of(harden(task, text), fresh(task), batch, noise), expected, atol=1e-12), text
        assert not torch.equal(attacked.known, batch.known)


def test_a_mix_weighs_the_attacked_and_the_clean_loss() -> None:
    task, noise = Regression(), stream(3)
    batch, nets = task.samples.samples, fresh(task)
    attacked = fgsm(task, 0.2)(nets, batch, noise)
    expected = 0.25 * loss_of(task, nets, attacked, noise) + 0.75 * loss_of(task, nets, batch, noise)
    found = loss_of(harden(task, "fgsm:0.2,ramp=0,mix=0.25"), fresh(task), batch, noise)
    assert torch.allclose(found, expected, atol=1e-12)


def test_the_budget_rises_in_a_straight_line_over_the_ramp() -> None:
    settings = Hardening(budget=0.4, ramp=0.3)
    shares = [float(ramped(settings, 1000, stream(0, step))) for step in (0, 150, 300, 900)]
    assert shares == pytest.approx([0.0, 0.5, 1.0, 1.0])
    task, batch = Regression(), Regression().samples.samples
    hardened = harden(task, "fgsm:0.4,ramp=0.5", total=100)
    half = loss_of(task, fresh(task), fgsm(task, 0.2)(fresh(task), batch, stream()), stream())
    assert torch.allclose(loss_of(hardened, fresh(task), batch, stream(0, 25)), half, rtol=1e-12)


def test_free_training_descends_the_mean_over_its_replays() -> None:
    task, noise = Regression(), stream(2, dtype=torch.float64)
    batch = task.samples.samples
    visited = [pgd(task, 0.2, steps=count, step=0.2)(fresh(task), batch, noise) for count in (1, 2, 3)]
    expected = torch.stack([loss_of(task, fresh(task), attacked, noise) for attacked in visited]).mean()
    found = loss_of(harden(task, "free:0.2,steps=3,ramp=0"), fresh(task), batch, noise)
    assert torch.allclose(found, expected, atol=1e-12)


def test_trades_is_the_clean_loss_and_a_divergence(mlp: Vision, images: Callable[[int], Any]) -> None:
    batch = images(32)._replace(pixels=images(32).pixels.double())
    nets, noise = fresh(mlp), stream()
    found = loss_of(harden(mlp, "trades:0.1,beta=6,steps=1,step=0.1,ramp=0"), nets, batch, noise)
    module = nets.modules["net"]
    near = (batch.pixels + 1e-3 * noise.normal("attack/start/0", tuple(batch.pixels.shape)).double()).clamp(0, 1)
    near.requires_grad_()
    clean = module(batch.pixels)

    def divergence(logits: torch.Tensor) -> torch.Tensor:
        return F.kl_div(F.log_softmax(logits, 1), F.softmax(clean, 1), reduction="batchmean")

    (gradient,) = torch.autograd.grad(divergence(module(near)), near)
    box = ((batch.pixels - 0.1).clamp(min=0), (batch.pixels + 0.1).clamp(max=1))
    attacked = torch.clamp(near + 0.1 * gradient.sign(), *box)
    expected = F.cross_entropy(clean, batch.label) + 6 * divergence(module(attacked))
    assert torch.allclose(found, expected, rtol=1e-9)


def test_mart_is_a_boosted_cross_entropy_and_a_weighted_divergence(mlp: Vision, images: Callable[[int], Any]) -> None:
    batch = images(16)._replace(pixels=images(16).pixels.double())
    nets, noise = fresh(mlp), stream()
    found = loss_of(harden(mlp, "mart:0.1,beta=2,steps=1,step=0.1,ramp=0"), nets, batch, noise)
    attacked = pgd(mlp, 0.1, steps=1, step=0.1, start="near")(nets, batch, noise)
    total = 0.0
    for image, changed, label in zip(batch.pixels, attacked.pixels, batch.label):
        p = F.softmax(nets.modules["net"](image[None])[0], 0).detach()
        q = F.softmax(nets.modules["net"](changed[None])[0], 0).detach()
        others = max(float(q[k]) for k in range(10) if k != label)
        total += -math.log(q[label]) - math.log(1 - others + 1e-4)
        total += 2 * float((p * (p / q).log()).sum()) * (1 - float(p[label]))
    assert float(found.detach()) == pytest.approx(total / 16, rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["magnitude", "snip"])
def test_a_network_can_be_pruned_under_every_kind(kind: str, method: str, mlp: Vision) -> None:
    mix = 0.5 if kind in ("fgsm", "free") else 1.0  # the paper's mixture takes its gradient from the clean loss
    task = harden(mlp, Hardening(kind, 0.2, steps=2, mix=mix), total=10)
    modules = fresh_modules(mlp, 0)
    mask = mask_for(task, modules, Pruning(method, 0.5, samples=40), seed=0)
    assert sum(int(kept.sum()) for kept in mask["net"].values()) == round(0.5 * 266_200)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_gives_stacked_replicas_the_gradients_of_single_ones(
    kind: str, mlp: Vision, images: Callable[[int], Any]
) -> None:
    batch = images(16)._replace(pixels=images(16).pixels.double())
    mix = 0.5 if kind in ("fgsm", "free") else 1.0
    loss = harden(mlp, Hardening(kind, 0.2, steps=2, mix=mix), total=10).objectives()[0].loss
    sets = [fresh(mlp, seed) for seed in range(2)]
    alone = []
    for seed, nets in enumerate(sets):
        value = loss(nets, batch, stream(seed, 5, torch.float64))
        alone.append(torch.autograd.grad(value, list(nets.modules["net"].parameters())))
    weights, _ = torch.func.stack_module_state([nets.modules["net"] for nets in sets])
    shape = sets[0].modules

    def one(parameters: Any, seed: torch.Tensor) -> torch.Tensor:
        nets = NetworkSet(shape, {"net": parameters})
        value: torch.Tensor = loss(nets, batch, Stream(seed, torch.tensor(5), torch.float64))
        return value

    losses = torch.func.vmap(one)(weights, torch.arange(2))
    together = torch.autograd.grad(losses.sum(), list(weights.values()))
    for index, stacked in enumerate(together):
        assert (stacked - torch.stack([row[index] for row in alone])).abs().max() < 1e-9


def test_a_hardened_task_keeps_all_abilities_and_leaves_the_original_alone(mlp: Vision) -> None:
    def loss_of(task: Task[Any]) -> object:
        return vars(task.objectives()[0].loss)["__wrapped__"]  # an objective lets random layers draw from its noise

    before = loss_of(mlp)
    hardened = harden(mlp, "fgsm:0.3,ramp=0")
    for wanted in (Attackable, Classifier, Featured, Voting):
        assert isinstance(hardened, wanted) == isinstance(mlp, wanted)
        for name in (name for name in dir(wanted) if not name.startswith("_")):  # newer Pythons look no further
            assert inspect.getattr_static(hardened, name, None) is not None or not isinstance(mlp, wanted)
    assert isinstance(hardened, Attackable) and isinstance(hardened, Classifier)
    assert not isinstance(harden(Regression(), "fgsm:0.1,ramp=0"), Classifier)
    assert hardened.settings is mlp.settings and kind_of(harden(hardened, "fgsm:0.1,ramp=0")) == "Vision"
    assert loss_of(mlp) == before != loss_of(hardened)
    assert hardened.objectives()[0].trains == ("net",) and hardened.data("test") is mlp.data("test")


def test_each_of_several_objectives_sees_attacked_batches() -> None:
    class Two(Regression):
        def objectives(self) -> tuple[Objective[Any], ...]:
            (first,) = super().objectives()
            return first, Objective(("net",), lambda nets, batch, noise: batch.known.sum(), every=3)

    task = Two()
    batch, noise = task.samples.samples, stream()
    attacked = fgsm(task, 0.1)(fresh(task), batch, noise)
    second = harden(task, "fgsm:0.1,ramp=0").objectives()[1]
    assert second.every == 3
    assert torch.equal(second.loss(fresh(task), batch, noise), attacked.known.sum())


def test_the_presets_are_the_papers_and_the_cure() -> None:
    paper = parse_harden("paper:0.3")
    assert (paper.kind, paper.steps, paper.mix, paper.ramp) == ("pgd", 40, 0.5, 0.0)
    assert paper.stride == pytest.approx(0.01)
    cure = parse_harden("pgd:0.3")
    assert (cure.steps, cure.start, cure.mix, cure.ramp) == (7, "uniform", 1.0, 0.3)
    assert cure.stride == pytest.approx(0.1)
    assert parse_harden("fast:0.3,ramp=0.3,mix=0.5").stride == pytest.approx(0.375)
    assert parse_harden("trades:0.3,beta=1").beta == 1
    assert parse_harden("free:0.3").steps == 4


@pytest.mark.parametrize(
    "text",
    ["pgd", "pgd:", "pgd:-0.3", "pgd:nan", "pgd:inf", "pdg:0.3", "pgd:0.3,beta=1", "pgd:0.3,steps=2.5"]
    + ["pgd:0.3,steps=0", "fgsm:0.3,mix=1.5", "pgd:0.3,ramp=-1", "trades:0.3,mix=0.5", "pgd:0.3,steps=3,steps=4"]
    + ["trades:0.3,beta=-1", "pgd:0.3,steps", "pgd:0.3,norm=1", "pgd:a"],
)
def test_a_malformed_hardening_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UserError) as refused:
        parse_harden(text)
    assert "expected" in str(refused.value) and "\n" not in str(refused.value)


def test_a_ramp_without_a_number_of_steps_and_trades_without_classes_are_refused() -> None:
    with pytest.raises(UserError, match="total"):
        harden(Regression(), "pgd:0.3")
    with pytest.raises(UserError, match="labels, logits"):
        harden(Regression(), "trades:0.3,ramp=0")


def test_before_the_first_step_the_ramp_gives_the_whole_budget_so_that_pruning_scores_attacked_inputs() -> None:
    recipe = parse_harden("pgd:0.3,ramp=0.5")
    shares = [float(ramped(recipe, 100, Stream(torch.tensor(0), torch.tensor(step)))) for step in (-1, 0, 25, 50, 99)]
    assert shares == [1.0, 0.0, 0.5, 1.0, 1.0]
