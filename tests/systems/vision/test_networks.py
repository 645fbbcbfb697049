"""The networks have exactly the sizes that the literature prints."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from fewer.packs.trace.trace import trace
from fewer.systems.vision.task.networks import NETWORKS, Contrast, Normalise, conv, mlp, xavier_

GREY = (1, 28, 28)


def counts(module: nn.Module) -> tuple[int, int]:
    sizes = {name: parameter.numel() for name, parameter in module.named_parameters()}
    return sum(size for name, size in sizes.items() if name.endswith("weight")), sum(sizes.values())


@pytest.mark.parametrize(
    ("name", "weights", "parameters"),
    [
        ("cnn0", 5_590, 5_656),
        ("cnn1", 21_324, 21_446),
        ("cnn2", 83_224, 83_458),
        ("cnn3", 328_752, 329_210),
        ("cnn4", 1_306_720, 1_307_626),
        ("cnn5", 5_210_304, 5_212_106),
        ("small-cnn", 311_600, 312_202),
        ("mlp", 266_200, 266_610),
        ("mlp3", 276_200, 276_710),
    ],
)
def test_a_network_has_the_published_number_of_weights(name: str, weights: int, parameters: int) -> None:
    assert counts(NETWORKS[name](GREY, 10)) == (weights, parameters)


@pytest.mark.parametrize("scale", range(6))
def test_the_flattened_width_and_the_hidden_width_are_those_of_table_one(scale: int) -> None:
    net = NETWORKS[f"cnn{scale}"](GREY, 10)
    assert (net.body.hidden.in_features, net.body.hidden.out_features) == (100 * 2**scale, 50 * 2**scale)
    assert (net.body.conv1.out_channels, net.body.conv2.out_channels) == (2 * 2**scale, 4 * 2**scale)


def test_wide_doubles_the_hidden_layer_and_deep_the_convolutions() -> None:
    plain, wide, deep = (counts(NETWORKS[name](GREY, 10))[0] for name in ("cnn1", "cnn1-wide", "cnn1-deep"))
    assert wide - plain == 200 * 100 + 100 * 10
    assert deep - plain == 9 * (4 * 4 + 8 * 8)


@pytest.mark.parametrize("name", [name for name in NETWORKS if not name.startswith(("cnn4", "cnn5"))])
@pytest.mark.parametrize("shape", [GREY, (3, 32, 32)])
def test_the_scores_are_the_head_of_the_features(name: str, shape: tuple[int, int, int]) -> None:
    net = NETWORKS[name](shape, 7)
    pixels = torch.rand(2, *shape)
    scores, features = net(pixels), net(pixels, features=True)
    assert scores.shape == (2, 7)
    assert features.shape == (2, net.head.in_features)
    assert features.min() >= 0
    torch.testing.assert_close(net.head(features), scores, rtol=0, atol=0)


def test_normalisation_is_inside_so_that_its_gradient_is_in_pixels() -> None:
    net = mlp((5,), GREY, 3)
    pixels = torch.rand(4, *GREY)
    expected = net((pixels - 0.25) / 0.5)
    net.normalise = Normalise(torch.tensor([0.25]), torch.tensor([0.5]))
    torch.testing.assert_close(net(pixels), expected)
    assert {"normalise.mean", "normalise.deviation"} <= set(net.state_dict())


@pytest.mark.parametrize("steepness", [5.0, 30.0, 80.0])
def test_contrast_is_a_sigmoid_whose_slope_an_attack_sees_however_steep_it_is(steepness: float) -> None:
    pixels = torch.tensor([0.0, 0.2, 0.5, 0.9, 1.0]).requires_grad_()
    expected = torch.sigmoid(steepness * (pixels - 0.5))
    seen = Contrast(steepness)(pixels)
    torch.testing.assert_close(seen, expected)
    gentle = torch.sigmoid(min(steepness, 10.0) * (pixels - 0.5))
    slopes = [torch.autograd.grad(value.sum(), pixels)[0] for value in (seen, gentle)]
    torch.testing.assert_close(*slopes)
    with torch.no_grad():
        assert torch.equal(Contrast(steepness)(pixels), expected)


def test_contrast_hides_what_an_adversary_does_to_black_and_white() -> None:
    pixels = torch.tensor([0.0, 1.0, 0.4])
    seen = Contrast(30.0)(pixels)
    assert (Contrast(30.0)(pixels + torch.tensor([0.3, -0.3, 0.3])) - seen).abs()[:2].max() < 0.003
    assert Contrast(30.0)(pixels + 0.3)[2] - seen[2] > 0.9


def test_a_pack_computes_the_contrast_itself_and_not_the_slope_that_attacks_see() -> None:
    net = NETWORKS["cnn0"](GREY, 10)
    net.normalise = Contrast(80.0)
    program, _ = trace(net, [torch.rand(2, *GREY)])
    assert sum(node.op == "sigmoid" for node in program.nodes) == 1


def test_xavier_weights_have_the_deviation_of_the_formula_and_no_bias() -> None:
    net = mlp((300, 100), GREY, 10)
    xavier_(net)
    assert net.body.hidden1.weight.std().item() == pytest.approx((2 / (784 + 300)) ** 0.5, rel=0.02)
    assert not net.body.hidden1.bias.any()


def test_no_convolution_before_a_norm_has_a_bias() -> None:
    assert all(layer.bias is None for layer in conv(GREY, 10).modules() if isinstance(layer, nn.Conv2d))
