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
from fewer.packs.program import Program
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


@pytest.fixture(params=["avx512", "avx2", "portable"])
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


STEP = (0, 0, -1, 0, (0, 0.0, 0.0, 0.0))
SPARSE = (1, 8, 8, 0, 0, 0, 0, 8)


def sparse(*sizes: int, offset: int = 0) -> tuple[Any, ...]:
    """A convolution of one kept weight on a buffer of 16 numbers."""
    kept = np.array([0, 1], np.uint32), np.array([offset], np.uint32), np.ones(1, np.float32), np.zeros(1, np.float32)
    return (*STEP, (*sizes, *kept, np.zeros((0, 2), np.uint32)))


@pytest.mark.parametrize(
    "wrong",
    [
        sparse(1, 17, 0, 0, 0, 0, 0, 8),  # more places than the buffer has
        sparse(*SPARSE, offset=9),
        sparse(1, 8, 8, -1, 0, 0, 0, 8),
        sparse(1, 8, 8, 0, 0, 0, 9, 8),
        sparse(0, 8, 8, 0, 0, 0, 0, 8),
        (9, *sparse(*SPARSE)[1:]),
        (0, 3, -1, 0, *sparse(*SPARSE)[4:]),  # no such buffer
        "nonsense",
    ],
)
def test_steps_that_would_leave_their_buffers_are_refused(wrong: Any) -> None:
    compiled = planes.kernels()
    if compiled is None:
        pytest.skip("no C kernels")
    assert compiled.Planes([sparse(*SPARSE)], (16,), (1,), (1,), 1)
    with pytest.raises((ValueError, TypeError)):
        compiled.Planes([wrong], (16,), (1,), (1,), 1)


def test_a_program_that_is_not_about_images_has_no_such_part() -> None:
    fast, _ = networks(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Softmax(-1)), (8,))
    assert all(step.name != "images" for step in fast._steps)
