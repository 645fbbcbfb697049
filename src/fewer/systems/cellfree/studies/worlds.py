"""What the cell-free studies share: deployments nobody tuned on, and networks that are trained once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fewer.core.engines.evaluate import evaluate, predictor
from fewer.core.files.atomic import write_atomically
from fewer.studies.order import Log
from fewer.systems.cellfree.task.selectors.trained import Trained
from fewer.systems.cellfree.task.settings import Settings
from fewer.systems.cellfree.task.survey import World
from fewer.systems.cellfree.task.task import CellFree

__all__ = ["SEEDS", "mean_and_spread", "paper_world", "sage_figures", "spelled"]

SEEDS = (1000, 1001, 1002, 1003, 1004)  # below 100 are for tuning
PAPER_SIDE_M = {100: 1000.0, 50: 2000.0}  # as the paper's setup states them


def paper_world(access_points: int, candidates: int, seed: int, **changes: Any) -> World:
    """One of the paper's networks."""
    side = PAPER_SIDE_M[access_points]
    settings = Settings(access_points=access_points, side_m=side, candidates=candidates, deployment_seed=seed)
    return World.make(Settings(**{**vars(settings), **changes}))


def sage_figures(
    access_points: int, candidates: int, *, steps: int, seeds: Sequence[int], out: Path, log: Log
) -> list[dict[str, float]]:
    """The paper's model on each deployment; figures that an earlier study left in `out` are read, not trained again."""
    path = out / "cellfree-trainings.json"
    known: dict[str, dict[str, float]] = json.loads(path.read_text()) if path.exists() else {}
    found = []
    for seed in seeds:
        key = f"L={access_points} c={candidates} steps={steps} deployment={seed}"
        if key not in known:
            world = paper_world(access_points, candidates, seed)
            trained = Trained("sage", steps=steps).fit(world)
            task = CellFree(trained.task.settings, world=world)
            known[key] = evaluate(task, predictor(task, trained.modules))
            write_atomically(path, (json.dumps(known, indent=1) + "\n").encode())
            log(f"{key}: " + ", ".join(f"{name} {known[key][name]:.3f}" for name in ("precision", "recall", "auc")))
        found.append(known[key])
    return found


def mean_and_spread(rows: Sequence[Mapping[str, float]], name: str) -> tuple[float, float]:
    """Over deployments."""
    values = np.array([row[name] for row in rows])
    return float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else 0.0


def spelled(rows: Sequence[Mapping[str, float]], name: str) -> str:
    """Mean and spread as a table shows them."""
    mean, spread = mean_and_spread(rows, name)
    return f"{mean:.3f} ± {spread:.3f}"
