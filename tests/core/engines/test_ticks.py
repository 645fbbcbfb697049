"""Whoever follows a training is told by time how it goes, with its speed and its density, and changes nothing."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fewer.core.engines.base import Engine, Training
from fewer.core.engines.loop import Loop, fit
from fewer.core.engines.plain import Plain
from fewer.core.mask import total
from fewer.pruning.pruning import Pruning, prune_
from fewer.pruning.reach import count
from fewer.sparse.engine import sparse_engine
from tests.toys import Control


def trained(loop: Loop | None, *, sparse: bool = False) -> Engine:
    engine: Engine = Plain(Control(), Training(40, 10), 0)
    prune_(engine, Pruning("magnitude", 0.5, samples=10))
    engine = sparse_engine(engine) if sparse else engine
    fit(engine, loop=loop)
    return engine


@pytest.mark.parametrize("sparse", [False, True])
def test_ticks_begin_at_the_first_step_and_tell_what_counting_by_hand_does(sparse: bool) -> None:
    ticks: list[dict[str, Any]] = []
    engine = trained(Loop(log_every=50, on_tick=ticks.append), sparse=sparse)
    assert ticks[0]["step"] == 1 and ticks[-1]["step"] == 40 and ticks[-1]["seconds_left"] == 0
    mask = engine.state.mask_of(0)
    by_hand = count(engine.task, engine.state.modules_of(0), mask)
    assert ticks[-1]["density"] == pytest.approx(by_hand.density) and by_hand.density < 1 and total(mask)
    assert all(tick["steps_per_second"] > 0 for tick in ticks)


def test_a_training_that_is_followed_ends_with_the_same_bits() -> None:
    alone, followed = trained(None), trained(Loop(on_tick=lambda line: None))
    for name, network in alone.state.networks.items():
        assert torch.equal(network.weights, followed.state.networks[name].weights)
