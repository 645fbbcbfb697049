"""Convolutions on kept weights against torch's dense ones in float64, alone and inside a training."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from fewer.attack.hardening.harden import harden
from fewer.core.engines.base import Training
from fewer.core.engines.loop import Loop, fit
from fewer.core.engines.optimizer import Optimizer
from fewer.core.engines.plain import Plain
from fewer.core.errors import UserError
from fewer.core.files.run_folder import Folder
from fewer.pruning.pruning import Pruning, prune_
from fewer.pruning.schedules.gradual import events_for
from fewer.sparse import pattern as pattern_module
from fewer.sparse.convert import convert
from fewer.sparse.convolution import SparseConvolution
from fewer.sparse.engine import sparse_engine, worthwhile
from fewer.sparse.norm import Norm, normed
from fewer.sparse.planes import Planes
from fewer.sparse.products import Dot, Mul, apply_chain, compose
from tests.sparse.test_engine import furthest
from tests.toys import Blobs

kernels = pattern_module.kernels
SETS = kernels.sets() if kernels is not None else ()
TRAINING = Training(steps=60, batch=10, precision="float64", optimizer=Optimizer("adam", 3e-3, weight_decay=1e-3))


class Pictures(Blobs):
    """A small residual network: strides, batch norms, a shortcut, groups; points become pictures of 7 x 7."""

    def networks(self) -> dict[str, nn.Module]:
        seen = (nn.Linear(4, 98), nn.Tanh(), nn.Unflatten(1, (2, 7, 7)))
        first = (nn.Conv2d(2, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU())
        down = (
            nn.Conv2d(8, 12, 3, 2, 1),
            nn.BatchNorm2d(12),
            nn.Tanh(),
            nn.Conv2d(12, 12, (3, 1), groups=4),
            nn.Tanh(),
        )
        return {"net": nn.Sequential(*seen, *first, *down, nn.Flatten(), nn.Linear(96, 3))}


@pytest.fixture(params=[*SETS, "torch"])
def instruction_set(request: Any, monkeypatch: Any) -> Iterator[str]:
    """Every instruction set of this processor, and torch's own kernels, which serve where nothing was compiled."""
    if request.param == "torch":
        monkeypatch.setattr(pattern_module, "kernels", None)
        yield request.param
        return
    kernels.select(request.param)
    yield request.param
    kernels.select(SETS[-1])


def pair(dense: nn.Module, share: float) -> tuple[Any, SparseConvolution, Tensor]:
    """A dense layer with zeros, the same by its kept weights, and which they are."""
    dense = dense.double()
    mask = torch.rand(dense.weight.shape) < share
    with torch.no_grad():
        dense.weight.mul_(mask)
    return dense, SparseConvolution.from_dense(dense, mask), mask


def assert_same(dense: Any, sparse: SparseConvolution, mask: Tensor, x: Tensor) -> None:
    x = x.detach().requires_grad_()
    y = dense(x)
    torch.testing.assert_close(sparse(x), y)
    g = torch.randn_like(y)
    found = [torch.autograd.grad(layer(x), [x, *layer.parameters()], g) for layer in (sparse, dense)]
    names = ["x", *(name for name, _ in sparse.named_parameters())]
    for name, ours, theirs in zip(names, *found):
        torch.testing.assert_close(ours, theirs[mask] if name == "values" else theirs)


axis = st.tuples(
    st.sampled_from([1, 2, 3, 5]), st.integers(1, 3), st.integers(0, 2), st.integers(1, 2), st.integers(9, 14)
)


@settings(max_examples=30, deadline=None)
@given(
    axes=st.lists(axis, min_size=1, max_size=3),
    channels=st.tuples(st.sampled_from([1, 1, 2, 4]), st.integers(1, 3), st.integers(1, 3)),
    share=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    samples=st.sampled_from([1, 2, 19, 70]),
    bias=st.booleans(),
    seed=st.integers(0, 99),
)
def test_convolutions_of_any_window_are_the_dense_ones(
    axes: list[tuple[int, ...]], channels: tuple[int, int, int], share: float, samples: int, bias: bool, seed: int
) -> None:
    torch.manual_seed(seed)
    kernel, stride, padding, dilation, size = zip(*axes)
    groups, inside, out = channels
    make = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[len(axes) - 1]
    dense = make(groups * inside, groups * out, kernel, stride, padding, dilation, groups, bias)  # type: ignore[arg-type]
    samples = min(samples, 3) if len(axes) == 3 else samples
    assert_same(*pair(dense, share), torch.randn(samples, groups * inside, *size, dtype=torch.float64))


