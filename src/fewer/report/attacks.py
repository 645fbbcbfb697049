"""Quality against the budget of an attack: the metric that the task cares for most, on a part of the test split."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fewer.attack.audit import Audit, attacked, robust
from fewer.attack.threat import parse
from fewer.core.abilities import Classifier
from fewer.core.engines.evaluate import evaluate
from fewer.core.engines.nets import NetworkSet
from fewer.core.errors import UserError
from fewer.core.registry import system_of
from fewer.core.system import imported
from fewer.core.task import Task
from fewer.report.groups import Group, interval
from fewer.run.load import Trained

__all__ = ["attack_curve", "budgets", "quality_under", "shortened"]

SHARES = (0.0, 0.25, 0.5, 1.0)  # of the budget asked for


def budgets(attack: str) -> list[tuple[float, str]]:
    """The attack at a few budgets from nothing to its own; those of several attacks in one text move together."""
    found, most = [], max(threat.budget for threat in parse(attack))
    for share in SHARES:
        parts = []
        for part in attack.split("+"):
            name, _, rest = part.partition(":")
            budget, comma, options = rest.partition(",")
            parts.append(f"{name}:{share * float(budget):.6g}{comma}{options}")
        found.append((share * most, "+".join(parts)))
    return found


def shortened(name: str, task: Task[Any], limit: int) -> Task[Any]:
    """The task with less data, where attacking or making all of it would take minutes; the same for every run.

    Predictions do not depend on how much there is.
    """
    short = system_of(name).shorten
    return imported(short)(task, limit) if short else task


def quality_under(run: Trained, task: Task[Any], attack: str, limit: int) -> float:
    """The first metric of the task when every input is attacked; classifiers count `limit` images."""
    nets, seed = NetworkSet(run.modules, training=False), run.job.seeds[0]
    if isinstance(task, Classifier) and next(iter(run.metrics), "") == "accuracy":
        return robust(task, nets, attack, Audit(limit=limit, seed=seed)).robust
    return next(iter(evaluate(task, attacked(task, nets, attack, seed=seed)).values()))


def attack_curve(groups: Sequence[Group], attack: str, limit: int) -> dict[str, list[tuple[float, float, float]]]:
    """Per group (budget, mean, half an interval)."""
    if limit < 1:
        raise UserError(f"--limit {limit}", "at least one sample")
    curves = {}
    for group in groups:
        task = shortened(
            group.job.task, group.first.task, limit
        )  # its own: groups may differ in the networks they ask for
        curves[group.name] = [
            (budget, *interval([quality_under(run, task, text, limit) for run in group.runs]))
            for budget, text in budgets(attack)
        ]
    return curves
