"""Features are really removed, and what is left answers as before."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from fewer.core.engines.base import Training
from fewer.core.engines.plain import Plain
from fewer.core.errors import UserError
from fewer.pruning.features.structured import best_features, feature_layer, remove_features
from fewer.systems.vision.task.networks import NETWORKS, mlp
from fewer.systems.vision.task.task import Settings, Vision

GREY = (1, 28, 28)


@pytest.mark.parametrize("name", ["cnn0", "cnn1-deep", "mlp", "mlp3", "small-cnn", "conv"])
def test_what_is_left_answers_as_the_whole_with_the_others_at_zero(name: str) -> None:
    net = NETWORKS[name](GREY, 10).double()
    keep = torch.rand(net.head.in_features) < 0.3
    keep[3] = True
    smaller = remove_features(net, keep)
    pixels = torch.rand(5, *GREY, dtype=torch.float64)
    features = net(pixels, features=True)
    torch.testing.assert_close(smaller(pixels), net.head(features * keep))
    torch.testing.assert_close(smaller(pixels, features=True), features[:, keep])
    assert smaller.head.in_features == int(keep.sum())


def test_the_network_itself_shrinks_by_a_row_and_a_column_for_each_feature() -> None:
    net = NETWORKS["cnn0"](GREY, 10)
    smaller = remove_features(net, torch.arange(20))
    before, after = (sum(p.numel() for p in m.parameters()) for m in (net, smaller))
    assert before - after == 30 * (100 + 1 + 10)
    assert net.head.in_features == 50


def test_a_shrunk_network_trains_on() -> None:
    task = Vision(Settings(network="cnn0"))
    smaller = remove_features(task.networks()["net"], torch.arange(0, 50, 5))
    engine = Plain(task, Training(steps=60, batch=64), modules={"net": smaller})
    engine.advance(30)
    first = engine.mean_losses().item()
    engine.advance(30)
    assert engine.mean_losses().item() < first
    assert engine.modules["net"].head.weight.shape == (10, 10)


@settings(deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=20), st.data())
def test_the_best_features_are_exactly_as_many_as_asked_whatever_the_ties(numbers, data) -> None:
    score = torch.tensor(numbers, dtype=torch.float32)
    tie = torch.tensor(data.draw(st.lists(st.integers(0, 2), min_size=len(numbers), max_size=len(numbers)))).float()
    count = data.draw(st.integers(1, len(numbers)))
    kept = best_features(score, count, tie=tie).tolist()
    ranked = sorted(range(len(numbers)), key=lambda i: (-score[i].item(), -tie[i].item(), i))
    assert kept == sorted(ranked[:count])


def test_only_a_linear_layer_with_an_activation_can_lose_features() -> None:
    net = mlp((30, 20), GREY, 10)
    assert feature_layer(net) == "body.hidden2"
    net.body.add_module("norm", nn.LayerNorm(20))
    with pytest.raises(UserError, match="before the head"):
        remove_features(net, torch.arange(5))
    with pytest.raises(UserError, match="head 'last'"):
        remove_features(net, torch.arange(5), head="last")


@pytest.mark.parametrize("keep", [[], [0, 0], [-1], [50], [False] * 50])
def test_a_wrong_choice_of_features_is_refused(keep: list[int]) -> None:
    with pytest.raises(UserError, match="0 to 49"):
        remove_features(NETWORKS["cnn0"](GREY, 10), torch.tensor(keep))
