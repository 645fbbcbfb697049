"""TD3+BC and IQL against their formulas."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from fewer.core.engines.base import Training
from fewer.core.engines.optimizer import Optimizer
from fewer.core.engines.plain import Plain
from fewer.systems.control.task.logs.episodes import episodes, return_span
from fewer.systems.control.task.settings import Settings
from fewer.systems.control.task.task import Control
from tests.systems.control.synthetic import SMALL, control, logs
from tests.systems.control.test_bcq import NOISE, descend, prepared


def test_td3bc_weighs_value_against_imitation() -> None:
    task = control("td3bc", behaviour_weight=2.5)
    nets, batch, seen = prepared(task)
    action = nets.actor(seen.observation)
    value = nets.critic(seen.observation, action)
    expected = -2.5 / value.abs().mean() * value.mean() + (action - batch.action).square().mean()
    torch.testing.assert_close(task.objectives()[1].loss(nets, batch, NOISE), expected)


def test_td3bc_takes_the_smaller_target_at_a_smoothed_action() -> None:
    task = control("td3bc")
    nets, batch, seen = prepared(task)
    jitter = (0.2 * NOISE.normal("smoothing", (30, 3))).clamp(-0.5, 0.5)
    action = (nets.actor_target(seen.next_observation) + jitter).clamp(-1, 1)
    values = [critic(seen.next_observation, action) for critic in (nets.critic_target, nets.critic2_target)]
    target = batch.reward + 0.99 * batch.alive * torch.stack(values).min(0).values
    found = [critic(seen.observation, batch.action) for critic in (nets.critic, nets.critic2)]
    expected = sum((one - target).square().mean() for one in found)
    torch.testing.assert_close(task.objectives()[0].loss(nets, batch, NOISE), expected)


def test_td3bc_moves_its_actor_at_every_second_step() -> None:
    engine = Plain(control("td3bc"), Training(steps=4, batch=50), 0)
    moved = []
    for _ in range(4):
        before = engine.state.networks["actor"].weights.clone()
        engine.advance(1)
        moved.append(not torch.equal(before, engine.state.networks["actor"].weights))
    assert moved == [True, False, True, False]


def test_iql_fits_an_expectile_of_the_logged_values() -> None:
    task = control("iql", expectile=0.7, reward_scale=0.5)
    nets, batch, seen = prepared(task)
    with torch.no_grad():
        nets.modules["value"].body[-1].bias -= 0.2  # type: ignore[index,operator,union-attr]
    logged = torch.minimum(*(c(seen.observation, batch.action) for c in (nets.critic_target, nets.critic2_target)))
    ahead = logged - nets.value(seen.observation)
    assert bool((ahead < 0).any()) and bool((ahead > 0).any())
    expected = torch.where(ahead < 0, 0.3, 0.7).mul(ahead.square()).mean()
    torch.testing.assert_close(task.objectives()[0].loss(nets, batch, NOISE), expected)
    target = 0.5 * batch.reward + 0.99 * batch.alive * nets.value(seen.next_observation)
    found = [critic(seen.observation, batch.action) for critic in (nets.critic, nets.critic2)]
    torch.testing.assert_close(
        task.objectives()[1].loss(nets, batch, NOISE), sum((one - target).square().mean() for one in found)
    )


def test_iql_regresses_on_logged_actions_weighed_by_their_advantage() -> None:
    task = control("iql", temperature=3.0)
    nets, batch, seen = prepared(task)
    logged = torch.minimum(*(c(seen.observation, batch.action) for c in (nets.critic_target, nets.critic2_target)))
    weight = (3.0 * (logged - nets.value(seen.observation))).exp().clamp(max=100.0)
    mean, log_deviation = nets.actor(seen.observation).split(3, dim=1)
    likelihood = torch.distributions.Normal(mean, log_deviation.exp()).log_prob(batch.action).sum(1)
    shift = 3 * 0.5 * torch.log(torch.tensor(2 * torch.pi, dtype=torch.float64))  # a constant that moves nothing
    expected = -(weight * (likelihood + shift)).mean()
    torch.testing.assert_close(task.objectives()[2].loss(nets, batch, NOISE), expected)


def test_five_updates_of_iql_are_those_of_the_papers_program() -> None:
    """Value, then policy and critics by the new value, then targets: `ikostrikov/implicit_q_learning`, learner.py."""
    task = control("iql", expectile=0.7, temperature=3.0, reward_scale=1.0)
    engine = Plain(task, Training(steps=5, batch=50, precision="float64", optimizer=Optimizer(lr=3e-4)), 0)
    body = {name: copy.deepcopy(module).requires_grad_(True) for name, module in engine.modules.items()}
    critics = [body["critic"], body["critic2"]]
    parameters = (
        [*body["value"].parameters()], [*body["actor"].parameters()], [p for one in critics for p in one.parameters()]
    )  # fmt: skip
    descents = [torch.optim.Adam(own, lr=3e-4) for own in parameters]
    for _ in range(5):
        observation, action, reward, following, alive = (leaf[0] for leaf in engine._sample())
        seen, later = task.normaliser(observation), task.normaliser(following)
        with torch.no_grad():
            logged = torch.minimum(body["critic_target"](seen, action), body["critic2_target"](seen, action))
        ahead = logged - body["value"](seen)
        descend(descents[0], ((0.7 - (ahead < 0).to(ahead)).abs() * ahead**2).mean())
        with torch.no_grad():
            weight = (3.0 * (logged - body["value"](seen))).exp().clamp(max=100.0)
            target = reward + 0.99 * alive * body["value"](later)
        mean, log_deviation = body["actor"](seen).split(3, dim=1)
        likelihood = torch.distributions.Normal(mean, log_deviation.exp()).log_prob(action).sum(1)
        descend(descents[1], -(weight * likelihood).mean())
        descend(descents[2], torch.stack([((critic(seen, action) - target) ** 2).mean() for critic in critics]).sum())
        for name in ("critic", "critic2"):
            for ours, theirs in zip(body[f"{name}_target"].parameters(), body[name].parameters()):
                ours.data = 0.995 * ours.data + 0.005 * theirs.data
        engine.advance(1)
    for name, module in body.items():
        expected = torch.cat([parameter.detach().reshape(-1) for parameter in module.parameters()])
        torch.testing.assert_close(engine.state.networks[name].weights[0], expected, rtol=1e-7, atol=1e-9, msg=name)


def test_iql_sees_rewards_by_which_logged_returns_span_a_thousand_and_judges_see_them_as_they_were() -> None:
    task = control("iql")
    nets, batch, seen = prepared(task)
    returns = episodes(task.logs).total
    scale = 1000 / (max(returns.max(), 0) - min(returns.min(), 0))
    target = scale * batch.reward + 0.99 * batch.alive * nets.value(seen.next_observation)
    found = [critic(seen.observation, batch.action) for critic in (nets.critic, nets.critic2)]
    torch.testing.assert_close(
        task.objectives()[1].loss(nets, batch, NOISE), sum((one - target).square().mean() for one in found)
    )
    assert torch.equal(task.steps.reward, torch.from_numpy(task.logs.reward))


def test_logs_without_a_reward_leave_iql_finite() -> None:
    logged = logs()
    task = Control(Settings(algorithm="iql", **SMALL), logs=logged._replace(reward=0 * logged.reward))
    nets, batch, _ = prepared(task)
    assert all(bool(one.loss(nets, batch, NOISE).isfinite()) for one in task.objectives())


def test_of_a_log_without_episodes_a_thousand_steps_count() -> None:
    steps = logs(4000)
    never = np.zeros(4000, dtype=np.bool_)
    endless = steps._replace(reward=0 * steps.reward + 2, terminal=never, timeout=never)
    assert return_span(endless) == pytest.approx(2000)
