"""The kernels and their derivatives against dense torch in float64."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fewer.core.errors import UserError
from fewer.sparse import pattern as pattern_module
from fewer.sparse.pattern import Chain, Pattern
from fewer.sparse.products import Dot, Mul, apply_chain, compose

kernels = pattern_module.kernels
SETS = kernels.sets() if kernels is not None else ()


@pytest.fixture(params=[*SETS, "torch"])
def instruction_set(request: Any, monkeypatch: Any) -> Iterator[str]:
    """Every instruction set of this processor, and torch's CSR kernels, which serve where nothing was compiled."""
    if request.param == "torch":
        monkeypatch.setattr(pattern_module, "kernels", None)
        yield request.param
        return
    kernels.select(request.param)
    yield request.param
    kernels.select(SETS[-1])


def random_mask(out_features: int, in_features: int, share: float, seed: int) -> Tensor:
    return torch.rand(out_features, in_features, generator=torch.Generator().manual_seed(seed)) < share


def dense_of(pattern: Pattern, values: Tensor) -> Tensor:
    rows, columns = pattern.positions(values.device)
    return values.new_zeros(pattern.out_features, pattern.in_features).index_put((rows, columns), values)


def example(
    samples: int, sizes: tuple[int, int], share: float, seed: int = 0
) -> tuple[Pattern, Tensor, Tensor, Tensor]:
    """A pattern, its values, an input and an output gradient."""
    torch.manual_seed(seed)
    pattern = Pattern.of(random_mask(sizes[1], sizes[0], share, seed))
    values = torch.randn(pattern.kept, dtype=torch.float64)
    x, g = (torch.randn(samples, size, dtype=torch.float64) for size in sizes)
    return pattern, values, x, g


@pytest.mark.parametrize("samples", [1, 3, 17, 100, 1001])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_every_instruction_set_gives_the_products_of_a_dense_matrix(
    instruction_set: str, samples: int, dtype: torch.dtype
) -> None:
    pattern, values, x, g = example(samples, (37, 29), 0.2)
    weight = dense_of(pattern, values)
    rows, columns = pattern.positions(x.device)
    near = {"atol": 1e-10, "rtol": 1e-10} if dtype is torch.float64 else {"atol": 2e-3, "rtol": 1e-4}
    values, x, g = values.to(dtype), x.to(dtype), g.to(dtype)
    torch.testing.assert_close(Mul.apply(values, x, pattern, False).double(), x.double() @ weight.t(), **near)
    torch.testing.assert_close(Mul.apply(values, g, pattern, True).double(), g.double() @ weight, **near)
    expected = (g.double().t() @ x.double())[rows, columns]
    torch.testing.assert_close(Dot.apply(g, x, pattern).double(), expected, **near)


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    samples=st.integers(1, 140),
    share=st.sampled_from([0.0, 0.03, 0.3, 1.0]),
    layout=st.sampled_from(["batch", "feature", "strided", "expanded"]),
    seed=st.integers(0, 99),
)
def test_products_are_right_for_any_shape_sparsity_and_layout(
    sizes: tuple[int, int], samples: int, share: float, layout: str, seed: int
) -> None:
    pattern, values, x, g = example(samples, sizes, share, seed)
    if layout == "feature":
        x, g = x.t().contiguous().t(), g.t().contiguous().t()
    elif layout == "strided":
        x, g = x.repeat(1, 2)[:, ::2], g.repeat(2, 1)[::2]
    elif layout == "expanded":
        x, g = x[:1].expand(samples, -1), g[:, :1].expand(-1, sizes[1])
    weight = dense_of(pattern, values)
    rows, columns = pattern.positions(x.device)
    torch.testing.assert_close(Mul.apply(values, x, pattern, False), x @ weight.t())
    torch.testing.assert_close(Mul.apply(values, g, pattern, True), g @ weight)
    torch.testing.assert_close(Dot.apply(g, x, pattern), (g.t() @ x)[rows, columns])


def test_products_pass_first_and_second_derivatives_by_finite_differences(instruction_set: str) -> None:
    pattern, values, x, g = (t.requires_grad_() if isinstance(t, Tensor) else t for t in example(3, (4, 5), 0.4))
    for transposed, activation in ((False, x), (True, g)):
        inputs = (values, activation, pattern, transposed)
        assert torch.autograd.gradcheck(Mul.apply, inputs)
        assert torch.autograd.gradgradcheck(Mul.apply, inputs)
    assert torch.autograd.gradcheck(Dot.apply, (g, x, pattern))
    assert torch.autograd.gradgradcheck(Dot.apply, (g, x, pattern))


