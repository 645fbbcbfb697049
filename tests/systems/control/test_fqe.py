"""Fitted Q evaluation on worlds whose values are known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fewer.core.engines.base import Training
from fewer.core.engines.cohort import Cohort
from fewer.core.engines.evaluate import evaluate, evaluate_cohort, predictor
from fewer.core.engines.state import fresh_modules
from fewer.systems.control.task.algorithms.fqe import Judged, episode_of, fitted_value, logged_value
from fewer.systems.control.task.logs.transitions import Transitions
from fewer.systems.control.task.settings import Settings
from fewer.systems.control.task.task import Control
from tests.systems.control.synthetic import SMALL

DISCOUNT = 0.8


def chain(steps: int = 1500, seed: int = 0) -> Transitions:
    """Two rooms; an action above 0 leads to the second, below 0 to the first; the second pays 1 each step.

    Seen as one-hot. The logs act at random; a policy that always chooses the second room earns, from the first room,
    0 now and 1 for ever after: gamma / (1 - gamma).
    """
    lot = np.random.default_rng(seed)
    action = lot.uniform(-1, 1, steps).astype(np.float32)
    room = np.zeros(steps, dtype=np.int64)
    last = np.arange(1, steps + 1) % 10 == 0  # cut off by the clock, and begun anew in the first room
    for step in range(1, steps):
        room[step] = 0 if last[step - 1] else action[step - 1] > 0
    rooms = np.eye(2, dtype=np.float32)
    following = rooms[(action > 0).astype(np.int64)]
    none = np.zeros(steps, dtype=np.bool_)
    return Transitions(rooms[room], action[:, None], room.astype(np.float32), following, none, last)


def judged(logs: Transitions, action: float) -> tuple[Judged, tuple[torch.Tensor, torch.Tensor]]:
    """The policy that always does the same."""
    tensors = [torch.from_numpy(np.asarray(leaf)) for leaf in logs]
    observation, logged, reward, following = tensors[:4]
    always, alive = torch.full_like(logged, action), torch.ones_like(reward)
    episode = torch.from_numpy(episode_of(logs))
    first = torch.tensor([[1.0, 0.0]]).repeat(int(episode.max()) + 1, 1)
    return Judged(observation, logged, reward, following, always, alive, episode), (first, always[: len(first)])


def test_a_policy_other_than_the_logs_gets_its_known_value() -> None:
    value = DISCOUNT / (1 - DISCOUNT)
    samples, first = judged(chain(), 0.7)
    found = fitted_value(samples, first, discount=DISCOUNT, steps=400)
    assert found["value"] == pytest.approx(value, abs=0.3)
    assert found["value_low"] < found["value"] < found["value_high"]
    assert found["value_low"] - 0.1 <= value <= found["value_high"] + 0.1


def test_more_episodes_narrow_the_interval() -> None:
    widths = []
    for steps in (100, 2000):
        samples, first = judged(chain(steps), 0.7)
        noisy = samples._replace(reward=samples.reward + torch.randn(steps, generator=torch.manual_seed(0)))
        found = fitted_value(noisy, first, discount=DISCOUNT, steps=120)
        widths.append(found["value_high"] - found["value_low"])
    assert widths[1] < 0.7 * widths[0]


def test_the_logs_own_value_is_the_discounted_return_of_each_episode() -> None:
    logs = chain(25)
    assert episode_of(logs).tolist() == [0] * 10 + [1] * 10 + [2] * 5
    weights = DISCOUNT ** np.arange(10)
    expected = [logs.reward[:10] @ weights, logs.reward[10:20] @ weights, logs.reward[20:] @ weights[:5]]
    np.testing.assert_allclose(logged_value(logs, DISCOUNT), expected, rtol=1e-6)


def test_a_task_without_a_simulator_is_judged_from_its_logs() -> None:
    settings = Settings(
        environment="none", data="own", algorithm="plain-bc", discount=DISCOUNT, fqe_steps=15, hidden=SMALL["hidden"]
    )
    task = Control(settings, logs=chain(300))
    act = predictor(task, fresh_modules(task, 0))
    found = evaluate(task, act)
    assert list(found) == ["value", "value_low", "value_high", "logged_value"]
    assert found == evaluate(task, act)
    cohort = Cohort(task, Training(steps=1, batch=20), [0, 1])
    assert evaluate_cohort(task, cohort.state)[0]["value"] == pytest.approx(found["value"], rel=1e-3)