def test_every_instruction_set_gives_the_dense_convolution(instruction_set: str) -> None:
    torch.manual_seed(0)
    assert_same(*pair(nn.Conv2d(6, 10, 3, 2, 1, groups=2), 0.3), torch.randn(33, 6, 15, 17, dtype=torch.float64))
    channels_last = torch.randn(5, 4, 8, 9, dtype=torch.float64).contiguous(memory_format=torch.channels_last)
    assert_same(*pair(nn.Conv2d(4, 3, 3, padding="same"), 0.3), channels_last)


def planes_of(sparse: SparseConvolution, *size: int) -> Planes:
    return sparse.pattern.at(size)


def test_products_pass_first_and_second_derivatives_by_finite_differences(instruction_set: str) -> None:
    torch.manual_seed(0)
    _, sparse, _ = pair(nn.Conv2d(2, 3, 3, 2, 1, bias=False), 0.3)
    planes, values = planes_of(sparse, 4, 3), sparse.values.detach().requires_grad_()
    x = torch.randn(2, 2, 4, 3, dtype=torch.float64, requires_grad=True)
    g = torch.randn(2, 3, 2, 2, dtype=torch.float64, requires_grad=True)
    for transposed, activation in ((False, x), (True, g)):
        assert torch.autograd.gradcheck(Mul.apply, (values, activation, planes, transposed))
        assert torch.autograd.gradgradcheck(Mul.apply, (values, activation, planes, transposed))
    assert torch.autograd.gradcheck(Dot.apply, (g, x, planes))
    assert torch.autograd.gradgradcheck(Dot.apply, (g, x, planes))


def test_the_fast_way_equals_its_composition_in_values_and_both_derivatives() -> None:
    _, sparse, _ = pair(nn.Conv1d(4, 6, 3, 2, 2, groups=2), 0.5)
    planes, x = planes_of(sparse, 11), torch.randn(7, 4, 11, dtype=torch.float64, requires_grad=True)
    leaves = [x, *sparse.parameters()]
    found = []
    for way in (apply_chain, compose):
        y = way(planes, x, (sparse.values, sparse.bias))
        first = torch.autograd.grad(y.square().sum(), leaves, create_graph=True)
        found.append([y, *first, *torch.autograd.grad(sum(g.square().sum() for g in first), leaves)])
    for ours, theirs in zip(*found):
        torch.testing.assert_close(ours, theirs)


def test_an_attack_by_functional_gradients_and_stacked_values_are_the_dense_ones() -> None:
    dense, sparse, _ = pair(nn.Conv2d(3, 4, 3, 2), 0.3)
    x = torch.randn(6, 3, 7, 7, dtype=torch.float64)

    def per_sample(module: nn.Module) -> Tensor:
        return torch.func.vmap(torch.func.grad(lambda a: module(a[None]).square().sum()))(x)

    torch.testing.assert_close(per_sample(sparse), per_sample(dense))
    stacked = torch.stack([sparse.values.detach() * k for k in (1, 2, -1)])

    def loss(values: Tensor) -> Tensor:
        answer: Tensor = torch.func.functional_call(sparse, {"values": values}, (x,))
        return answer.square().sum()

    together = torch.func.vmap(torch.func.grad(loss))(stacked)
    for row in range(3):
        torch.testing.assert_close(together[row], torch.func.grad(loss)(stacked[row]))


