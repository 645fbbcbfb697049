"""Learned scores: exact counts, the straight-through gradient by hand, both engines, and that learning helps."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.func import vmap

from fewer.attack.hardening.harden import harden
from fewer.core.engines.base import Training
from fewer.core.engines.nets import NetworkSet
from fewer.core.engines.optimizer import Optimizer
from fewer.core.engines.plain import Plain
from fewer.core.engines.state import fresh_modules
from fewer.core.errors import UserError
from fewer.core.mask import kept
from fewer.pruning.hydra import Scored, WithScores, _top, hydra
from tests.toys import Blobs, Control, Patches, Tied, Untrained, stream

TRAINING = Training(30, 16, Optimizer(lr=0.02), precision="float64")


@given(st.lists(st.integers(0, 3), min_size=1, max_size=40), st.floats(0, 0.99))
@settings(max_examples=50, deadline=None)
def test_exactly_k_are_kept_whatever_the_ties_and_the_first_of_equals_wins(sizes: list[int], sparsity: float) -> None:
    gate = _top(torch.tensor(sizes, dtype=torch.float64), sparsity)
    count = len(sizes) - round(sparsity * len(sizes))
    order = sorted(range(len(sizes)), key=lambda index: (-sizes[index], index))
    assert set(gate.nonzero()[:, 0].tolist()) == set(order[:count])


def test_gates_are_the_same_under_vmap() -> None:
    sizes = torch.rand(3, 17)
    together = vmap(lambda each: _top(each, 0.6))(sizes)
    assert torch.equal(together, torch.stack([_top(each, 0.6) for each in sizes]))


def test_only_scores_are_parameters_and_the_network_answers_with_its_largest_weights() -> None:
    net = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 2))
    scored = Scored(net, 0.5)
    assert {name.split(".")[0] for name, _ in scored.named_parameters()} == {"scores"}
    x = torch.rand(4, 6)
    pruned = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 2))
    pruned.load_state_dict(net.state_dict())
    with torch.no_grad():
        for layer in (pruned[0], pruned[2]):
            flat = layer.weight.view(-1)
            flat[flat.abs().argsort()[: flat.numel() // 2]] = 0
    assert torch.allclose(scored(x), pruned(x))


def test_the_gradient_of_a_score_is_the_gates_gradient_times_its_sign() -> None:
    net = nn.Linear(4, 1, bias=False).double()
    scored = Scored(net, 0.5)
    x = torch.rand(3, 4, dtype=torch.float64)
    scored(x).sum().backward()
    score = scored.scores[0]
    expected = x.sum(0)[None] * net.weight.detach() * score.detach().sign()
    assert torch.allclose(score.grad, expected)  # also where the gate is shut


@pytest.mark.parametrize("scope", ["layer", "network"])
def test_plain_and_cohort_learn_the_same_mask(scope: str) -> None:
    alone = hydra(Blobs(20), 0.7, training=TRAINING, seeds=[1], scope=scope)[0]
    together = hydra(Blobs(20), 0.7, training=TRAINING, seeds=[0, 1], scope=scope)[1]
    assert all(torch.equal(mask, together["net"][key]) for key, mask in alone["net"].items())
    assert abs(kept(alone) - 0.3 * 140) <= 1


def test_weights_biases_and_norms_stand_still_while_scores_are_learned() -> None:
    task = Patches()
    engine = Plain(WithScores(task, 0.5), Training(5, 16, Optimizer(lr=0.05)), 0)
    before = {key: value.clone() for key, value in engine.state.networks["net"].buffers.items()}
    scores = engine.state.networks["net"].weights.clone()
    engine.advance(5)
    after = engine.state.networks["net"].buffers
    moved = {key for key, value in before.items() if not torch.equal(value, after[key])}
    assert all("running" in key or "num_batches" in key for key in moved)
    assert not torch.equal(scores, engine.state.networks["net"].weights)


def loss_of(task: Blobs, masks: dict[str, dict[str, Tensor]], seed: int) -> float:
    modules = {name: module.double() for name, module in fresh_modules(task, seed).items()}
    with torch.no_grad():
        for key, mask in masks["net"].items():
            modules["net"].get_parameter(key).mul_(mask)
        return float(task.loss(NetworkSet(modules), task.samples.samples, stream()))


def test_learned_masks_serve_the_held_weights_better_than_the_largest_ones() -> None:
    task = Blobs(40)
    untrained = Training(0, 16, precision="float64")
    learning = Training(150, 30, Optimizer(lr=0.02), precision="float64")
    for seed in (0, 1, 2):
        largest = hydra(task, 0.6, training=untrained, seeds=[seed])[0]
        learned = hydra(task, 0.6, training=learning, seeds=[seed])[0]
        assert loss_of(task, learned, seed) < 0.85 * loss_of(task, largest, seed)


def test_scores_are_learned_under_attack_and_for_several_networks() -> None:
    hardened = harden(Blobs(8), "pgd:0.1,steps=2,ramp=0")
    assert kept(hydra(hardened, 0.5, training=Training(3, 16), seeds=[0, 1])[0]) == 28
    masks = hydra(Control(), 0.5, training=Training(4, 16), seeds=[0, 1])[0]
    assert set(masks) == {"actor", "critic", "critic2", "critic_target", "critic2_target"}
    assert masks["critic2"] is masks["critic"]


@pytest.mark.parametrize("wrong", [{"sparsity": 1.0}, {"sparsity": -0.1}, {"sparsity": 0.5, "scope": "all"}])
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        Scored(nn.Linear(2, 2), **wrong)


def test_layers_that_share_a_weight_share_its_score() -> None:
    net = Tied().networks()["net"]
    scored, x = Scored(net, 0.5), torch.rand(3, 4)
    pruned = copy.deepcopy(net)
    with torch.no_grad():
        for name, gate in zip(scored.names, scored.gates()):
            pruned.get_parameter(name).mul_(gate)
    assert torch.allclose(scored(x), pruned(x), atol=1e-6)


def test_a_network_that_nobody_trains_and_its_copy_have_no_learned_mask() -> None:
    masks = hydra(Untrained(), 0.5, training=TRAINING, seeds=[0])
    assert set(masks[0]) == {"net"}
