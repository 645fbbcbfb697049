"""Shrinking takes the least useful features for good and trains on what is left."""

from __future__ import annotations

import copy

import pytest
import torch

from fewer.attack.hardening.harden import harden
from fewer.core.engines.base import Training
from fewer.core.errors import UserError
from fewer.pruning.features.shrink import MEASURES, Shrinking, feature_order, shrink
from fewer.pruning.features.usefulness import Reach, usefulness
from fewer.systems.vision.task.task import Settings, Vision

REACH = Reach(step=0.15, steps=2)


@pytest.fixture(scope="module")
def task() -> Vision:
    return Vision(Settings(network="cnn0", classes="3,7"))


@pytest.fixture
def modules(task: Vision) -> dict[str, torch.nn.Module]:
    torch.manual_seed(1)
    return task.networks()


@pytest.mark.parametrize("measure", MEASURES)
def test_every_measure_halves_the_features_down_to_the_least(task: Vision, modules, measure: str) -> None:
    before = copy.deepcopy(modules["net"].state_dict())
    settings = Shrinking(measure=measure, share=0.5, least=8, samples=12, reach=REACH)
    stages = list(shrink(harden(task, "fgsm:0.1,ramp=0"), modules, settings, training=Training(steps=2, batch=8)))
    assert [len(stage.kept) for stage in stages] == [25, 13, 8]
    sizes = [sum(p.numel() for p in stage.modules["net"].parameters()) for stage in stages]
    assert sizes == [18 + 2 + 72 + 4 + 2 + (100 + 1 + 2) * left for left in (25, 13, 8)]
    assert all(value.equal(before[name]) for name, value in modules["net"].state_dict().items())


def test_dead_features_go_first_and_the_robustly_useful_stay(task: Vision, modules) -> None:
    with torch.no_grad():
        modules["net"].body.hidden.weight[:10] = 0.0
        modules["net"].body.hidden.bias[:10] = -1.0
    settings = Shrinking(measure="robust", share=0.5, least=25, samples=40, reach=REACH)
    (stage,) = shrink(task, modules, settings, training=Training(steps=0, batch=8))
    found = usefulness(task, modules, split="validation", limit=40, reach=REACH)
    kept = torch.zeros(50, dtype=torch.bool)
    kept[stage.kept] = True
    assert not kept[:10].any()
    score = found.score("robust_raw").masked_fill(found.dead, -torch.inf)
    assert score[kept].min() >= score[~kept].max()


def test_magnitude_does_not_change_when_a_feature_is_scaled_up_here_and_down_there(task: Vision, modules) -> None:
    before, _ = feature_order(task, modules, Shrinking(measure="magnitude"))
    with torch.no_grad():
        modules["net"].body.hidden.weight[4] *= 10
        modules["net"].head.weight[:, 4] /= 10
    after, _ = feature_order(task, modules, Shrinking(measure="magnitude"))
    torch.testing.assert_close(before, after)


def test_chance_depends_on_the_seed_and_the_round_alone(task: Vision, modules) -> None:
    lots = [
        feature_order(task, modules, Shrinking(measure="random", seed=seed), number=number)[0]
        for seed, number in ((0, 0), (0, 0), (1, 0), (0, 1))
    ]
    assert lots[0].equal(lots[1])
    assert not lots[0].equal(lots[2])
    assert not lots[0].equal(lots[3])


@pytest.mark.parametrize("wrong", [{"measure": "luck"}, {"share": 0.0}, {"share": 1.0}, {"least": 0}, {"samples": 0}])
def test_wrong_settings_are_refused(wrong: dict) -> None:
    with pytest.raises(UserError):
        Shrinking(**wrong)
