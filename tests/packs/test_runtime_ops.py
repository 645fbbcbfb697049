"""Every operation of a program against torch, for any number of samples."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fewer.core.errors import UserError
from fewer.packs.pack import load, write
from fewer.packs.program import OPERATIONS, Input, Node, Program
from fewer.packs.runtime.layers import conv, group_norm
from fewer.packs.runtime.ops import SHAPES
from fewer.packs.runtime.runtime import Network
from fewer.packs.trace.trace import trace
from tests.packs.predictions import PREDICTIONS, traced


@pytest.mark.parametrize("name", PREDICTIONS)
def test_a_prediction_is_the_same_without_torch(name: str) -> None:
    module, program, tensors = traced(name)
    double = copy.deepcopy(module).double()
    generator = torch.Generator().manual_seed(1)
    for samples in (1, 2, 5):
        x = torch.randn(samples, *PREDICTIONS[name][1], generator=generator)
        with torch.no_grad():
            expected, exact = module(x).numpy(), double(x.double()).numpy()
        scale = 1 + np.abs(exact).max()
        # torch's own distance from float64 is the measure
        allowed = max(1e-5 * scale, 4 * np.abs(expected - exact).max())
        for compiled in (True, False):
            answer = Network(program, tensors, compiled=compiled).predict(x.numpy())
            assert answer.shape == expected.shape and answer.dtype == expected.dtype
            assert np.abs(answer - exact).max() < allowed
        assert np.abs(Network(program, tensors).predict(x[0].numpy()) - exact[0]).max() < allowed


def test_the_predictions_use_nearly_every_operation() -> None:
    used = {node.op for name in PREDICTIONS for node in traced(name)[1].nodes}
    assert set(OPERATIONS) - used <= {
        "index_add", "fmod", "round", "full", "prod", "logical_xor", "floor_divide", "minimum", "all", "le", "ne",
        "logical_and", "logical_or", "index",
    }  # fmt: skip


@pytest.mark.parametrize("density", [0.0, 0.02, 0.2, 1.0])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_sparse_convolutions_equal_dense_ones(rank: int, density: float) -> None:
    torch.manual_seed(0)
    function = (F.conv1d, F.conv2d, F.conv3d)[rank - 1]
    x = torch.randn(3, 4, *(9, 8, 7)[:rank])
    for stride, padding, dilation, groups in ((1, 1, 1, 1), (2, 2, 2, 2), (1, 0, 1, 4)):
        weight = torch.randn(8, 4 // groups, *[3] * rank)
        weight *= torch.rand_like(weight) < density
        bias = torch.randn(8)
        options = {"stride": [stride] * rank, "padding": [padding] * rank, "dilation": [dilation] * rank}
        rest = {"groups": groups, "transposed": False, "output_padding": [0] * rank}
        program = Program(
            (Input("x", tuple(x.shape[1:])),), (Node("conv", ("x", "w", "b"), "y", {**options, **rest}),), ("y",)
        )
        expected = function(x, weight, bias, groups=groups, **options).numpy()
        answer = Network(program, {"w": weight.numpy(), "b": bias.numpy()}).predict(x.numpy())
        assert np.abs(answer - expected).max() < 1e-5 * (1 + np.abs(expected).max())


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.addmm(x, x, x.T @ x), lambda x: torch.addmm(x, x, torch.eye(4) + 1, beta=0.5, alpha=2),
        lambda x: torch.ops.aten.var.correction(x, [1], keepdim=True), lambda x: torch.var_mean(x, 1)[0][:, None],
        lambda x: torch.select_scatter(x, x[:, 0], 1, 2), lambda x: torch.select_scatter(x, x[:, 0], 1, -1),
        lambda x: torch.slice_scatter(x, 2 * x[:, :2], 1, 0, 4, 2), lambda x: torch.slice_scatter(x, 2 * x, 1),
    ],
)  # fmt: skip
def test_what_torch_may_leave_out_weigh_or_write_into_is_traced_as_it_is_meant(
    function: Callable[[Tensor], Tensor],
) -> None:
    class Written(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return function(x)

    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    program, tensors = trace(Written(), [x])
    assert np.allclose(Network(program, tensors).predict(x.numpy()), function(x).numpy(), atol=1e-5)


def test_networks_are_called_by_name_and_their_parameters_keep_theirs(tmp_path: Path) -> None:
    torch.manual_seed(0)
    nets = {"decoder": nn.Linear(7, 3), "critic": nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))}

    def policy(named, state, noise):
        action = torch.tanh(named.decoder(torch.cat([state, noise], 1)))
        return action * named.critic(torch.cat([state, action], 1)).sigmoid(), action

    inputs = {"state": torch.randn(2, 5), "noise": torch.randn(2, 2)}
    program, tensors = trace(policy, inputs, networks=nets)
    assert set(tensors) == {f"{net}.{name}" for net in nets for name, _ in nets[net].named_parameters()}
    write(tmp_path / "a.pack", program, tensors)
    state, noise = torch.randn(11, 5), torch.randn(11, 2)
    answers = load(tmp_path / "a.pack").predict(noise=noise.numpy(), state=state.numpy())
    with torch.no_grad():
        expected = policy(type("Nets", (), nets), state, noise)
    assert all(np.allclose(ours, theirs, atol=1e-6) for ours, theirs in zip(answers, expected))


def test_weights_written_as_products_keep_their_names() -> None:
    layer = nn.Linear(5, 3)

    def product(nets, x):
        return torch.addmm(nets.layer.bias, x, nets.layer.weight.T) + x @ nets.layer.weight.t()

    program, tensors = trace(product, [torch.randn(2, 5)], networks={"layer": layer})
    assert set(tensors) == {"layer.weight", "layer.bias"}
    x = torch.randn(4, 5)
    expected = (2 * (layer(x)) - layer.bias).detach().numpy()
    assert np.allclose(Network(program, tensors).predict(x.numpy()), expected, atol=1e-5)


def test_training_mode_is_put_back_and_dropout_is_off() -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.BatchNorm1d(4)).train()
    net[2].eval()
    program, _ = trace(net, [torch.randn(3, 4)])
    assert net.training and net[1].training and not net[2].training
    assert [node.op for node in program.nodes] == ["linear", "batch_norm"]


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: torch.fft.fft(x).real, "fft"),
        (lambda x: x - x.mean(), "over all samples"),
        (lambda x: x if x.sum() > 0 else -x, "torch.export"),
        (lambda x: x / x.shape[0], "number of samples"),
    ],
)
def test_what_a_program_cannot_say_is_refused_by_name(function, words: str) -> None:
    with pytest.raises(UserError, match=words):
        trace(function, [torch.randn(3, 4)])


def test_a_program_survives_json() -> None:
    for name in PREDICTIONS:
        program = traced(name)[1]
        assert Program.from_json(program.to_json()).to_json() == program.to_json()


def test_a_pack_of_a_convolutional_network_keeps_its_masks(tmp_path: Path) -> None:
    module, program, tensors = traced("classifier")
    generator = np.random.default_rng(0)
    masks = {name: generator.random(value.shape) < 0.1 for name, value in tensors.items() if value.ndim > 1}
    write(tmp_path / "a.pack", program, tensors, masks=masks)
    pruned = copy.deepcopy(module)
    with torch.no_grad():
        for name, parameter in pruned.named_parameters():
            if name in masks:
                parameter.mul_(torch.from_numpy(masks[name]))
    x = torch.randn(6, 1, 12, 12)
    assert np.allclose(load(tmp_path / "a.pack").predict(x.numpy()), pruned(x).detach().numpy(), atol=1e-6)


@pytest.mark.parametrize("transposed", [False, True])
def test_convolutions_and_norms_of_no_samples_are_no_samples(transposed: bool) -> None:
    none = np.zeros((0, 4, 6, 6), dtype=np.float32)
    weight = np.ones((4, 2, 3, 3) if transposed else (6, 2, 3, 3), dtype=np.float32)
    options = {"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 2, "output_padding": (0, 0)}
    found = conv(none, weight, transposed=transposed, **options)  # type: ignore[arg-type]
    assert found.shape == ((0, 4, 8, 8) if transposed else (0, 6, 4, 4))
    assert group_norm(none, groups=2, epsilon=1e-5).shape == none.shape


def test_what_is_added_at_a_place_twice_counts_twice() -> None:
    x, index, source = np.zeros((4, 2), np.float32), np.array([1, 3, 1]), np.float32([[1, 2], [3, 4], [5, 6]])
    found = SHAPES["index_add"](x, index, source, axis=0)
    expected = torch.zeros(4, 2).index_add(0, torch.tensor(index), torch.tensor(source))
    assert np.array_equal(found, expected.numpy()) and not x.any()
