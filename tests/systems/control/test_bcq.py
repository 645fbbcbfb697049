"""BCQ and BC against their formulas, term by term, and the paper's twin critics."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from fewer.core.engines.base import Training
from fewer.core.engines.nets import NetworkSet
from fewer.core.engines.plain import Plain
from fewer.core.engines.state import fresh_modules
from fewer.core.seed import Stream
from fewer.systems.control.task.logs.steps import Steps
from fewer.systems.control.task.task import Control
from tests.systems.control.synthetic import control

NOISE = Stream(torch.tensor(4), torch.tensor(9), torch.float64)


def prepared(task: Control) -> tuple[NetworkSet, Steps, Steps]:
    """Networks in double precision whose targets differ from their sources; a raw batch, and as networks see it."""
    modules = {name: module.double() for name, module in fresh_modules(task, 0).items()}
    others = fresh_modules(task, 1)
    for name in task.copies():
        modules[name] = others[name].double()
    task.constants = {name: value.double() for name, value in task.constants.items()}
    batch = Steps(*(leaf.double() for leaf in task.data("train").take(torch.arange(15, 45))))
    seen = batch._replace(
        observation=task.normaliser(batch.observation), next_observation=task.normaliser(batch.next_observation)
    )
    return NetworkSet(modules), batch, seen


def descend(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    """One step."""
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def test_the_target_is_the_best_of_ten_pessimistic_values_per_state() -> None:
    task = control("bcq", pessimism=0.75, target_samples=10)
    nets, batch, seen = prepared(task)
    latent = NOISE.normal("target", (300, 6)).clamp(-0.5, 0.5).reshape(30, 10, 6)
    total = torch.zeros((), dtype=torch.float64)
    for row in range(30):
        values: list[Tensor] = []
        for sample in range(10):
            state = seen.next_observation[row : row + 1]
            action = nets.actor_target(state, nets.decoder(state, latent[row, sample][None]))
            pair = torch.stack([nets.critic_target(state, action)[0], nets.critic2_target(state, action)[0]])
            values.append(0.75 * pair.min() + 0.25 * pair.max())
        target = batch.reward[row] + 0.99 * batch.alive[row] * torch.stack(values).max()
        for critic in (nets.critic, nets.critic2):
            found = critic(seen.observation[row : row + 1], batch.action[row : row + 1])[0]
            total = total + (found - target) ** 2 / 30
    assert not bool(batch.alive.all())  # a terminal is among them
    torch.testing.assert_close(task.objectives()[1].loss(nets, batch, NOISE), total)


def test_the_autoencoder_loses_reconstruction_and_half_the_divergence() -> None:
    task = control("bc")
    nets, batch, seen = prepared(task)
    mean, log_deviation = nets.encoder(seen.observation, batch.action).split(6, dim=1)
    latent = torch.distributions.Normal(mean, log_deviation.exp())
    standard = torch.distributions.Normal(torch.zeros_like(mean), torch.ones_like(mean))
    again = nets.decoder(seen.observation, mean + log_deviation.exp() * NOISE.normal("latent", (30, 6)))
    expected = (again - batch.action).square().mean() + 0.5 * torch.distributions.kl_divergence(latent, standard).mean()
    torch.testing.assert_close(task.objectives()[0].loss(nets, batch, NOISE), expected)


def test_the_actor_is_moved_by_the_first_critic_alone_and_changes_little() -> None:
    task = control("bcq", perturbation=0.05)
    nets, batch, seen = prepared(task)
    candidate = nets.decoder(seen.observation, NOISE.normal("actor", (30, 6)).clamp(-0.5, 0.5))
    action = nets.actor(seen.observation, candidate)
    assert 0 < float((action - candidate).detach().abs().max()) <= 0.05
    loss = task.objectives()[2].loss(nets, batch, NOISE)
    torch.testing.assert_close(loss, -nets.critic(seen.observation, action).mean())
    parts = {name: list(nets.modules[name].parameters()) for name in ("actor", "critic2", "decoder")}
    for name, parameters in parts.items():
        found = torch.autograd.grad(loss, parameters, retain_graph=True, materialize_grads=True)
        assert any(bool(gradient.any()) for gradient in found) == (name == "actor"), name


def test_the_policy_takes_the_candidate_that_the_first_critic_prefers() -> None:
    task = control("bcq", candidates=7)
    nets, batch, seen = prepared(task)
    latent = NOISE.normal("candidates", (7, 6)).clamp(-0.5, 0.5)
    expected = []
    for state in seen.observation[:, None]:
        states = state.expand(7, -1)
        actions = nets.actor(states, nets.decoder(states, latent))
        expected.append(actions[nets.critic(states, actions).argmax()])
    torch.testing.assert_close(task.predict(nets, batch.observation, NOISE), torch.stack(expected))


def test_the_decoder_of_a_bcq_agent_is_a_bc_policy_beside_its_own() -> None:
    both, own, decoder = (control("bcq", policy=policy) for policy in ("both", "own", "decoder"))
    nets, batch, _ = prepared(both)
    prepared(own), prepared(decoder)
    found = both.predict(nets, batch.observation, NOISE)
    torch.testing.assert_close(found[:, :3], own.predict(nets, batch.observation, NOISE))
    torch.testing.assert_close(found[:, 3:], decoder.predict(nets, batch.observation, NOISE))
    bc = control("bc")
    prepared(bc)
    torch.testing.assert_close(found[:, 3:], bc.predict(nets, batch.observation, NOISE))


@pytest.mark.parametrize(("twin", "equal"), [("copy", True), ("own", False)])
def test_a_copied_second_critic_stays_equal_for_ever(twin: str, equal: bool) -> None:
    engine = Plain(control("bcq", twin=twin), Training(steps=20, batch=50), 0)
    engine.advance(20)
    first, second = (engine.state.networks[name].weights for name in ("critic", "critic2"))
    assert torch.equal(first, second) is equal


def test_the_autoencoder_learns_the_same_inside_bcq_and_alone() -> None:
    weights = []
    for algorithm in ("bcq", "bc"):
        engine = Plain(control(algorithm), Training(steps=10, batch=50), 0)
        engine.advance(10)
        weights.append(engine.state.networks["decoder"].weights)
    assert torch.equal(*weights)


def test_five_updates_of_bcq_are_those_of_the_reference() -> None:
    """Autoencoder, critics, actor, targets, three optimisers: `sfujim/BCQ`, continuous_BCQ/BCQ.py."""
    task = control("bcq")
    engine = Plain(task, Training(steps=5, batch=50, precision="float64"), 0)
    body = {name: copy.deepcopy(module).requires_grad_(True) for name, module in engine.modules.items()}
    groups = (("encoder", "decoder"), ("critic", "critic2"), ("actor",))
    descents = [torch.optim.Adam([p for name in own for p in body[name].parameters()], lr=1e-3) for own in groups]
    for _ in range(5):
        observation, action, reward, following, alive = (leaf[0] for leaf in engine._sample())
        seen, later, noise = task.normaliser(observation), task.normaliser(following), engine.noise()
        mean, log_deviation = body["encoder"](seen, action).split(6, dim=1)
        deviation = log_deviation.exp()
        again = body["decoder"](seen, mean + deviation * noise.normal("latent", (50, 6)))
        divergence = -0.5 * (1 + torch.log(deviation**2) - mean**2 - deviation**2).mean()
        descend(descents[0], ((again - action) ** 2).mean() + 0.5 * divergence)
        with torch.no_grad():
            later = torch.repeat_interleave(later, 10, 0)
            drawn = body["decoder"](later, noise.normal("target", (500, 6)).clamp(-0.5, 0.5))
            candidate = body["actor_target"](later, drawn)
            values = torch.stack([body[f"{name}_target"](later, candidate) for name in groups[1]])
            mixed = 0.75 * values.min(0).values + 0.25 * values.max(0).values
            target = reward + alive * 0.99 * mixed.reshape(50, 10).max(1).values
        found = [body[name](seen, action) for name in groups[1]]
        descend(descents[1], functional.mse_loss(found[0], target) + functional.mse_loss(found[1], target))
        drawn = body["decoder"](seen, noise.normal("actor", (50, 6)).clamp(-0.5, 0.5))
        descend(descents[2], -body["critic"](seen, body["actor"](seen, drawn)).mean())
        for name in ("critic", "critic2", "actor"):
            for slow, fast in zip(body[f"{name}_target"].parameters(), body[name].parameters()):
                slow.data = 0.005 * fast.data + 0.995 * slow.data
        engine.advance(1)
    for name, module in body.items():
        expected = torch.cat([parameter.detach().reshape(-1) for parameter in module.parameters()])
        torch.testing.assert_close(engine.state.networks[name].weights[0], expected, rtol=1e-7, atol=1e-9, msg=name)