@pytest.mark.skipif(kernels is None, reason="the kernels were not compiled")
@pytest.mark.parametrize("threads", [2, 3, 7])
def test_any_number_of_threads_gives_the_same_answer_and_always_the_same_bits(threads: int) -> None:
    _, sparse, _ = pair(nn.Conv2d(8, 8, 3, padding=1), 0.3)
    planes, x = planes_of(sparse, 20, 20), torch.randn(130, 8, 20, 20, dtype=torch.float64)
    weights, g = (sparse.values.detach(), sparse.bias), torch.randn(130, 8, 20, 20, dtype=torch.float64)
    alone, (values, bias) = planes.backward(g, x, weights, 1, wants=(True, True))
    found = [planes.backward(g, x, weights, threads, wants=(True, True)) for _ in range(2)]
    for gx, (of_values, of_bias) in found:
        torch.testing.assert_close(gx, alone)
        torch.testing.assert_close(of_values, values)
        torch.testing.assert_close(of_bias, bias)
    assert torch.equal(found[0][1][0], found[1][1][0])
    assert torch.equal(planes.forward(x, weights, threads), planes.forward(x, weights, 1))


def pruned(make: Callable[[], Any] = Pictures, when: str = "set") -> Plain:
    engine = Plain(make(), TRAINING, 5)
    if when == "set":
        prune_(engine, Pruning("magnitude", 0.7, samples=10, scope="layer"))
    return engine


@pytest.mark.parametrize("recipe", ["", "pgd:0.1", "trades:0.1"])
def test_a_residual_network_ends_where_the_plain_engine_ends(recipe: str) -> None:
    def make() -> Any:
        return harden(Pictures(), recipe, total=60) if recipe else Pictures()

    plain, sparse = pruned(make), sparse_engine(pruned(make))
    layers = [m for m in sparse.state.networks["net"].module.modules() if isinstance(m, SparseConvolution)]
    kept = sum(int(mask.sum()) for mask in plain.state.mask_of(0)["net"].values())
    rest = sum(p.numel() for name, p in plain.modules["net"].named_parameters() if p.ndim == 1)
    assert len(layers) == 3
    assert all(t.shape == (1, kept + rest) for t in sparse.state.moments[0]["net"].values())
    plain.advance(30)
    sparse.advance(30)
    assert furthest(plain, sparse) < 1e-7


@pytest.mark.parametrize("when", ["gradual", "set", "rigl"])
def test_masks_that_change_during_training_change_alike(when: str) -> None:
    pruning = Pruning("magnitude", 0.7, when=when, scope="layer", samples=10, every=10)
    engines = []
    for wrap in (lambda engine: engine, sparse_engine):
        engine = Plain(Pictures(), TRAINING, 5)
        if when != "gradual":
            prune_(engine, pruning)
        engine = wrap(engine)
        fit(engine, events=events_for([pruning], TRAINING.steps), loop=Loop(log_every=20))
        engines.append(engine)
    assert furthest(*engines) < 1e-7
    for key, mask in engines[0].state.mask_of(0)["net"].items():
        assert torch.equal(engines[1].state.mask_of(0)["net"][key], mask)


def test_a_killed_run_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    whole, killed = sparse_engine(pruned()), sparse_engine(pruned())
    whole.advance(60)
    killed.advance(23)
    Folder(tmp_path).write_tensors("state.safetensors", dict(killed.state.named()))
    again = sparse_engine(pruned(when="later"))
    fit(again, Folder(tmp_path))
    assert furthest(whole, again) == 0.0


def test_only_convolutions_that_gain_are_converted() -> None:
    layers = {
        "wide": nn.Conv2d(128, 128, 3),
        "narrow": nn.Conv2d(16, 16, 3),
        "mirrored": nn.Conv2d(16, 16, 3, padding=1, padding_mode="reflect"),
        "one_sided": nn.Conv2d(16, 16, 4, padding="same"),
        "upwards": nn.ConvTranspose2d(16, 16, 3),
        "grouped": nn.Conv1d(16, 16, 3, groups=16),
    }
    masks = {f"{name}.weight": torch.rand(layer.weight.shape) < 0.3 for name, layer in layers.items()}
    converted = convert(nn.ModuleDict(layers), masks)
    found = {name for name, layer in converted.named_children() if isinstance(layer, SparseConvolution)}
    assert found == {"narrow", "grouped"}
    tied = nn.ModuleList([nn.Conv2d(4, 4, 3), nn.Conv2d(4, 4, 3)])
    tied[1].weight = tied[0].weight
    assert type(convert(tied, {"0.weight": torch.zeros(4, 4, 3, 3, dtype=torch.bool)})[0]) is nn.Conv2d


