"""Control from logged data as a task: an observation in, an action out, judged by roll-outs or by the logs alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from fewer.core.data import TensorData
from fewer.core.errors import UserError
from fewer.core.recipe import Recipe
from fewer.core.task import Copy, Data, Nets, Noise, Objective, Task
from fewer.systems.control.task.algorithms.algorithm import Algorithm
from fewer.systems.control.task.algorithms.bcq import BatchConstrained
from fewer.systems.control.task.algorithms.clone import Clone, PlainClone
from fewer.systems.control.task.algorithms.iql import SPAN, Implicit
from fewer.systems.control.task.algorithms.normaliser import Normaliser
from fewer.systems.control.task.algorithms.td3bc import TwinDelayed
from fewer.systems.control.task.logs.episodes import return_span
from fewer.systems.control.task.logs.steps import Bounds, Disturbed, Steps, steps_of
from fewer.systems.control.task.logs.transitions import Transitions
from fewer.systems.control.task.recipes import RECIPES
from fewer.systems.control.task.settings import Settings
from fewer.systems.control.task.worlds.environments import Environment, environment

if TYPE_CHECKING:
    from fewer.systems.control.task.worlds.evaluation import Episodes

__all__ = ["Control", "Settings"]

_ALGORITHMS: dict[str, type[Algorithm]] = {
    "bcq": BatchConstrained,
    "bc": Clone,
    "plain-bc": PlainClone,
    "td3bc": TwinDelayed,
    "iql": Implicit,
}
_SPLITS = ("test", "validation", "train")
_FAR = 100.0  # deviations beyond the logs that an attack may not leave; policies wander, sensors have no bounds
_NEARBY = 0.01  # deviations
_ASKED_AT_ONCE = 10_000


class Control(Task[Steps]):
    """Predictions are actions in the environment's units; batches hold raw observations and actions in -1 to 1.

    Attacks change observations by a budget in standard deviations of the logs.
    """

    recommended: Mapping[str, Any] = {"steps": 5000, "batch": 100}

    @classmethod
    def recipe(cls, settings: Any) -> Recipe:
        """By algorithm."""
        return RECIPES[settings.algorithm]

    def __init__(self, settings: Settings | None = None, *, logs: Transitions | None = None) -> None:
        self.settings = settings if settings is not None else Settings()
        self.world: Environment | None = None
        if self.settings.environment != "none":
            self.world = environment(self.settings.environment)
        self.logs = _logs(self.settings, self.world) if logs is None else logs
        low, high = self._action_bounds()
        widths = None if self.world is None else (self.world.observations, self.world.actions)
        self.steps = steps_of(self.logs, (low, high), widths)
        self.algorithm = _ALGORITHMS[self.settings.algorithm](
            self.settings, self.steps.observation.shape[1], self.steps.action.shape[1]
        )
        normaliser = Normaliser.of(self.steps.observation)
        self.constants: Mapping[str, Tensor] = {
            **normaliser._asdict(),
            "middle": torch.as_tensor((low + high) / 2),
            "half_range": torch.as_tensor((high - low) / 2),
        }
        self._identity = bool((low == -1).all() and (high == 1).all())
        self._reward_scale = self._scale_of_rewards()
        normal = normaliser(self.steps.observation)
        self.bounds = normal.amin(0) - _FAR, normal.amax(0) + _FAR

    def _action_bounds(self) -> Bounds:
        if self.settings.action_bound or self.world is None:
            bound = np.array([self.settings.action_bound or 1.0], dtype=np.float32)
            return -bound, bound
        return self.world.bounds()

    def _scale_of_rewards(self) -> float:
        """What an algorithm whose settings stand for one scale of values multiplies rewards by; judges never do."""
        if self.settings.algorithm != "iql":
            return 1.0
        return self.settings.reward_scale or SPAN / (return_span(self.logs) or SPAN)

    @property
    def normaliser(self) -> Normaliser:
        """Of the logs, also where the networks see raw observations."""
        return Normaliser(self.constants["mean"], self.constants["deviation"])

    def networks(self) -> dict[str, nn.Module]:
        return self.algorithm.networks()

    def copies(self) -> dict[str, Copy]:
        return self.algorithm.copies()

    def same_mask(self) -> dict[str, str]:
        return self.algorithm.same_mask()

    def spare(self) -> tuple[str, ...]:
        """A latent variable that says nothing of the action costs nothing."""
        return ("encoder",)

    def objectives(self) -> tuple[Objective[Steps], ...]:
        return tuple(self._seeing(objective) for objective in self.algorithm.objectives())

    def _seeing(self, objective: Objective[Steps]) -> Objective[Steps]:
        """The objective on batches as the networks see them."""

        def loss(nets: Nets, batch: Steps, noise: Noise) -> Tensor:
            seen = self._seen(batch.observation), self._seen(batch.next_observation)
            changed = batch._replace(
                observation=seen[0], next_observation=seen[1], reward=batch.reward * self._reward_scale
            )
            return objective.loss(nets, changed, noise)

        return dataclasses.replace(objective, loss=loss)

    def _seen(self, observation: Tensor) -> Tensor:
        return self.normaliser(observation) if self.settings.normalise else observation

    def data(self, split: str) -> Data[Steps]:
        """All logs, whatever the split: episodes judge, not logs."""
        return TensorData(self.steps)

    def inputs(self, batch: Steps) -> Tensor:
        return batch.observation

    def predict(self, nets: Nets, inputs: Tensor, noise: Noise) -> Tensor:
        """(batch, actions); with policy=both the decoder's actions follow in further columns."""
        action = self.algorithm.act(nets, self._seen(inputs), noise)
        if self._identity:
            return action
        times = 2 if self.settings.policy == "both" else 1
        middle, half = (self.constants[name].repeat(times) for name in ("middle", "half_range"))
        return middle + half * action

    def perturbable(self, batch: Steps) -> Tensor:
        """The observations, in standard deviations of the logs."""
        return self._units(batch.observation)(batch.observation)

    def replace(self, batch: Steps, surface: Tensor) -> Steps:
        """The batch with other observations; the true ones stay beside them."""
        clean = batch.clean if isinstance(batch, Disturbed) else batch.observation
        changed = self._units(clean).inverse(surface)
        return Disturbed(changed, *batch[1:5], clean)  # type: ignore[return-value]

    def _units(self, like: Tensor) -> Normaliser:
        return Normaliser(*(part.to(like) for part in self.normaliser))

    def attack_loss(self, nets: Nets, batch: Steps, noise: Noise) -> Tensor:
        """How far the action moves, squared; or, with attack_loss=value, what the true state loses by it."""
        clean = batch.clean if isinstance(batch, Disturbed) else batch.observation
        action = self.algorithm.act(nets, self._seen(batch.observation), noise)
        if self.settings.attack_loss == "value":
            value: Tensor = nets.critic(self._seen(clean), action[:, : self.algorithm.actions])
            return -value
        # away from the action at a neighbour of the true observation: at that itself the slope would be zero
        nearby = clean + _NEARBY * self._units(clean).deviation * noise.normal("nearby", tuple(clean.shape))
        reference = self.algorithm.act(nets, self._seen(nearby), noise)
        return (action - reference.detach()).square().sum(dim=1)

    def majority(self, predictions: Tensor) -> Tensor:
        """The median of each action; of an even number of members the middle of the two."""
        return torch.quantile(predictions, 0.5, dim=0)

    def evaluate(self, split: str) -> Generator[Steps, Tensor, dict[str, float]]:
        together = self.evaluate_together(split, 1)
        batch = next(together)
        while True:
            answer = yield pytree.tree_map(lambda leaf: leaf[0], batch)
            try:
                batch = together.send(answer[None])
            except StopIteration as stop:
                found: list[dict[str, float]] = stop.value
                return found[0]

    def evaluate_together(self, split: str, replicas: int) -> Generator[Steps, Tensor, list[dict[str, float]]]:
        """Leaves (replicas, samples, ...) out, (replicas, samples, actions) in: every replica's episodes at once."""
        if split not in _SPLITS:
            raise UserError(f"split {split!r}", f"one of {', '.join(_SPLITS)}")
        if not self.settings.rolls_out or self.world is None:
            return (yield from self._fitted(replicas))
        return (yield from self._rolled_out(self.world, _SPLITS.index(split), replicas))

    def _rolled_out(
        self, world: Environment, split: int, replicas: int
    ) -> Generator[Steps, Tensor, list[dict[str, float]]]:
        from fewer.systems.control.task.worlds.evaluation import metrics

        done = yield from self.episodes(world, split, replicas)
        found = [metrics(world, *both) for both in zip(done.returns, done.lengths)]
        if self.settings.policy != "both":
            return found
        return [
            {**own, **{f"bc_{name}": value for name, value in decoder.items()}}
            for own, decoder in zip(found[::2], found[1::2])
        ]

    def episodes(self, world: Environment, split: int, replicas: int) -> Generator[Steps, Tensor, Episodes]:
        """What happened in every episode; a row for each policy of each replica."""
        from fewer.systems.control.task.worlds.evaluation import roll_outs

        settings, actions = self.settings, self.algorithm.actions
        policies = 2 if settings.policy == "both" else 1
        running = roll_outs(
            world, replicas * policies, episodes=settings.episodes,
            seed=settings.episode_seed + split, horizon=settings.horizon,
        )  # fmt: skip
        seen = next(running)
        while True:
            answer = yield self._asked(seen.reshape(replicas, policies * settings.episodes, -1))
            # each policy has its own rows and its own columns
            rows = answer.unflatten(1, (policies, settings.episodes)).unflatten(3, (policies, actions))
            chosen = torch.stack([rows[:, policy, :, policy] for policy in range(policies)], dim=1)
            try:
                seen = running.send(chosen.flatten(0, 1))
            except StopIteration as stop:
                done: Episodes = stop.value
                return done

    def _asked(self, observation: Tensor) -> Steps:
        """A question: observations (replicas, samples, ...) and nothing else that is known."""
        lead, actions = observation.shape[:2], self.algorithm.actions
        nothing = observation.new_zeros(*lead)
        return Steps(observation, observation.new_zeros(*lead, actions), nothing, observation, nothing + 1)

    def _fitted(self, replicas: int) -> Generator[Steps, Tensor, list[dict[str, float]]]:
        from fewer.systems.control.task.algorithms.fqe import Judged, episode_of, fitted_value, logged_value

        episode, discount = episode_of(self.logs), self.settings.discount
        begins = torch.from_numpy(np.flatnonzero(np.diff(episode, prepend=-1)))
        first, count, answers = self.steps.observation[begins], len(episode), []
        for part in torch.cat([self.steps.next_observation, first]).split(_ASKED_AT_ONCE):
            answer = yield self._asked(part.expand(replicas, *part.shape))
            answers.append(answer[..., : self.algorithm.actions].detach().cpu().float())
        middle, half = (self.constants[name].cpu().float() for name in ("middle", "half_range"))
        actions = (torch.cat(answers, dim=1) - middle) / half
        units = self._units(first)
        observation, action, reward, following, alive = self.steps
        earned = float(logged_value(self.logs, discount).mean())
        found = []
        for row in actions:
            judged = Judged(
                units(observation), action, reward, units(following), row[:count], alive, torch.from_numpy(episode)
            )
            begin = units(first), row[count:]
            value = fitted_value(judged, begin, discount=discount, steps=self.settings.fqe_steps, level=earned)
            found.append({**value, "logged_value": earned})
        return found


def _logs(settings: Settings, world: Environment | None) -> Transitions:
    from fewer.systems.control.task.logs import source

    expert = f"expert:{settings.environment}:{settings.transitions}:{settings.data_seed}"
    return source.transitions(settings.data or expert, world)
