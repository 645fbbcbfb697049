"""Phones that move: traces through a deployment, and how often their masters and serving access points change."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fewer.core.errors import UserError
from fewer.systems.cellfree.task.arrays import Bools, Floats, Integers, generator
from fewer.systems.cellfree.task.selectors.selector import Selector
from fewer.systems.cellfree.task.world.deployment import Deployment

__all__ = ["Handovers", "follow", "trace"]


def trace(deployment: Deployment, *, phones: int, steps: int, step_m: float, seed: int = 0) -> Floats:
    """(steps, phones, 2): random waypoints at constant speed, inside the area."""
    if phones < 1 or steps < 1 or not step_m > 0:
        raise UserError(f"{phones} phones, {steps} steps of {step_m} m", "at least one of each and a positive length")
    random, side, corner = generator(seed, "mobility"), deployment.side_m, np.array(deployment.corner_m)
    place, target = corner + random.uniform(0, side, (2, phones, 2))
    path = np.empty((steps, phones, 2))
    for step in range(steps):
        path[step] = place
        away = target - place
        distance = np.linalg.norm(away, axis=1, keepdims=True)
        there = distance[:, 0] <= step_m
        place = np.where(there[:, None], target, place + away * (step_m / np.maximum(distance, 1e-9)))
        target = np.where(there[:, None], corner + random.uniform(0, side, (phones, 2)), target)
    return path


@dataclass(frozen=True)
class Handovers:
    """What changed along the traces, per phone and kilometre, and how right the choice was on the way."""

    masters_per_km: float
    joins_per_km: float  # access points that begin to serve
    true_joins_per_km: float  # the same with every link measured
    precision: float
    recall: float


def follow(selector: Selector, path: Floats, *, hysteresis_db: float = 3.0, seed: int = 0) -> Handovers:
    """Select along (steps, phones, 2) traces; a phone changes its master when another is stronger by the hysteresis."""
    if path.ndim != 3 or path.shape[2] != 2 or len(path) < 2:
        raise UserError(f"traces of shape {path.shape}", "(steps, phones, 2) with two steps or more")
    world, random = selector.world, generator(seed, "mobility reports")
    deployment, settings = world.deployment, world.settings
    master: Integers | None = None
    before: tuple[Bools, Bools] | None = None
    changes = np.zeros(3)
    right, chosen_links, true_links = 0, 0, 0
    phones = np.arange(path.shape[1])
    for places in path:
        gain = deployment.gain_db(places)
        best = gain.argmax(axis=1)
        previous = best if master is None else master
        master = np.where(gain[phones, best] > gain[phones, previous] + hysteresis_db, best, previous)
        links = world.clusters.measured[master]
        rsrp = np.take_along_axis(gain, links, axis=1)
        rsrp = rsrp + settings.error_db * random.standard_normal(rsrp.shape)
        picked = selector.select(master, rsrp)
        chosen, serving = np.zeros_like(gain, dtype=bool), gain[phones, master][:, None] - gain < settings.threshold_db
        chosen[np.nonzero(picked.chosen)[0], picked.candidates[picked.chosen]] = True
        if before is not None:
            joined = (chosen & ~before[0]).sum(), (serving & ~before[1]).sum()
            changes += np.array([(master != previous).sum(), *joined])
        before = chosen, serving
        right += int((chosen & serving).sum())
        chosen_links, true_links = chosen_links + int(chosen.sum()), true_links + int(serving.sum())
    moved = deployment.displacement_m(path[:-1], path[1:])
    kilometres = float(np.linalg.norm(moved, axis=2).sum()) / 1000
    masters, joins, true_joins = (changes / kilometres).tolist()
    return Handovers(masters, joins, true_joins, right / chosen_links, right / true_links)
