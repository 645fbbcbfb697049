"""Packs with several threads: the same answers, from several callers at once, after a fork, never too many threads."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from fewer.core.errors import UserError
from fewer.packs.pack import load
from fewer.packs.program import Input, Node, Program
from fewer.packs.runtime import threads
from fewer.packs.runtime.runtime import Network
from fewer.packs.runtime.threads import Threads
from fewer.zoo import path


def layered(count: int) -> Network:
    lot = np.random.default_rng(0)
    tensors = {name: lot.standard_normal((512, 512)).astype(np.float32) / 20 for name in "vw"}
    nodes = (Node("linear", ("x", "v"), "a"), Node("relu", ("a",), "b"), Node("linear", ("b", "w"), "y"))
    return Network(Program((Input("x", (512,)),), nodes, ("y",)), tensors, threads=count)


@pytest.mark.parametrize("samples", [1, 2, 7, 130])
def test_images_are_answered_as_with_one_thread(samples: int) -> None:
    x = np.random.default_rng(0).random((samples, 1, 28, 28)).astype(np.float32)
    one, three = load(path("digits-9348")), load(path("digits-9348"), threads=3)
    np.testing.assert_allclose(three.predict(x), one.predict(x), atol=1e-5)


def test_layers_are_answered_as_with_one_thread_whatever_they_are_given() -> None:
    one, two = layered(1), layered(2)
    x = np.random.default_rng(1).standard_normal((100, 512)).astype(np.float32)
    for given in (x, x[0], x[::2], x.astype(np.float64), x.tolist()):
        np.testing.assert_allclose(two.predict(given), one.predict(given), atol=1e-4)


def test_samples_are_shared_out_only_where_it_is_worth_it() -> None:
    seen: list[int] = []

    def call(x: Any) -> tuple[Any]:
        seen.append(len(x))
        return (x + 1,)

    x = np.arange(10.0)
    np.testing.assert_array_equal(Threads(4).shared(call, (x,), 1e9)[0], x + 1)
    assert sorted(seen) == [2, 2, 3, 3]
    for few in (Threads(4).shared(call, (x,), 1.0), Threads(1).shared(call, (x,), 1e9)):
        np.testing.assert_array_equal(few[0], x + 1)
    assert seen[4:] == [10, 10]


def test_callers_at_once_get_their_own_answers_and_share_the_threads() -> None:
    pack = load(path("digits-9348"), threads=2)
    lot = np.random.default_rng(0)
    batches = [lot.random((40, 1, 28, 28)).astype(np.float32) for _ in range(6)]
    wanted = [pack.predict(x) for x in batches]
    with ThreadPoolExecutor(3) as callers:
        found = list(callers.map(pack.predict, batches * 3))
    for answer, right in zip(found, wanted * 3):
        np.testing.assert_allclose(answer, right, atol=1e-5)
    assert (
        sum(thread.name.startswith("fewer-pack") for thread in threading.enumerate()) <= 3
    )  # the largest number asked for in this file is 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_starts_threads_of_its_own() -> None:
    network = layered(2)
    x = np.ones((64, 512), np.float32)
    wanted = network.predict(x)
    child = os.fork()
    if child == 0:
        os._exit(0 if np.allclose(network.predict(x), wanted) and threads._pool else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("count", [0, -1, 1000])
def test_an_impossible_number_of_threads_is_refused(count: int) -> None:
    with pytest.raises(UserError, match="threads"):
        load(path("digits-9348"), threads=count)