@pytest.mark.parametrize("axes", [(0, 0), (None, 0), (0, None), (None, 1)])
def test_products_under_vmap_equal_a_loop(instruction_set: str, axes: tuple[int | None, int | None]) -> None:
    pattern, values, x, _ = example(6, (7, 5), 0.4)
    many_values = torch.stack([values, 2 * values, -values]) if axes[0] == 0 else values
    many_x = x if axes[1] is None else torch.stack([x, x + 1, 3 * x], dim=axes[1])
    together = torch.func.vmap(lambda v, a: Mul.apply(v, a, pattern, False), in_dims=axes)(many_values, many_x)
    for i in range(3):
        v = many_values[i] if axes[0] == 0 else values
        a = x if axes[1] is None else many_x.select(axes[1], i)
        torch.testing.assert_close(together[i], a @ dense_of(pattern, v).t())


def test_a_fused_chain_equals_its_composition_in_values_and_both_derivatives(instruction_set: str) -> None:
    sizes, seed = (9, 21, 13, 4), 3
    patterns = tuple(Pattern.of(random_mask(o, i, 0.3, seed)) for i, o in pairwise(sizes))
    for relu in ((True, True, False), (True, False, True)):
        chain = Chain(patterns, relu)
        torch.manual_seed(seed)
        x = torch.randn(30, 9, dtype=torch.float64, requires_grad=True)
        weights: list[Tensor | None] = []
        for index, part in enumerate(patterns):
            weights.append(torch.randn(part.kept, dtype=torch.float64, requires_grad=True))
            bias = torch.randn(part.out_features, dtype=torch.float64, requires_grad=True)
            weights.append(None if index == 1 else bias)
        leaves = [x, *[w for w in weights if w is not None]]
        found = []
        for way in (apply_chain, compose):
            y = way(chain, x, tuple(weights))
            first = torch.autograd.grad(y.square().sum(), leaves, create_graph=True)
            second = torch.autograd.grad(sum(g.square().sum() for g in first), leaves)
            found.append([y, *first, *second])
        for ours, theirs in zip(*found):
            torch.testing.assert_close(ours, theirs)


@pytest.mark.skipif(kernels is None, reason="the kernels were not compiled")
@pytest.mark.parametrize("threads", [1, 2, 3, 5])
@pytest.mark.parametrize("samples", [1, 5, 50, 333])
def test_any_number_of_threads_gives_the_same_answer(threads: int, samples: int) -> None:
    pattern, values, x, g = example(samples, (31, 23), 0.3)
    bias = torch.randn(23, dtype=torch.float64)
    y = pattern.alone.forward(x, (values, bias), threads)
    torch.testing.assert_close(y, x @ dense_of(pattern, values).t() + bias)
    gx, (g_values, g_bias) = pattern.alone.backward(g, x, (values, bias), threads, wants=(True, True))
    rows, columns = pattern.positions(x.device)
    torch.testing.assert_close(gx, g @ dense_of(pattern, values))
    torch.testing.assert_close(g_values, (g.t() @ x)[rows, columns])
    torch.testing.assert_close(g_bias, g.sum(0))


@pytest.mark.skipif(kernels is None, reason="the kernels were not compiled")
def test_two_threads_give_the_same_bits_every_time() -> None:
    pattern, values, x, g = example(500, (31, 23), 0.3)
    first, again = (pattern.alone.backward(g, x, (values, None), 2, wants=(True, True)) for _ in range(2))
    assert torch.equal(first[0], again[0]) and torch.equal(first[1][0], again[1][0])


def test_columns_beyond_sixteen_bits_are_right(instruction_set: str) -> None:
    mask = torch.zeros(3, 70_000, dtype=torch.bool)
    mask[0, 65_536] = mask[2, 69_999] = mask[2, 1] = True
    pattern = Pattern.of(mask)
    values = torch.tensor([2.0, 3.0, 5.0], dtype=torch.float64)
    x = torch.arange(70_000, dtype=torch.float64).repeat(2, 1)
    assert Mul.apply(values, x, pattern, False).tolist() == [[131072.0, 0.0, 3.0 + 5 * 69_999]] * 2
    assert Mul.apply(values, torch.ones(1, 3, dtype=torch.float64), pattern, True)[0, 69_999] == 5.0


def test_equal_masks_share_one_pattern_and_give_the_mask_back() -> None:
    mask = random_mask(6, 5, 0.5, 1)
    assert Pattern.of(mask) is Pattern.of(mask.clone())
    assert torch.equal(Pattern.of(mask).mask(), mask)


def test_a_mask_that_is_not_a_boolean_matrix_is_refused() -> None:
    with pytest.raises(UserError, match=r"torch\.bool"):
        Pattern.of(torch.ones(3, 3))


def test_shapes_and_types_that_do_not_fit_never_reach_the_kernels() -> None:
    pattern, values, x, g = example(4, (7, 5), 0.4)
    for wrong in (x[:, :6], x.float(), x[0]):
        with pytest.raises(UserError, match="same type"):
            Mul.apply(values, wrong, pattern, False)
    for arguments in ((g[:3], x), (g[:, :4], x), (g.float(), x)):
        with pytest.raises(UserError, match="same type"):
            Dot.apply(*arguments, pattern)
    for weights in ((values[:-1], None), (values.float(), None), (values, g[0].float())):
        with pytest.raises(UserError, match="as the layer was made"):
            apply_chain(pattern.alone, x, weights)
