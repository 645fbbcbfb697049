"""The control chapter of a report: the policy at work, and a task with fewer and shorter episodes."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from fewer.core.engines.evaluate import answered, predictor
from fewer.core.task import Predict
from fewer.report.certainty.units import Units
from fewer.report.page import words
from fewer.report.png import data_address
from fewer.run.load import Trained
from fewer.systems.control.picture import WHY_NOT, film
from fewer.systems.control.task.task import Control
from fewer.systems.control.task.worlds.evaluation import Episodes, metrics

__all__ = ["acting", "shortened", "units"]

_EPISODES, _HORIZON = 4, 400
_TEST = 0  # the first split has the first starts


def acting(run: Trained, attack: str) -> str:
    """The policy at work in its world, as an animated picture."""
    task = run.task
    assert isinstance(task, Control)
    if task.world is None:
        return words("Learnt from logs alone: there is no world to show the policy in.")
    predict, question = predictor(task, run.modules, run.job.seeds[0]), task.data("test").take(torch.tensor([0]))
    actions = task.world.actions  # of a prediction with two policies side by side, those of the first

    def policy(observation: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> Any:
        return predict(question._replace(observation=torch.from_numpy(observation)))[:, :actions].cpu().numpy()

    picture = film(policy, task.world)
    if picture is None:
        return words(WHY_NOT)
    caption = f"The policy at work in {task.world.gymnasium}, at its own pace."
    address = data_address(picture)
    return f'<figure><img width="320" alt="{caption}" src="{address}"><figcaption>{caption}</figcaption></figure>'


def units(task: Control, predict: Predict) -> Units | None:
    """Test episodes, of the first policy: their return and length; none where a policy is judged by logs."""
    world = task.world
    if world is None or not task.settings.rolls_out:
        return None
    starts: list[Any] = []

    def one(batch: Any) -> Any:
        if not starts:
            starts.append(batch.observation.cpu().numpy())
        return predict(batch)

    done = answered(_alone(task.episodes(world, _TEST, 1)), one)
    records = np.stack([done.returns[0], done.lengths[0].astype(np.float64)], axis=1)
    return Units("episodes", records, lambda some: metrics(world, some[:, 0], some[:, 1]), starts[0][: len(records)])


def _alone(running: Generator[Any, Any, Episodes]) -> Generator[Any, Any, Episodes]:
    """Of one replica, whose axis is left out."""
    batch = next(running)
    while True:
        answer = yield pytree.tree_map(lambda leaf: leaf[0], batch)
        try:
            batch = running.send(answer[None])
        except StopIteration as stop:
            done: Episodes = stop.value
            return done


def shortened(task: Control, limit: int) -> Control:
    """A few episodes, cut short; logs are judged as they are."""
    settings = task.settings
    if not settings.rolls_out:
        return task
    horizon = min(settings.horizon or _HORIZON, _HORIZON)
    less = dataclasses.replace(settings, episodes=min(settings.episodes, _EPISODES), horizon=horizon)
    return Control(less, logs=task.logs)
