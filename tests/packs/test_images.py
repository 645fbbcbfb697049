"""Convolutional networks as one call in C: the same answers as numpy, whatever the shape, the kernels and the batch."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from fewer.packs.images import planes
from fewer.packs.images.choice import Way, cost, units, way
from fewer.packs.images.layout import Geometry
from fewer.packs.images.operations import Convolution, Map, able, lowered
from fewer.packs.images.region import regions
from fewer.packs.program import Input, Node, Program
from fewer.packs.runtime.runtime import Network
from fewer.packs.trace.trace import trace

CONVOLUTIONS = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
POOLS = {1: nn.MaxPool1d, 2: nn.MaxPool2d, 3: nn.MaxPool3d}
NORMS = {1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}


class Residual(nn.Module):
    """Everything at once: strides, norms, sums that meet, branches that are joined, pools with padding."""

    def __init__(self, rank: int, groups: int) -> None:
        super().__init__()
        convolution, norm = CONVOLUTIONS[rank], NORMS[rank]
        self.first = nn.Sequential(convolution(4, 8, 3, padding=1, groups=groups), norm(8), nn.ReLU())
        self.second = nn.Sequential(convolution(8, 8, 3, padding=2, dilation=2), norm(8))
        self.down = nn.Sequential(convolution(8, 12, 3, stride=2, padding=1, bias=False), norm(12), nn.LeakyReLU(0.1))
        self.short = nn.Sequential(convolution(8, 12, 1, stride=2, bias=False), norm(12))
        self.pool = POOLS[rank](3, stride=2, padding=1)
        self.last = convolution(24, 5, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        x = torch.relu(self.second(x) + x)
        x = torch.cat([self.down(x), torch.tanh(self.short(x)) * 2 + 1], dim=1)
        return self.last(self.pool(x))


def pruned(network: nn.Module, density: float, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    for name, value in network.state_dict().items():
        if name.endswith("running_var"):
            value.uniform_(0.5, 2.0)
        elif value.is_floating_point():
            value.normal_(0.0, 0.4)
        if value.ndim > 2:
            value.mul_(torch.rand(value.shape) < density)
    return network.eval()


def networks(network: nn.Module, shape: tuple[int, ...]) -> tuple[Network, Network]:
    """With the kernels, and in numpy alone."""
    program, tensors = trace(network, {"x": torch.randn(2, *shape)})
    return Network(program, tensors), Network(program, tensors, compiled=False)


@pytest.fixture(params=["avx512_whole", "avx512", "avx2", "portable"])
def kernels(request: pytest.FixtureRequest) -> Iterator[str]:
    compiled = planes.kernels()
    if compiled is None:
        pytest.skip("no C kernels")
    try:
        compiled.use(request.param)
    except ValueError:
        pytest.skip(f"no {request.param} here")
    yield request.param
    compiled.use(None)


@pytest.mark.parametrize("density", [0.05, 1.0])
@pytest.mark.parametrize(("rank", "groups"), [(1, 1), (2, 1), (2, 4), (3, 2)])
def test_images_answer_as_numpy_does(rank: int, groups: int, density: float, kernels: str) -> None:
    shape = (4, *(9, 14, 11)[:rank])
    fast, plain = networks(pruned(Residual(rank, groups), density), shape)
    assert "images" in [step.name for step in fast._steps]
    for samples in (1, 3, 17):
        x = np.random.default_rng(samples).standard_normal((samples, *shape)).astype(np.float32)
        found, wanted = fast.predict(x), plain.predict(x)
        assert np.abs(found - wanted).max() <= 1e-5 * max(np.abs(wanted).max(), 1.0)


@pytest.mark.parametrize("case", itertools.product([1, 2, 3], [0, 1, 3], [1, 2], [1, 5, 6]))
def test_every_stride_padding_dilation_and_size_is_right(case: tuple[int, int, int, int]) -> None:
    stride, padding, dilation, size = case
    if size + 2 * padding < 2 * dilation + 1:
        pytest.skip("the window does not fit")
    network = pruned(
        nn.Sequential(nn.Conv2d(3, 5, 3, stride, padding, dilation), nn.ReLU(), nn.Conv2d(5, 2, 1)), 0.4, seed=size
    )
    fast, plain = networks(network, (3, size, size + 4))
    x = np.random.default_rng(0).standard_normal((7, 3, size, size + 4)).astype(np.float32)
    np.testing.assert_allclose(fast.predict(x), plain.predict(x), atol=1e-5)


class Separable(nn.Module):
    """As mobile networks are: a kernel for each channel, which may have a stride, then a dense product, and a sum."""

    def __init__(self, channels: int, stride: int) -> None:
        super().__init__()
        self.each = nn.Conv2d(channels, channels, 3, (1, stride), 1, groups=channels)
        self.all = nn.Conv2d(channels, 11, 3, padding=1)
        self.last = nn.Conv2d(11, 11, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.all(torch.sigmoid(self.each(x))))
        return torch.tanh(self.last(x) + x)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("width", [1, 2, 3, 5, 8, 13, 31, 40])
def test_dense_and_separable_convolutions_are_right_at_every_width(width: int, stride: int, kernels: str) -> None:
    # 30 * 9 weights of a channel are more than one panel holds
    fast, plain = networks(pruned(Separable(30, stride), 1.0), (30, 3, width))
    for samples in (1, 4):
        x = np.random.default_rng(samples).standard_normal((samples, 30, 3, width)).astype(np.float32)
        np.testing.assert_allclose(fast.predict(x), plain.predict(x), atol=2e-5)
    kinds = {step[0] for step in written(fast, 1)}
    assert planes._DENSE in kinds and (planes._SPACED in kinds) == (stride == 2)


def written(network: Network, images: int) -> list[tuple[Any, ...]]:
    """The steps of a network's first part on images."""
    shapes = network._shapes(images, 0)
    part = next(regions(network.program, network._tensors, shapes)).images
    return planes.Writer(part, part.layout.geometries(images), images).steps


