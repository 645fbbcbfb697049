"""Images side by side in a vector: the same answers as one behind the other, and only where that is faster."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from fewer.packs.images import planes
from fewer.packs.images.region import regions
from tests.packs.test_images import Residual, kernels, networks, pruned
from tests.packs.test_images_refused import SPARSE, dense, panel, resize, spaced, sparse

__all__ = ["kernels"]  # a fixture


@pytest.fixture(params=["behind", "beside"])
def order(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How several images lie: one behind the other, or side by side however few there are."""
    monkeypatch.setattr(planes, "images_beside", lambda *_: int(request.param == "beside"))
    return str(request.param)


@pytest.mark.parametrize("density", [0.05, 1.0])
@pytest.mark.parametrize(("rank", "groups"), [(1, 1), (2, 4), (3, 2)])
def test_images_side_by_side_answer_as_numpy_does(
    rank: int, groups: int, density: float, kernels: str, order: str
) -> None:
    shape = (4, *(9, 14, 11)[:rank])
    fast, plain = networks(pruned(Residual(rank, groups), density), shape)
    for samples in (1, 15, 16, 17, 34):
        x = np.random.default_rng(samples).standard_normal((samples, *shape)).astype(np.float32)
        found, wanted = fast.predict(x), plain.predict(x)
        assert np.abs(found - wanted).max() <= 1e-5 * max(np.abs(wanted).max(), 1.0)


def test_images_that_fill_no_vector_side_by_side_follow_one_behind_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planes, "images_beside", lambda *_: 5)
    fast, plain = networks(pruned(Residual(2, 1), 0.2), (4, 9, 14))
    images = next(regions(fast.program, fast._tensors, fast._shapes(1, 0))).images
    assert images.beside is not None
    parts = {"behind": (images, images.together), "beside": (images.beside, 1)}
    counted = dict.fromkeys(parts, 0)

    def counting(name: str) -> Any:
        part, count = parts[name]
        call = part.compiled(count)

        def counts(*x: Any) -> Any:
            counted[name] += len(x[0])
            return call(*x)

        return {count: counts}

    for name, (part, _) in parts.items():
        part._ready |= counting(name)
    for samples, behind in ((4, 4), (5, 0), (20, 4), (21, 0)):
        counted |= dict.fromkeys(parts, 0)
        x = np.random.default_rng(samples).standard_normal((samples, 4, 9, 14)).astype(np.float32)
        wanted = plain.predict(x)
        np.testing.assert_allclose(images(x)[0].reshape(wanted.shape), wanted, atol=1e-5)
        assert counted == {"behind": behind, "beside": samples - behind}


def test_many_small_images_pass_side_by_side_and_few_or_large_ones_do_not() -> None:
    def beside(channels: int, size: int, density: float) -> int:
        net, _ = networks(pruned(nn.Conv2d(channels, channels, 3, padding=1), density), (channels, size, size))
        images = next(regions(net.program, net._tensors, net._shapes(1, 0))).images
        return images._worth if images.beside else 0

    assert 2 <= beside(64, 8, 0.05) <= 16
    assert beside(64, 8, 1.0) == 0  # all weights at once are faster
    assert beside(32, 256, 0.05) == 0  # too large for the caches


@pytest.mark.parametrize("case", itertools.product([1, 2, 3], [0, 1, 3], [1, 2], [1, 6]))
def test_every_stride_padding_and_dilation_is_right_side_by_side(case: tuple[int, int, int, int], order: str) -> None:
    stride, padding, dilation, size = case
    if size + 2 * padding < 2 * dilation + 1:
        pytest.skip("the window does not fit")
    layers = nn.Sequential(nn.Conv2d(3, 5, 3, stride, padding, dilation), nn.ReLU(), nn.Conv2d(5, 2, 1))
    fast, plain = networks(pruned(layers, 0.4, seed=size), (3, size, size + 4))
    x = np.random.default_rng(0).standard_normal((7, 3, size, size + 4)).astype(np.float32)
    np.testing.assert_allclose(fast.predict(x), plain.predict(x), atol=1e-5)


@pytest.mark.parametrize("counts", [True, False])
def test_means_of_windows_over_the_edge_are_right(counts: bool, kernels: str, order: str) -> None:
    torch_net = nn.Sequential(nn.AvgPool2d((3, 2), (2, 1), 1, count_include_pad=counts), nn.AvgPool2d(2))
    fast, _ = networks(torch_net, (3, 9, 21))
    x = np.random.default_rng(0).standard_normal((18, 3, 9, 21)).astype(np.float32)
    np.testing.assert_allclose(fast.predict(x), torch_net(torch.from_numpy(x)).numpy(), atol=1e-6)


def test_the_largest_of_a_window_with_a_nan_is_a_nan_side_by_side(kernels: str, order: str) -> None:
    fast, plain = networks(nn.MaxPool2d(3, 1, 1), (1, 6, 20))
    x = np.random.default_rng(0).standard_normal((18, 1, 6, 20)).astype(np.float32)
    x[3, 0, 3, [0, 7, 19]] = np.nan
    np.testing.assert_array_equal(fast.predict(x), plain.predict(x))


def window(inside: int = 16, source: int = 0) -> tuple[Any, ...]:
    """The largest of each two of a row of 16."""
    steps, one = (16, 16, 16, 16, 1), (1, 1, 1)
    rest = ((1, 1, 1, 1, 8), 0, steps, 0, steps, (1, 1, inside), (1, 1, 2), (1, 1, 2), (0, 0, 0), one, False, False)
    return (3, source, -1, 1, (0, 0.0, 0.0, 0.0), rest)


@pytest.mark.parametrize(
    "wrong",
    [
        sparse(*SPARSE), dense(), panel(), resize(),  # what images side by side have no steps for
        spaced(step=6), spaced(offset=10), spaced(sizes=(2, 1, 1, 1, 4)), spaced(sizes=(1, 2, 1, 1, 4)),
        window(inside=17), window(source=2), (4, 0, 2, 0, *spaced()[4:]),
    ],
)  # fmt: skip
def test_steps_side_by_side_that_would_leave_their_buffers_are_refused(wrong: Any) -> None:
    compiled = planes.kernels()
    if compiled is None:
        pytest.skip("no C kernels")
    assert compiled.Planes([spaced(), spaced(step=3), window()], (16, 16), (1,), (1,), 1, True)
    with pytest.raises((ValueError, TypeError)):
        compiled.Planes([wrong], (16, 16), (1,), (1,), 1, True)
    with pytest.raises(ValueError):
        compiled.Planes([spaced()], (16, 16), (1,), (1,), 2, True)
