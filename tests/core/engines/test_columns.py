"""Convolutions of a cohort as products of matrices are torch's own, with their gradients."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.func import vmap
from torch.nn import functional

from fewer.core.engines.base import Training
from fewer.core.engines.cohort import Cohort
from fewer.core.engines.columns import column_conv2d
from fewer.core.engines.instead import Instead
from fewer.systems.vision.bench.cohort import CASES, measure
from fewer.systems.vision.task.task import Settings, Vision

torch.set_num_threads(1)


@pytest.mark.parametrize("direct", [0, 9])
@pytest.mark.parametrize(
    ("channels", "kernel", "options"),
    [
        (1, (3, 3), {}),
        (3, (3, 5), {"stride": (2, 1), "padding": (1, 0)}),
        (4, (1, 1), {"stride": 2}),
        (4, (3, 3), {"padding": "same"}),  # these two are left to torch
        (4, (3, 3), {"groups": 2, "dilation": 2}),
    ],
)
def test_columns_give_what_torchs_convolution_gives(
    channels: int, kernel: tuple[int, int], options: dict[str, Any], direct: int
) -> None:
    torch.manual_seed(0)
    images = torch.randn(3, 4, channels, 9, 11, dtype=torch.float64, requires_grad=True)  # 3 replicas
    shape = (3, 6, channels // options.get("groups", 1), *kernel)
    weight = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(3, 6, dtype=torch.float64, requires_grad=True)

    def answers() -> tuple[Tensor, ...]:
        found = vmap(lambda x, w, b: functional.conv2d(x, w, b, **options))(images, weight, bias)
        return found, *torch.autograd.grad(found.square().sum(), (images, weight, bias))

    plain = answers()
    with Instead(functional.conv2d, partial(column_conv2d, direct=direct)):
        columns = answers()
    for one, other in zip(plain, columns):
        assert torch.allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("direct", [0, 9])
def test_a_cohort_trains_the_same_with_columns(direct: int) -> None:
    task, training = Vision(Settings(network="cnn0")), Training(steps=10, batch=8, precision="float64")
    plain, columns = Cohort(task, training, range(3)), Cohort(task, training, range(3))
    columns.columns = direct
    for engine in (plain, columns):
        engine.advance(3)
    for name, network in plain.state.networks.items():
        other = columns.state.networks[name].weights
        assert not torch.equal(network.weights, other)  # the order of summation differs, so columns did run
        assert torch.allclose(network.weights, other, rtol=1e-9, atol=1e-9)


def test_the_bench_of_cohorts_times_both_sides_once_the_machine_is_free(tmp_path: Path) -> None:
    free = tmp_path / "free"
    free.touch()
    (row,) = measure(CASES[:1], ("graph",), 0.02, str(free))
    assert row.ours > 0 and row.theirs > 0 and row.ratio == row.ours / row.theirs
