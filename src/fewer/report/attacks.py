"""Quality against the budget of an attack: the metric that the task cares for most, on a part of the test split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fewer.attack.audit import attacked
from fewer.attack.threat import parse
from fewer.core.engines.evaluate import evaluate
from fewer.core.engines.nets import NetworkSet
from fewer.core.errors import UserError
from fewer.core.registry import system_of
from fewer.core.system import imported
from fewer.core.task import Task
from fewer.report.certainty.judged import judged_under, leading
from fewer.report.certainty.units import Interval, Units, intervals
from fewer.report.groups import Group, over_seeds
from fewer.run.load import Trained

__all__ = ["Attacked", "attack_curve", "attack_in_words", "budgets", "quality_under", "shortened"]

SHARES = (0.0, 0.25, 0.5, 1.0)  # of the budget asked for


@dataclass(frozen=True)
class Attacked:
    """One group at one budget."""

    budget: float
    found: Interval
    units: tuple[Units | None, ...]  # of each of its runs

    @property
    def point(self) -> tuple[float, float, float, float]:
        """As a chart draws it."""
        return (self.budget, *self.found)


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


def attack_in_words(task: str, attack: str) -> str:
    """An attack's text, and what its largest budget is."""
    return f"{attack}, where {budgets(attack)[-1][0]:g} is the {system_of(task).description.unit}"


def shortened(name: str, task: Task[Any], limit: int) -> Task[Any]:
    """The task with less data, where attacking or making all of it would take minutes; the same for every run.

    Predictions do not depend on how much there is.
    """
    short = system_of(name).shorten
    return imported(short)(task, limit) if short else task


def quality_under(run: Trained, task: Task[Any], attack: str, limit: int) -> tuple[float, Units | None]:
    """The task's first metric when every input is attacked, and the units behind it."""
    units = judged_under(run, task, attack, limit)
    if units is not None:
        return units.statistic(units.records)[leading(run)], units
    nets = NetworkSet(run.modules, training=False)
    return next(iter(evaluate(task, attacked(task, nets, attack, seed=run.job.seeds[0])).values())), None


def _of_group(group: Group, task: Task[Any], budget: float, attack: str, limit: int) -> Attacked:
    each = [quality_under(run, task, attack, limit) for run in group.runs]
    found, units = over_seeds([value for value, _ in each]), tuple(own for _, own in each)
    if len(each) == 1 and units[0] is not None:
        found = Interval(found.mean, *intervals(units[0]).get(leading(group.first), found[1:]))
    return Attacked(budget, found, units)


def attack_curve(groups: Sequence[Group], attack: str, limit: int) -> dict[str, list[Attacked]]:
    """By group, from no attack to all of it."""
    if limit < 1:
        raise UserError(f"--limit {limit}", "at least one sample")
    curves = {}
    for group in groups:
        # its own: groups may differ in the networks they ask for
        task = shortened(group.job.task, group.first.task, limit)
        curves[group.name] = [_of_group(group, task, budget, text, limit) for budget, text in budgets(attack)]
    return curves
