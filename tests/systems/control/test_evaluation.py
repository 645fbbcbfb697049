"""Roll-outs, alone and together, under attack and voting; statistics over seeds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import fewer
from fewer.attack.metrics import under_attack
from fewer.core.engines.base import Training
from fewer.core.engines.cohort import Cohort
from fewer.core.engines.evaluate import evaluate, evaluate_cohort, predictor
from fewer.core.engines.nets import NetworkSet
from fewer.core.engines.plain import Plain
from fewer.core.engines.state import fresh_modules
from fewer.core.errors import UserError
from fewer.systems.control.task.statistics import interquartile_mean, statistics
from fewer.systems.control.task.worlds.evaluation import metrics
from fewer.systems.control.task.worlds.rollout import Many
from tests.systems.control.synthetic import control
from tests.toys import stream


def test_a_policy_is_judged_by_the_return_of_its_own_actions() -> None:
    task = control("plain-bc", episodes=3, horizon=8, episode_seed=5)
    found = evaluate(task, predictor(task, fresh_modules(task, 0)))
    act, many = predictor(task, fresh_modules(task, 0)), Many("hopper", 3, seed=5)
    seen, total = many.reset(), np.zeros(3)
    for _ in range(8):
        batch = task.data("train").take(torch.arange(3))._replace(observation=torch.from_numpy(seen))
        seen, reward, *_ = many.step(act(batch).numpy())
        total += reward
    assert found["return"] == pytest.approx(total.mean())
    assert found["score"] == pytest.approx(100 * (total.mean() + 20.272305) / (3234.3 + 20.272305))
    assert next(iter(found)) == "score"
    assert found["length"] == 8


def test_a_packs_roll_out_by_hand_in_gymnasium_gives_the_printed_figure(tmp_path: Path) -> None:
    gymnasium = pytest.importorskip("gymnasium")
    words = {"settings": {"algorithm": "plain-bc", "transitions": 300, "episodes": 2, "horizon": 40}, "steps": 20}
    run = fewer.train("control", tmp_path / "run", **words)
    fewer.pack(tmp_path / "run", tmp_path / "policy.pack")
    policy, world, returns = fewer.open_pack(tmp_path / "policy.pack"), gymnasium.make("Hopper-v5"), []
    for episode in range(2):
        seen, _ = world.reset(seed=int(np.random.SeedSequence([100, episode]).generate_state(1)[0]))
        total, done, steps = 0.0, False, 0
        while not done and steps < 40:
            seen, reward, fallen, cut, _ = world.step(policy.predict(seen.astype(np.float32)))
            total, done, steps = total + float(reward), fallen or cut, steps + 1
        returns.append(total)
    assert np.mean(returns) == pytest.approx(run.metrics["return"], rel=1e-4)


def test_validation_meets_other_episodes_than_the_test() -> None:
    task = control("plain-bc")
    act = predictor(task, fresh_modules(task, 0))
    assert evaluate(task, act, "test") == evaluate(task, act, "test") != evaluate(task, act, "validation")
    with pytest.raises(UserError, match="split"):
        evaluate(task, act, "holdout")


def test_all_replicas_of_a_cohort_are_asked_in_one_call_and_judged_as_if_alone() -> None:
    task = control("bcq", policy="both", horizon=6)
    cohort = Cohort(task, Training(steps=3, batch=20, precision="float64"), [0, 1, 2])
    cohort.advance(3)
    together = evaluate_cohort(task, cohort.state)
    for replica in range(3):
        alone = evaluate(task, predictor(task, cohort.state.modules_of(replica), replica))
        assert together[replica] == pytest.approx(alone, rel=1e-6, abs=1e-6)
    running, asked = task.evaluate_together("test", 3), 0
    batch = next(running)
    while True:
        asked += 1
        assert batch.observation.shape == (3, 4, 11)  # two policies of two episodes each
        try:
            batch = running.send(torch.zeros(3, 4, 6))
        except StopIteration:
            break
    assert asked == 6


def test_both_policies_of_a_bcq_agent_are_judged_as_each_alone() -> None:
    both, own, decoder = (control("bcq", policy=policy) for policy in ("both", "own", "decoder"))
    modules = fresh_modules(both, 0)
    found, first, second = (evaluate(task, predictor(task, modules)) for task in (both, own, decoder))
    assert found["score"] == pytest.approx(first["score"], abs=1e-4)
    assert found["bc_score"] == pytest.approx(second["score"], abs=1e-4)
    assert abs(first["score"] - second["score"]) > 1e-3


@pytest.mark.parametrize(("algorithm", "changes"), [("bc", {}), ("bcq", {"attack_loss": "value"}), ("bcq", {})])
def test_an_attack_changes_what_is_seen_by_at_most_its_budget(algorithm: str, changes: dict[str, Any]) -> None:
    from fewer.attack.audit import attacked

    task = control(algorithm, **changes)
    modules = fresh_modules(task, 0)
    batch = task.data("train").take(torch.arange(40))
    for attack, budget in (("fgsm:0.1", 0.1), ("pgd:0.3,steps=5", 0.3)):
        seen: list[torch.Tensor] = []

        def keep(changed: Any, seen: list[torch.Tensor] = seen) -> torch.Tensor:
            seen.append(changed.observation)
            return predictor(task, modules)(changed)

        attacked(task, NetworkSet(modules, training=False), attack, predict=keep)(batch)
        moved = (seen[0] - batch.observation) / task.normaliser.deviation
        assert 0.5 * budget < float(moved.abs().max()) <= budget * (1 + 1e-4)
        before, after = (task.predict(NetworkSet(modules), x, stream(0, 0, torch.float32)) for x in (batch[0], seen[0]))
        assert float((before - after).detach().abs().max()) > 1e-4


def test_an_attack_does_more_harm_than_noise_of_its_size() -> None:
    task = control("bc")
    engine = Plain(task, Training(steps=100, batch=50), 0)
    engine.advance(100)
    modules = engine.state.modules_of(0)
    nets, noise = NetworkSet(modules, training=False), stream(1, 0, torch.float32)
    from fewer.attack.threat import parse

    batch = task.data("train").take(torch.arange(100))
    crafted = parse("pgd:0.2,steps=10")[0].on(task)(nets, batch, noise)
    jitter = 0.2 * task.normaliser.deviation * (2 * torch.rand(100, 11) - 1).sign()
    act = predictor(task, modules)
    clean = act(batch)
    attacked, jittered = act(crafted), act(batch._replace(observation=batch.observation + jitter))
    assert float((attacked - clean).square().sum(1).mean()) > 1.5 * float((jittered - clean).square().sum(1).mean())


def test_roll_outs_run_under_attack() -> None:
    task = control("bcq")
    modules = fresh_modules(task, 0)
    clean, attacked = evaluate(task, predictor(task, modules)), under_attack(task, modules, "pgd:0.5,steps=3")
    assert attacked.keys() == clean.keys()
    assert attacked["return"] != clean["return"]


def test_an_environment_without_references_is_judged_by_returns_alone() -> None:
    from fewer.systems.control.task.worlds.environments import Environment

    world = Environment("mine", "Mine-v0", 2, 1, (-1.0,), (1.0,), steps=10)
    found = metrics(world, np.array([1.0, 2.0, 6.0]), np.array([3, 4, 5]))
    assert list(found) == ["return", "return_median", "return_interquartile_mean", "length"]
    assert (found["return"], found["return_median"], found["length"]) == (3.0, 2.0, 4.0)


def test_the_interquartile_mean_is_that_of_the_middle_half() -> None:
    assert interquartile_mean([0, 1, 2, 100]) == 1.5
    assert interquartile_mean([7.0]) == 7.0
    # of five, 1.25 on either side are cut: 0.75 of the second and of the fourth remain
    assert interquartile_mean([0, 1, 2, 4, 50]) == pytest.approx((0.75 * 1 + 2 + 0.75 * 4) / 2.5)
    values = np.random.default_rng(0).normal(size=40)
    assert interquartile_mean(values) == pytest.approx(np.sort(values)[10:30].mean())


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=12))
def test_statistics_lie_within_the_values(values: list[float]) -> None:
    found = statistics(values)
    assert all(min(values) - 1e-9 <= value <= max(values) + 1e-9 for value in found.values())
    assert found["low"] <= found["mean"] + 1e-9 and found["mean"] <= found["high"] + 1e-9


def test_the_bootstrap_interval_covers_the_mean_as_often_as_it_says() -> None:
    lot = np.random.default_rng(0)
    found = [statistics(lot.normal(size=30), seed=trial) for trial in range(150)]
    covered = np.mean([row["low"] <= 0 <= row["high"] for row in found])
    assert 0.87 <= covered <= 1.0
    assert statistics(np.ones((5, 3)))["high"] == 1.0
