"""What the cell-free studies share: deployments nobody tuned on, readings of the paper, networks trained once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from fewer.core.engines.base import Training
from fewer.core.engines.evaluate import evaluate, predictor
from fewer.core.engines.loop import fit
from fewer.core.engines.plain import Plain
from fewer.core.errors import UserError
from fewer.core.files.atomic import write_atomically
from fewer.run.options import job_of
from fewer.studies.order import Order
from fewer.studies.plan import Planned
from fewer.systems.cellfree.presets import AREAS_M, PRESETS
from fewer.systems.cellfree.task.files.measured import read_deployment
from fewer.systems.cellfree.task.settings import Settings
from fewer.systems.cellfree.task.survey import World
from fewer.systems.cellfree.task.task import CellFree

__all__ = [
    "CELLS", "SEEDS", "Case", "cells", "kept_metrics", "mean_and_spread", "plan_of", "refuse_data", "seeds_of",
    "settings_for", "spelled", "timed_engine", "world_of",
]  # fmt: skip

SEEDS = tuple(range(1000, 1010))  # of deployments; below 100 are for tuning
DEPLOYMENTS = {"quick": 2, "full": 5, "paper": 10}
CELLS = ((100, 10), (100, 20), (50, 10), (50, 20))  # access points, candidates
_QUICK = 5  # times fewer updates than a preset has


def seeds_of(order: Order, most: int = len(SEEDS)) -> tuple[int, ...]:
    """Deployments of the scale; a user's file is one."""
    return SEEDS[: 1 if order.data else min(DEPLOYMENTS[order.scale], most)]


def refuse_data(order: Order, why: str) -> None:
    """Of a study that a user's file says nothing about."""
    if order.data:
        raise UserError(f"--data {order.data}", "none", why)


def cells(order: Order) -> tuple[tuple[int, int], ...]:
    """Access points and candidates: the paper's, or those of a user's file."""
    if not order.data:
        return CELLS
    count = len(read_deployment(Settings(maps=order.data)))
    return tuple((count, candidates) for candidates in (10, 20) if candidates < count) or ((count, count - 1),)


def settings_for(order: Order, reading: str, cell: tuple[int, int], seed: int, **changes: Any) -> Settings:
    """A preset's settings on a network of the paper, or on the user's file."""
    given: dict[str, Any] = {**PRESETS[reading]["settings"], "candidates": cell[1], "deployment_seed": seed, **changes}
    if order.data:
        area = {"access_points": cell[0], "maps": order.data}
    else:
        area = {"access_points": cell[0], "side_m": AREAS_M.get(reading, AREAS_M["paper"])[cell[0]]}
    return Settings(**{**given, **area})


@dataclass(frozen=True)
class Case:
    """One training: a reading of the paper on one deployment."""

    order: Order
    reading: str
    cell: tuple[int, int]
    seed: int
    steps: int = 0  # 0: the preset's

    @property
    def settings(self) -> Settings:
        """Of the task."""
        return settings_for(self.order, self.reading, self.cell, self.seed)

    @property
    def training(self) -> Training:
        """As the preset says; a fifth of it at scale quick."""
        asked = job_of("cellfree", PRESETS[self.reading]).training
        return replace(asked, steps=(self.steps or asked.steps) // (_QUICK if self.order.scale == "quick" else 1))

    def words(self) -> dict[str, Any]:
        """Of the training, as a record tells it."""
        optimizer = PRESETS[self.reading].get("optimizer", "the task's own")
        return {"steps": self.training.steps, "batch": self.training.batch, "optimizer": optimizer, "seed": 0}

    def engine(self) -> Plain:
        """Ready for its first update."""
        return Plain(CellFree(self.settings), self.training, 0)

    def trained(self) -> tuple[CellFree, dict[str, Any]]:
        """The task and its networks."""
        engine = self.engine()
        fit(engine)
        assert isinstance(engine.task, CellFree)
        return engine.task, engine.state.modules_of(0)

    def key(self) -> str:
        """What it is, to find it again: every setting that is not the task's own, and the training."""
        plain = vars(Settings())
        own = {name: value for name, value in vars(self.settings).items() if value != plain[name]}
        return " ".join(f"{name}={value}" for name, value in {**own, **self.words()}.items())


def kept_metrics(cases: Sequence[Case]) -> list[dict[str, float]]:
    """Test metrics of every case; those that an earlier study left in `out` are read, not trained again."""
    found = []
    for case in cases:
        path = case.order.out / "cellfree-trainings.json"
        known: dict[str, dict[str, float]] = json.loads(path.read_text()) if path.exists() else {}
        if (key := case.key()) not in known:
            task, modules = case.trained()
            known[key] = evaluate(task, predictor(task, modules))
            write_atomically(path, (json.dumps(known, indent=1) + "\n").encode())
            told = ", ".join(f"{name} {known[key][name]:.3f}" for name in ("precision", "recall", "auc"))
            case.order.log(f"{case.reading} {case.cell} {case.seed}: {told}")
        found.append(known[key])
    return found


def plan_of(cases: Sequence[Case]) -> list[Planned]:
    """One line for each reading and network, as often as there are deployments."""
    alike: dict[tuple[str, tuple[int, int]], list[Case]] = {}
    for case in cases:
        alike.setdefault((case.reading, case.cell), []).append(case)
    return [
        Planned(
            f"{reading} L={cell[0]} c={cell[1]}",
            same[0].training.steps,
            partial(timed_engine, same[0].settings, same[0].training),
            len(same),
        )
        for (reading, cell), same in alike.items()
    ]


def timed_engine(settings: Settings, training: Training) -> Plain:
    """One whose updates take as long as on a whole world, on coarse maps with few phones."""
    few = replace(settings, pixel_m=max(settings.pixel_m, settings.side_m / 20), train_phones=2 * training.batch)
    return Plain(CellFree(few), training, 0)


def mean_and_spread(rows: Sequence[Mapping[str, float]], name: str) -> tuple[float, float]:
    """Over deployments."""
    values = np.array([row[name] for row in rows])
    return float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else 0.0


def spelled(rows: Sequence[Mapping[str, float]], name: str) -> str:
    """Mean and spread as a table shows them; of one deployment its number alone."""
    mean, spread = mean_and_spread(rows, name)
    return f"{mean:.3f} ± {spread:.3f}" if len(rows) > 1 else f"{mean:.3f}"


def world_of(order: Order, reading: str, cell: tuple[int, int], seed: int, **changes: Any) -> World:
    """Its deployment and candidates."""
    return World.make(settings_for(order, reading, cell, seed, **changes))
