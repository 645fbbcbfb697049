"""Recorded steps against ordinary ones, to the bit; what cannot be repeated is left as it is."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from fewer.attack.hardening.harden import harden
from fewer.core.engines.base import Engine, Training
from fewer.core.engines.optimizer import Optimizer
from fewer.core.engines.plain import Plain
from fewer.core.seed import Stream
from fewer.pruning.pruning import Pruning, prune_
from fewer.sparse import pattern, replay
from fewer.sparse.draws import CompiledStream
from fewer.sparse.engine import Sparse, sparse_engine
from fewer.sparse.replay import Recorder, Repeater
from tests.toys import Blobs, Control, Fit, Patches

compiled = pytest.mark.skipif(pattern.kernels is None, reason="the kernels were not compiled")


def engine(make: Callable[[], Any], precision: str = "float32") -> Sparse:
    training = Training(steps=100, batch=10, precision=precision, optimizer=Optimizer("adam", 3e-3))
    plain = Plain(make(), training, 5)
    prune_(plain, Pruning("magnitude", 0.4, samples=10, scope="layer"))
    sparse = sparse_engine(plain)
    assert isinstance(sparse, Sparse)
    return sparse


def ordinary_steps(sparse: Sparse, count: int) -> None:
    for _ in range(count):
        Engine.step_(sparse)


def assert_same_bits(one: Engine, other: Engine) -> None:
    for (name, ours), (_, theirs) in zip(one.state.named(), other.state.named(), strict=True):
        assert torch.equal(ours, theirs), name


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("make", [Fit, Blobs, Control, Patches])
def test_repeated_steps_end_at_the_bits_of_ordinary_ones(make: Callable[[], Any], precision: str) -> None:
    repeated, ordinary = engine(make, precision), engine(make, precision)
    repeated.advance(20)
    ordinary_steps(ordinary, 20)
    assert repeated.repeater is not None and repeated.repeater.trusted
    assert repeated.count == 20
    assert_same_bits(repeated, ordinary)
    assert torch.equal(repeated.mean_losses(), ordinary.mean_losses())


@pytest.mark.parametrize("recipe", ["pgd:0.1", "free:0.1", "trades:0.1"])
def test_attacks_inside_a_loss_are_repeated_too(recipe: str) -> None:
    repeated, ordinary = (engine(lambda: harden(Blobs(), recipe, total=100)) for _ in range(2))
    repeated.advance(12)
    ordinary_steps(ordinary, 12)
    assert repeated.repeater is not None and repeated.repeater.trusted
    assert_same_bits(repeated, ordinary)


def test_objectives_that_take_turns_have_a_tape_for_each_kind_of_step() -> None:
    sparse = engine(Control)
    sparse.advance(20)
    assert sparse.repeater is not None
    assert len(sparse.repeater.trusted) == 2  # with and without the slow actor


def test_a_new_mask_and_a_replaced_tensor_are_recorded_anew() -> None:
    repeated, ordinary = engine(Control), engine(Control)
    repeated.advance(10)
    ordinary_steps(ordinary, 10)
    for sparse in (repeated, ordinary):
        mask = sparse.state.mask_of(0)
        for by_name in mask.values():
            for kept in by_name.values():
                kept.view(-1)[::3] = False
        sparse.state.mask_(0, mask)
        sparse.bind_()
    repeated.advance(10)
    ordinary_steps(ordinary, 10)
    assert_same_bits(repeated, ordinary)
    for sparse in (repeated, ordinary):
        network = sparse.state.networks["actor"]
        network.weights = network.weights * 0.5
        network.bind_(0)
    repeated.advance(10)
    ordinary_steps(ordinary, 10)
    assert_same_bits(repeated, ordinary)


def test_data_that_is_read_from_disk_is_not_repeated() -> None:
    class OnDisk:
        in_memory = False

        def __init__(self, held: Any) -> None:
            self.held = held

        def __len__(self) -> int:
            return len(self.held)

        def take(self, index: Tensor) -> Any:
            return self.held.take(index)

    class FromDisk(Fit):
        def data(self, split: str) -> Any:
            return OnDisk(super().data(split))

    sparse = engine(FromDisk)
    sparse.advance(6)
    assert sparse.repeater is None and sparse.count == 6


def repeater_of(step: Callable[[], None], *state: Tensor) -> Repeater:
    repeater = Repeater(step, state)
    for _ in range(5):
        repeater("step")
    return repeater


@pytest.mark.parametrize(
    "operation",
    [
        lambda x: x * float(x.sum()),
        lambda x: x + torch.rand(3),
        lambda x: x[x > 0].sum() + x,
    ],
    ids=["looks at a value", "draws from the global generator", "has a size of its own each time"],
)
def test_a_step_that_depends_on_more_than_its_tensors_is_left_as_it_is(operation: Callable[[Tensor], Tensor]) -> None:
    x, counted = torch.ones(3), []

    def step() -> None:
        counted.append(1)
        x.copy_(operation(x).sigmoid())

    assert not repeater_of(step, x).trusted
    assert len(counted) == 5


def test_a_step_that_python_counts_along_with_is_found_out() -> None:
    x, counted = torch.zeros(3), []

    def step() -> None:
        counted.append(1)
        x.add_(len(counted))

    assert not repeater_of(step, x).trusted
    assert len(counted) == 5 and x.tolist() == [15.0] * 3


def test_a_step_that_would_keep_too_much_memory_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "MOST_BYTES", 1000)
    x = torch.ones(300)

    def step() -> None:
        x.copy_((x * 2).tanh())

    assert not repeater_of(step, x).trusted


def test_views_constants_and_what_nobody_reads_are_not_repeated() -> None:
    x, y = torch.randn(4, 3), torch.zeros(3)

    def step() -> None:
        x.exp().sum()  # for nobody
        y.add_((x.t()[:, 1:].t() * torch.arange(3.0)).view(-1)[:3])

    recorder = Recorder()
    with recorder:
        step()
    assert [record.name for record in recorder.tape().records] == ["mul", "add_"]


def everything(x: Tensor, y: Tensor, gate: Tensor, index: Tensor) -> list[Tensor]:
    """Every operation that C does, on broadcast, transposed and strided tensors."""
    a, b = x.index_select(0, index), y.index_select(0, index)
    wide = torch.cat([a, b.flip(0), a[:, :1]], 1)
    first, second = a.clamp(-0.5, 0.7), b.clamp(min=0.1)
    return [
        wide, first + second, a - b[0], 3 - a, a * b.t().contiguous().t(), a / (b.abs() + 1), -a, a * 0.3, a / 7,
        torch.minimum(a, b), torch.maximum(a, b), a.square(), a.pow(1), torch.where(gate, a, b), a.clone(),
        a[:, ::2] * 2, wide[:, 1:4].contiguous(), functional.mse_loss(a, b), a.tanh(),
    ]  # fmt: skip


@compiled
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_operations_and_gradients_done_in_c_have_torch_s_bits(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(1)
    x, y = (torch.randn(12, 5, dtype=dtype, generator=generator) for _ in range(2))
    gate, index = torch.rand(7, 5, generator=generator) > 0.5, torch.tensor([3, 1, 2, 2, 11, 0, 5])
    results: list[Tensor] = []

    def step() -> None:
        leaves = [t.detach().requires_grad_() for t in (x, y)]
        found = everything(leaves[0], leaves[1], gate, index)
        slopes = torch.autograd.grad(sum(f.sum() for f in found[:-1]) + found[-1][:, 1].sum(), leaves)
        fresh = [t.detach() for t in (*found, *slopes)]
        if not results:
            results.extend(t.clone() for t in fresh)
        for result, new in zip(results, fresh):
            result.copy_(new)
        x.mul_(1.25)
        y.add_(0.5)

    step()
    repeater = repeater_of(step, x, y, *results)
    tape = repeater.trusted["step"]
    assert tape.compiled
    done = {record.name for record in tape.records if record.steps is not None}
    assert {"add", "sub", "mul", "div", "cat", "where", "clamp", "index_select", "squares", "pow", "neg"} <= done
    x.normal_(generator=generator)
    y.normal_(generator=generator)
    x[2, 1] = y[5, 0] = torch.nan
    x[11, 3] = torch.inf
    start = [t.clone() for t in (x, y)]
    tape.repeat()
    ours = [t.clone() for t in results]
    for tensor, value in zip((x, y), start):
        tensor.copy_(value)
    step()
    for mine, theirs in zip(ours, results):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=0, equal_nan=True)


@compiled
def test_counting_and_summing_losses_in_c_is_torch_s_to_the_bit() -> None:
    step_count, total, rate = torch.tensor(-7), torch.zeros(2, dtype=torch.float64), torch.zeros(3)

    def step() -> None:
        update = torch.div(step_count, 3, rounding_mode="floor")
        rate[0], rate[1] = (update + 5).to(torch.float32), update.to(torch.float32)
        total.add_(torch.full((2,), 0.1) * rate[0])
        step_count.add_(1)

    repeater = repeater_of(step, step_count, total, rate)
    tape = repeater.trusted["step"]
    assert {"div", "add", "add_", "_to_copy"} <= {r.name for r in tape.records if r.steps is not None}
    for _ in range(9):
        repeater("step")
    assert step_count.item() == 7 and rate.tolist() == [7.0, 2.0, 0.0]
    tenth = torch.tensor(0.1)
    turns = [torch.tensor(count // 3 + 5.0) for count in range(-7, 7)]
    assert total.tolist() == [sum((tenth * update).double().item() for update in turns)] * 2


@compiled
def test_a_sample_that_does_not_exist_is_an_error_in_c_too() -> None:
    x, index, y = torch.randn(4, 3), torch.tensor([1, 2]), torch.zeros(2, 3)

    def step() -> None:
        y.copy_(x.index_select(0, index))

    repeater = repeater_of(step, y)
    index[1] = 4
    with pytest.raises(IndexError, match="exist"):
        repeater("step")


@compiled
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_compiled_noise_is_the_engine_s_noise_to_the_bit(dtype: torch.dtype) -> None:
    for seed, step in ((0, 0), (7, 12345), (-3, 2**40)):
        numbers = torch.tensor(seed), torch.tensor(step)
        ours, theirs = CompiledStream(*numbers, dtype), Stream(*numbers, dtype)
        for shape in ((), (1,), (5, 3), (1000, 12)):
            assert torch.equal(ours.uniform("a name", shape), theirs.uniform("a name", shape))
            assert torch.equal(ours.normal("a name", shape), theirs.normal("a name", shape))
    assert not torch.equal(ours.uniform("a name", (9,)), ours.uniform("another", (9,)))


def test_neither_starting_a_training_nor_recording_a_step_imports_torch_s_compiler() -> None:
    script = """
import sys, torch, fewer.run.job
from fewer.sparse.replay import Repeater
x = torch.ones(3, 4)
def step():
    x.copy_(torch.cat([x * 2, x - x[0]], 1)[:, 2:6].tanh())
repeater = Repeater(step, [x])
for _ in range(4): repeater("step")
assert repeater.trusted
print([name for name in ("torch._dynamo", "sympy") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
