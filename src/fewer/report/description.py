"""What numbers and settings mean, in words."""

from __future__ import annotations

import math
from typing import Any

from fewer.core.registry import system_of
from fewer.core.system import Metric
from fewer.run.job import Job

__all__ = ["in_words", "metric_of", "microseconds", "shown"]


_SHARED = {"loss": Metric("loss", "mean of what training minimises, on the test split")}


def metric_of(task: str, name: str) -> Metric:
    """What a number of a task counts; of one that nobody described, its own name."""
    known = {**_SHARED, **system_of(task).metrics}
    return known.get(name, Metric(name.replace("_", " ")))


def in_words(job: Job) -> str:
    """A run's settings as a sentence or three."""
    training = job.training
    chosen = ", ".join(pair.replace("=", " ", 1) for pair in job.settings)
    told = [f"With {chosen}." if chosen else "With the task's own settings."]
    optimizer = training.optimizer
    told.append(
        f"{training.steps:,} steps of {training.batch} samples by {optimizer.kind} from a rate of {optimizer.lr:g} "
        "(unless the task sets its own)."
    )
    told.append(_pruned(job.prune))
    if job.harden:
        told.append(f"Trained on attacked inputs: {job.harden}.")
    if job.start_from:
        told.append(f"Started from the weights of {job.start_from}.")
    return " ".join(part for part in told if part)


def _pruned(prune: Any) -> str:
    if prune is None:
        return "Nothing was pruned."
    share = f"{100 * prune.sparsity:.4g} % of the prunable weights"
    how = {"snip": "SNIP", "grasp": "GraSP", "synflow": "SynFlow", "lamp": "LAMP"}.get(prune.method, prune.method)
    by = "chosen at random" if prune.method == "random" else f"chosen by {how}"
    when = {
        "start": "before the first step",
        "gradual": "step by step on the way",
        "set": "and swapped during training (SET)",
        "rigl": "and swapped during training (RigL)",
        "rounds": "in rounds of training and rewinding (a lottery ticket)",
    }[prune.when]
    return f"{share} were removed {when}, {by}."


def shown(value: float, share: bool) -> str:
    """A number as people write it."""
    if not math.isfinite(value):
        return "-"
    if share:
        return f"{100 * value:.1f} %"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3f}" if 0.1 <= abs(value) < 1 else f"{value:.3g}"


def microseconds(value: float) -> str:
    """A time with its unit."""
    if value >= 10_000:
        return f"{value / 1000:,.3g} ms"
    return f"{value:,.0f} µs" if value >= 100 else f"{value:.2g} µs"
