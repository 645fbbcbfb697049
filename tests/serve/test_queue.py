"""The queue: together what came together, bounded, and nobody suffers for another's mistake."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import numpy as np
import pytest

from fewer.core.errors import UserError
from fewer.packs.program import Input
from fewer.serve.fields import Deadline
from fewer.serve.limits import Gate, Limits, Refusal
from fewer.serve.observe.metrics import Metrics
from fewer.serve.queue import Queue, timed
from tests.waiting import GIVE_UP_SECONDS

SOON = Deadline.after(GIVE_UP_SECONDS)


class Doubling:
    """Stands in for a model: doubles, and remembers the sizes of its batches."""

    inputs = (Input("x", (), "float32"),)
    time = None

    def __init__(self, wait: threading.Event | None = None) -> None:
        self.sizes: list[int] = []
        self.wait = wait

    def predict(self, arrays: Sequence[Any]) -> Any:
        self.sizes.append(len(arrays[0]))
        if self.wait is not None:
            assert self.wait.wait(GIVE_UP_SECONDS)
        if (arrays[0] < 0).any():
            raise UserError("a negative number", "a positive one")
        if (arrays[0] > 1000).any():
            raise ZeroDivisionError
        return 2 * arrays[0]


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), GIVE_UP_SECONDS))


def queue(model: Doubling, *, seconds: float = 0.0, limits: Limits | None = None) -> Queue:
    return Queue(model, limits or Limits(), lambda samples: seconds, Metrics([], ["m"]).model("m"))  # type: ignore[arg-type]


@pytest.mark.parametrize("seconds", [0.0, 1.0], ids=["in the loop", "in a thread"])
def test_what_arrives_together_is_predicted_together(seconds: float) -> None:
    async def scenario() -> None:
        model = Doubling()
        waiting = queue(model, seconds=seconds)
        rows = [waiting.put_row((float(value),), SOON) for value in range(5)]
        arrays = waiting.put([np.arange(10, 13, dtype=np.float32)], SOON)
        assert [await row for row in rows] == [0, 2, 4, 6, 8]
        assert (await arrays).tolist() == [20, 22, 24]
        assert model.sizes == [8] and waiting.samples == 0

    run(scenario)


@pytest.mark.parametrize(("bad", "error"), [(-1.0, UserError), (2000.0, ZeroDivisionError)])
def test_a_refused_request_harms_only_itself(bad: float, error: type[Exception]) -> None:
    async def scenario() -> None:
        waiting = queue(Doubling())
        good, wrong = waiting.put_row((1.0,), SOON), waiting.put_row((bad,), SOON)
        array = waiting.put([np.float32([3])], SOON)
        with pytest.raises(error):
            await wrong
        if error is UserError:
            assert await good == 2 and (await array).tolist() == [6]
        else:  # a failure of the model itself is everybody's
            with pytest.raises(error):
                await good
            with pytest.raises(error):
                await array

    run(scenario)


def test_batches_are_bounded_and_keep_the_order() -> None:
    async def scenario() -> None:
        model = Doubling()
        waiting = queue(model, limits=Limits(batch_samples=4))
        rows = [waiting.put_row((float(value),), SOON) for value in range(10)]
        assert [await row for row in rows] == [2.0 * value for value in range(10)]
        assert model.sizes == [4, 4, 2]

    run(scenario)


def test_large_samples_wait_and_run_in_smaller_numbers() -> None:
    async def scenario() -> None:
        model = Doubling()
        waiting = queue(model, limits=Limits(queue_bytes=6 * 4, batch_bytes=2 * 4))  # a sample has 4 bytes
        rows = [waiting.put_row((float(value),), SOON) for value in range(6)]
        with pytest.raises(Refusal) as caught:
            waiting.put_row((6.0,), SOON)
        assert caught.value.status == 503
        assert [await row for row in rows] == [0, 2, 4, 6, 8, 10] and model.sizes == [2, 2, 2]

    run(scenario)


def test_a_full_queue_refuses_and_says_when_to_come_back() -> None:
    async def scenario() -> None:
        waiting = queue(Doubling(), limits=Limits(queue_samples=3))
        rows = [waiting.put_row((1.0,), SOON) for _ in range(3)]
        with pytest.raises(Refusal) as caught:
            waiting.put_row((1.0,), SOON)
        assert caught.value.status == 503 and ("retry-after", "1") in caught.value.headers
        assert [await row for row in rows] == [2, 2, 2]
        assert await waiting.put_row((1.0,), SOON) == 2
        assert len(await waiting.put([np.ones(9, np.float32)], SOON)) == 9  # nothing else waits

    run(scenario)


def test_who_waits_too_long_is_told_and_what_runs_goes_on() -> None:
    async def scenario() -> None:
        gate = threading.Event()
        model = Doubling(gate)
        waiting = queue(model, seconds=1.0, limits=Limits(seconds=0.1))
        running = waiting.put_row((1.0,), SOON)
        while not model.sizes:
            await asyncio.sleep(0.001)
        waiting._running[0].deadline = Deadline.after(0.05)  # from now on: late to start, it would never run
        behind = waiting.put_row((2.0,), Deadline.after(0.05))
        for late in (running, behind):
            with pytest.raises(Refusal) as caught:
                await late
            assert caught.value.status == 504
        gate.set()
        assert await waiting.put_row((3.0,), SOON) == 6 and model.sizes == [1, 1]
        waiting.close()

    run(scenario)


def test_a_slow_model_is_timed_with_one_sample_only() -> None:
    class Slow(Doubling):
        def blank(self, samples: int) -> list[Any]:
            return [np.zeros(samples, np.float32)]

        def predict(self, arrays: Sequence[Any]) -> Any:
            time.sleep(0.004)
            return super().predict(arrays)

    model = Slow()
    seconds = timed(model, 512)  # type: ignore[arg-type]
    assert set(model.sizes) == {1} and 0.004 <= seconds(1) < seconds(10)


def test_a_client_that_left_costs_no_prediction() -> None:
    async def scenario() -> None:
        model = Doubling()
        waiting = queue(model)
        gone, here = waiting.put_row((1.0,), SOON), waiting.put_row((2.0,), SOON)
        gone.cancel()
        assert await here == 4 and model.sizes == [1]

    run(scenario)


def test_a_gate_lets_so_many_in_lets_some_wait_and_turns_the_rest_away() -> None:
    async def scenario() -> None:
        gate, inside, most, refused = Gate(at_once=2, waiting=3), 0, 0, 0

        async def visit() -> None:
            nonlocal inside, most, refused
            try:
                async with gate.entered():
                    inside += 1
                    most = max(most, inside)
                    await asyncio.sleep(0.01)
                    inside -= 1
            except Refusal as refusal:
                assert refusal.status == 503
                refused += 1

        await asyncio.gather(*(visit() for _ in range(9)))
        assert most == 2 and refused == 4

    run(scenario)