def test_a_convolution_alone_makes_the_sparse_engine_worthwhile() -> None:
    class Larger(Blobs):
        def networks(self) -> dict[str, nn.Module]:
            body = (nn.Linear(4, 64), nn.Unflatten(1, (16, 2, 2)), nn.Conv2d(16, 16, 3, padding=1), nn.Flatten())
            return {"net": nn.Sequential(*body, nn.Linear(64, 3))}

    assert not worthwhile(Plain(Larger(), TRAINING, 0))
    engine = pruned(Larger)
    assert worthwhile(engine) == (kernels is not None)


def test_a_layer_gives_its_dense_weight_and_copies_share_their_pattern() -> None:
    dense, sparse, mask = pair(nn.Conv3d(2, 4, 2), 0.4)
    assert torch.equal(sparse.weight, dense.weight) and torch.equal(sparse.pattern.mask(), mask)
    other = copy.deepcopy(sparse)
    assert other.pattern is sparse.pattern
    x = torch.randn(2, 5, 5, 5, dtype=torch.float64)
    torch.testing.assert_close(other(x), dense(x))  # one image without a batch
    assert sparse(torch.zeros(0, 2, 5, 5, 5, dtype=torch.float64)).shape == (0, 4, 4, 4, 4)


def test_wrong_inputs_are_refused_in_one_line() -> None:
    _, sparse, _ = pair(nn.Conv2d(2, 4, 3), 0.4)
    for shape, dtype in (((1, 3, 5, 5), torch.float64), ((1, 2, 5), torch.float64), ((1, 2, 5, 5), torch.float32)):
        with pytest.raises(UserError, match="expected"):
            sparse(torch.zeros(shape, dtype=dtype))
    with pytest.raises(UserError, match="at least as large as the kernel"):
        sparse(torch.zeros(1, 2, 2, 5, dtype=torch.float64))
    planes = planes_of(sparse, 5, 5)
    with pytest.raises(UserError, match="numbers of the same type"):
        Mul.apply(sparse.values[:-1], torch.zeros(1, 2, 5, 5, dtype=torch.float64), planes, False)
    with pytest.raises(UserError, match="numbers of the same type"):
        Dot.apply(torch.zeros(1, 4, 2, 3, dtype=torch.float64), torch.zeros(1, 2, 5, 5, dtype=torch.float64), planes)


@pytest.mark.parametrize("size", [(5,), (4, 7), (2, 3, 5)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_batch_norms_beside_sparse_convolutions_are_torch_s(size: tuple[int, ...], dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    theirs = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)[len(size) - 1](3).to(dtype)
    nn.init.uniform_(theirs.weight, 0.5, 2.0)
    ours = normed(copy.deepcopy(theirs))
    assert isinstance(ours, Norm) and ours.state_dict().keys() == theirs.state_dict().keys()
    x = (torch.randn(9, 3, *size, dtype=dtype) * 3 + 20).requires_grad_()  # far from zero, where squares cancel
    g = torch.randn_like(x)
    found = []
    for norm in (ours, theirs):
        leaves = [x, *norm.parameters()]
        once = torch.autograd.grad(norm(x), leaves, g)
        first = torch.autograd.grad(norm(x), leaves, g, create_graph=True)
        second = torch.autograd.grad(sum(each.square().sum() for each in first), [x])
        answer = norm(x)
        found.append([answer, *once, *first, *second, *norm.state_dict().values(), norm.eval()(x)])
    near = {"rtol": 1e-9, "atol": 1e-9} if dtype is torch.float64 else {"rtol": 1e-3, "atol": 1e-3}
    for mine, other in zip(*found):
        torch.testing.assert_close(mine, other, **near)