@pytest.mark.parametrize("size", [(1, 1, 1), (1, 4, 4), (1, 7, 7), (2, 3, 17), (1, 28, 28), (3, 2, 2)])
@pytest.mark.parametrize("gaps", [(0, 0, 0), (0, 1, 1), (1, 1, 1)])
def test_runs_of_neighbours_cover_every_place_and_none_between_rows(size: Any, gaps: Any) -> None:
    geometry = Geometry(tuple(n + g for n, g in zip(size, gaps)), gaps, 1)  # type: ignore[arg-type]
    unit, starts = units(size, geometry)
    covered = {int(start) + i for start in starts for i in range(unit)}
    steps = geometry.steps
    wanted = {sum(i * s for i, s in zip(at, steps)) for at in itertools.product(*map(range, size))}
    assert covered == wanted


def test_the_cheaper_way_is_chosen_by_what_is_kept() -> None:
    weight = (np.random.default_rng(0).random((64, 64, 1, 3, 3)) < 0.02).astype(np.float32)
    one = Convolution("x", "y", weight, np.zeros(64, np.float32), (1, 1, 1), (0, 1, 1), (1, 1, 1), 1)
    geometry = Geometry((1, 17, 17), (0, 1, 1), 1)
    assert way(one, (1, 16, 16), geometry) is Way.SPARSE
    assert way(replace(one, weight=np.ones_like(one.weight)), (1, 16, 16), geometry) is Way.DENSE
    points = np.zeros((128, 128, 1, 1, 1), np.float32)
    points.reshape(-1)[::4] = 1.0
    assert way(replace(one, weight=points), (1, 16, 16), geometry) is Way.PANEL


@pytest.mark.parametrize(
    ("outputs", "inputs", "kept", "chosen", "wanted"),
    [
        # 419 places are 53 vectors of eight, in five passes of twelve, of which three outputs are written
        (3, 5, 2, Way.SPARSE, 2 * (1.3 * 53 + 3 * 5) + 2 * 3 * 53),
        # 100 runs of four are 25 vectors of sixteen, in seven passes of four, of panels with all taps
        (64, 64, 1024, Way.PANEL, (1024 * (1.3 * 25 + 1.2 * 7) + 64 * 6 * 7 + (3 + 4) * (64 + 64) * 25) / 0.8),
        # by groups of eight outputs; then panels in and out
        (64, 32, 2048, Way.DENSE, 1.05 * 64 * 32 * 25 + 1.5 * (32 + 64) * 100),
        # read again in nine passes
        (601, 400, 240_400, Way.DENSE, 1.05 * 608 * 400 * 25 + 1.5 * 1001 * 100 + 1.5 * 240_400 * 9),
    ],
)
def test_a_convolution_costs_its_vectors_its_passes_and_its_copies(
    outputs: int, inputs: int, kept: int, chosen: Way, wanted: float
) -> None:
    weight = (np.arange(outputs * inputs) < kept).astype(np.float32).reshape(outputs, inputs, 1, 1, 1)
    one = Convolution("x", "y", weight, np.zeros(outputs, np.float32), (1, 1, 1), (0, 0, 0), (1, 1, 1), 1)
    found, best = cost(one, (1, 10, 20), Geometry((1, 10, 21), (0, 0, 1), 2))
    assert found == pytest.approx(wanted) and best is chosen


