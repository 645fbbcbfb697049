"""Where kept weights alone pay, how many threads work, and what is too large or too oddly laid out to be repeated."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fewer.core.seed import Stream
from fewer.sparse import pattern, replay
from fewer.sparse.convert import convolution_pays, gains
from fewer.sparse.convolution import fits
from fewer.sparse.draws import CompiledStream
from fewer.sparse.pattern import Chain, Pattern, Room, threads_for
from fewer.sparse.products import Mul, apply_chain
from fewer.sparse.replay import Recorder, _into
from fewer.sparse.replay_steps import _merged, _step
from tests.toys import Fit

from .test_products import random_mask
from .test_replay import engine

compiled = pytest.mark.skipif(pattern.kernels is None, reason="the kernels were not compiled")


@pytest.mark.parametrize(("channels", "most"), [(16, 0.4), (32, 0.4), (33, 0.3), (64, 0.3), (65, 0.2), (512, 0.2)])
def test_a_convolution_pays_up_to_the_share_that_was_measured_for_its_width(channels: int, most: float) -> None:
    shape = (channels, channels, 3, 3)
    size = 9 * channels * channels
    assert convolution_pays(shape, int(most * size)) and not convolution_pays(shape, int(most * size) + 1)
    assert convolution_pays((512, channels, 3, 3), int(most * 512 * channels * 9))  # the narrower side decides


@pytest.mark.parametrize(
    ("module", "large"),
    [
        (nn.Linear(64, 64), False), (nn.Linear(17, 241), True),
        (nn.Conv2d(16, 16, 2), False), (nn.Conv2d(25, 41, 1), True), (nn.ConvTranspose2d(25, 41, 1), False),
    ],
)  # fmt: skip
def test_a_layer_gains_alone_from_4097_weights_on_and_a_convolution_from_1025(module: nn.Module, large: bool) -> None:
    weight = module.weight
    assert isinstance(weight, Tensor)
    assert gains(module, torch.zeros(weight.shape, dtype=torch.bool)) == large
    assert not gains(module, torch.ones(weight.shape, dtype=torch.bool))


def test_numbers_of_half_precision_are_drawn_as_without_kernels() -> None:
    given = torch.tensor(3), torch.tensor(4), torch.bfloat16
    for draw in ("uniform", "normal"):
        ours, theirs = (getattr(kind(*given), draw)("a", (2, 3)) for kind in (CompiledStream, Stream))
        assert torch.equal(ours, theirs) and ours.dtype == torch.bfloat16


def test_only_convolutions_fit_that_are_padded_by_zeros_alike_on_both_sides() -> None:
    assert fits(nn.Conv2d(2, 2, 3, padding="same")) is True and fits(nn.Conv1d(2, 2, 3, padding="valid")) is True
    for other in (nn.Linear(2, 2), nn.ConvTranspose2d(2, 2, 3), nn.Conv2d(2, 2, 2, padding="same")):
        assert fits(other) is False
    assert fits(nn.Conv2d(2, 2, 3, padding=1, padding_mode="reflect")) is False


@pytest.mark.parametrize(
    ("most", "work", "threads"),
    [(1, 10**9, 1), (2, 10**9, 2), (8, 10**9, 8), (8, 3_500_000, 3), (8, 1_999_999, 1), (8, 0, 1)],
)
def test_a_thread_is_started_for_every_million_multiplications(
    monkeypatch: pytest.MonkeyPatch, most: int, work: int, threads: int
) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: most)
    assert threads_for(work) == threads


def test_no_more_than_two_buffers_wait_to_be_used_again() -> None:
    free: list[Tensor] = []
    rooms = [Room(free, torch.zeros(size)) for size in (1, 2, 3)]
    while rooms:
        rooms.pop(0)
    assert [len(tensor) for tensor in free] == [1, 2]


@compiled
def test_threads_are_counted_by_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    chain, asked = Pattern.of(random_mask(3, 7, 0.5, 0)).alone, []
    monkeypatch.setattr(Chain, "threads", lambda _self, samples: asked.append(samples) or 1)
    values = torch.ones(chain.patterns[0].kept, dtype=torch.float64)
    with torch.no_grad():
        apply_chain(chain, torch.ones(5, 7, dtype=torch.float64), (values, None))
    assert asked == [5]


def test_samples_mapped_over_one_set_of_weights_cost_one_product(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Pattern.of(random_mask(3, 7, 0.6, 1))
    values, x = torch.randn(made.kept, dtype=torch.float64), torch.randn(4, 5, 7, dtype=torch.float64)
    wanted = torch.stack([Mul.apply(values, part, made, False) for part in x])
    sizes: list[int] = []
    forward = Mul.forward

    def counted(values: Tensor, x: Tensor, *rest: Any) -> Tensor:
        sizes.append(len(x))
        return forward(values, x, *rest)

    monkeypatch.setattr(Mul, "forward", staticmethod(counted))
    found = torch.func.vmap(lambda part: Mul.apply(values, part, made, False))(x)
    assert torch.allclose(found, wanted)
    assert sizes[-1] == 20 and len(sizes) <= 2


@compiled
def test_gradients_of_weights_that_nobody_asked_for_are_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    chain, wanted = Pattern.of(random_mask(3, 7, 0.6, 1)).alone, []
    run = Chain.backward

    def noted(self: Chain, *words: Any, wants: tuple[bool, bool], **named: Any) -> Any:
        wanted.append(wants)
        return run(self, *words, wants=wants, **named)

    monkeypatch.setattr(Chain, "backward", noted)
    values = torch.randn(chain.patterns[0].kept, dtype=torch.float64, requires_grad=True)
    x = torch.randn(5, 7, dtype=torch.float64, requires_grad=True)
    torch.autograd.grad(apply_chain(chain, x, (values, None)).sum(), x)
    torch.autograd.grad(apply_chain(chain, x, (values, None)).sum(), (x, values))
    assert wanted == [(True, False), (True, True)]


@compiled
def test_a_step_that_makes_more_than_a_recording_may_hold_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "MOST_BYTES", 100)
    recorder, x = Recorder(), torch.ones(50)
    with recorder:
        (x + 1).mul(2)
    assert "more than 100 bytes" in recorder.obstacle and not recorder.records
    sparse = engine(Fit)
    sparse.advance(6)
    assert sparse.count == 6 and sparse.repeater is not None and not sparse.repeater.trusted


@pytest.mark.parametrize(("name", "writes"), [("mul", True), ("mse_loss", False), ("_to_copy", True)])
def test_an_operation_is_repeated_into_its_first_result_and_copied_there_where_torch_would_resize(
    name: str, writes: bool
) -> None:
    function = {"mul": torch.ops.aten.mul.Tensor, "mse_loss": torch.ops.aten.mse_loss.default}.get(
        name, torch.ops.aten._to_copy.default
    )
    x = torch.tensor([1.0, 2.0])
    arguments = (x,) if name == "_to_copy" else (x, torch.tensor([3.0, 5.0]))
    result = function(*arguments)
    again = _into(function, arguments, {}, [result])
    assert isinstance(again, partial) == writes
    x += 1
    again()
    assert torch.equal(result, function(*arguments))


def test_operands_that_need_four_dimensions_are_left_to_torch() -> None:
    out = torch.empty(3, 4, 5, 6)
    strided = torch.rand(6, 8, 10, 12)[::2, ::2, ::2, ::2]
    assert _merged((3, 4, 5, 6), [out.stride(), strided.stride()]) is None
    assert _step("copy", out, strided) is None
    three = _merged((3, 4, 5), [out[..., 0].contiguous().stride(), strided[..., 0].stride()])
    assert three is not None and three[0] == (3, 4, 5)