@pytest.mark.parametrize(("width", "unit"), [(1, 1), (2, 2), (3, 1), (4, 4), (7, 4), (12, 4), (15, 8), (16, 16)])
def test_a_row_is_run_through_in_the_lengths_that_waste_least(width: int, unit: int) -> None:
    wide = Geometry((2, 3, width + 1), (0, 0, 1), 1)
    assert units((2, 3, width), wide)[0] == unit


def test_two_scales_one_after_the_other_are_one_and_an_activation_joins_them() -> None:
    nodes = (
        Node("mul", ("x",), "a", {"right": 2.0}), Node("sub", ("a",), "b", {"right": 3.0}),
        Node("div", ("b",), "c", {"right": 4.0}), Node("relu", ("c",), "d"),
    )  # fmt: skip
    shapes = dict.fromkeys("xabcd", (1, 3, 4, 4))
    assert all(able(node, {}, shapes) is True for node in nodes)
    (found,) = lowered(nodes, {}, shapes, {"d"})
    assert isinstance(found, Map) and (found.source, found.target, found.activation[0]) == ("x", "d", 1)
    assert found.factor is not None and found.factor.tolist() == [0.5] * 3
    assert found.shift is not None and found.shift.tolist() == [-0.75] * 3


@pytest.mark.parametrize("first", [{"op": "mul", "right": 1.0}, {"op": "sub", "right": 0.0}])
def test_a_number_that_changes_nothing_before_images_is_no_obstacle(first: dict[str, Any]) -> None:
    window = {"kernel": [2, 2], "stride": [2, 2], "padding": [0, 0], "dilation": [1, 1], "ceil": False}
    nodes = (Node(first["op"], ("x",), "a", {"right": first["right"]}), Node("max_pool", ("a",), "y", window))
    network = Network(Program((Input("x", (1, 2, 4)),), nodes, ("y",)), {})
    assert network.predict(np.arange(8, dtype=np.float32).reshape(1, 1, 2, 4)).tolist() == [[[[5, 7]]]]


def test_images_that_read_many_weights_for_few_places_pass_together() -> None:
    def together(channels: int, size: int) -> int:
        net, _ = networks(nn.Conv2d(channels, channels, 3, padding=1), (channels, size, size))
        return next(regions(net.program, net._tensors, net._shapes(1, 0))).images.together

    assert together(256, 4) > 1 and together(16, 64) == 1


def test_a_stride_that_no_image_has_takes_no_memory() -> None:
    network = pruned(nn.Sequential(nn.Conv2d(3, 5, 3, padding=1), nn.ReLU(), nn.Conv2d(5, 2, 1, stride=2)), 0.4)
    program, tensors = trace(network, {"x": torch.randn(2, 3, 6, 6)})
    first, middle, last = program.nodes
    attributes = {**last.attributes, "stride": [1 << 31, 1]}
    claimed = Program(program.inputs, (first, middle, replace(last, attributes=attributes)), program.outputs)
    fast, plain = Network(claimed, tensors), Network(claimed, tensors, compiled=False)
    x = np.random.default_rng(0).standard_normal((2, 3, 6, 6)).astype(np.float32)
    assert fast.predict(x).shape == (2, 2, 1, 6)
    np.testing.assert_allclose(fast.predict(x), plain.predict(x), atol=1e-5)


def test_a_second_call_does_not_see_the_first_one() -> None:
    fast, plain = networks(pruned(Residual(2, 1), 0.3), (4, 8, 8))
    lot = np.random.default_rng(0)
    huge = (1e6 * lot.standard_normal((9, 4, 8, 8))).astype(np.float32)
    fast.predict(huge)  # whatever it leaves between images is not the padding of the next
    x = lot.standard_normal((9, 4, 8, 8)).astype(np.float32)
    np.testing.assert_allclose(fast.predict(x), plain.predict(x), atol=1e-5)
    np.testing.assert_allclose(fast.predict(x[:1]), plain.predict(x[:1]), atol=1e-5)
    assert fast.predict(x[:0]).shape == (0, *plain.predict(x).shape[1:])


def test_values_that_others_read_come_out_of_a_part_of_a_program() -> None:
    class Skip(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)

        def forward(self, x: Tensor) -> Tensor:
            a = torch.relu(self.one(x))
            b = self.two(a)
            return torch.softmax(b, dim=1) * a  # softmax is not on planes, and reads beside it

    fast, plain = networks(pruned(Skip(), 0.5), (2, 6, 6))
    assert [step.name for step in fast._steps].count("images") == 3
    x = np.random.default_rng(0).standard_normal((5, 2, 6, 6)).astype(np.float32)
    np.testing.assert_allclose(fast.predict(x), plain.predict(x), atol=1e-6)


class Windows(nn.Module):
    """Pools of every kind, then another size."""

    def __init__(self, rank: int, stride: int, mode: str, factor: float | None) -> None:
        super().__init__()
        means = {1: nn.AvgPool1d, 2: nn.AvgPool2d, 3: nn.AvgPool3d}[rank]
        self.most = POOLS[rank](3, stride, padding=1)
        self.mean, self.all = means(3, stride, padding=1, count_include_pad=False), means(2, stride)
        words = {"align_corners": False} if mode != "nearest" else {}
        size = {"scale_factor": factor} if factor else {"size": (7, 11, 5)[:rank]}
        self.resize = nn.Upsample(mode=mode, **size, **words)  # type: ignore[arg-type]

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return self.resize(self.most(x)), self.mean(x), torch.sigmoid(self.all(x))


@pytest.mark.parametrize("factor", [None, 2.0, 1.7])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize(("rank", "mode"), [(1, "linear"), (2, "bilinear"), (2, "nearest"), (3, "trilinear")])
def test_pools_and_other_sizes_need_no_convolution_beside_them(
    rank: int, mode: str, stride: int, factor: float | None, kernels: str
) -> None:
    torch_net = Windows(rank, stride, mode, factor).eval()
    fast, _ = networks(torch_net, (3, 6, 9, 4)[: rank + 1])
    assert {step.name for step in fast._steps} - {"reshape"} == {"images"}
    x = np.random.default_rng(0).standard_normal((3, 3, 6, 9, 4)[: rank + 2]).astype(np.float32)
    for found, wanted in zip(fast.predict(x), torch_net(torch.from_numpy(x)), strict=True):
        np.testing.assert_allclose(found, wanted.numpy(), atol=1e-6)


def test_the_largest_of_a_window_with_a_nan_is_a_nan(kernels: str) -> None:
    fast, plain = networks(nn.MaxPool2d(3, 1, 1), (1, 6, 20))
    x = np.random.default_rng(0).standard_normal((1, 1, 6, 20)).astype(np.float32)
    x[0, 0, 3, [0, 7, 19]] = np.nan
    np.testing.assert_array_equal(fast.predict(x), plain.predict(x))


def test_what_nobody_reads_yet_does_not_part_a_network_on_images() -> None:
    class Beside(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two, self.turn = nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 4, 3), nn.Linear(4, 3)

        def forward(self, x: Tensor) -> Tensor:
            x = self.one(x)
            turn = self.turn(x.mean((2, 3)))  # is made before the second convolution, and read after it
            return self.two(x).mean((2, 3)) @ turn.mean(0).new_ones(4, 3) + turn

    fast, plain = networks(pruned(Beside(), 0.5), (2, 6, 6))
    assert [step.name for step in fast._steps].count("images") == 3  # a call, and its two values
    x = np.random.default_rng(0).standard_normal((5, 2, 6, 6)).astype(np.float32)
    np.testing.assert_allclose(fast.predict(x), plain.predict(x), atol=1e-5)


def test_a_program_that_is_not_about_images_has_no_such_part() -> None:
    fast, _ = networks(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Softmax(-1)), (8,))
    assert all(step.name != "images" for step in fast._steps)
