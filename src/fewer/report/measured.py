"""Everything that is measured of one task's runs, once: what the summary and the chapter tell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from fewer.core.abilities import Attackable
from fewer.core.registry import system_of
from fewer.core.system import Metric
from fewer.report.attacks import Attacked, attack_curve
from fewer.report.certainty.compare import Compared, compared
from fewer.report.certainty.judged import leading
from fewer.report.certainty.units import Interval
from fewer.report.description import metric_of, shown
from fewer.report.groups import Group, spelled
from fewer.report.sizes import Sizes, sizes_of

__all__ = ["Measured", "measure", "signed"]


@dataclass(frozen=True)
class Measured:
    """Runs of one task in groups, with their sizes and what attacks leave of them."""

    task: str
    groups: tuple[Group, ...]
    sizes: dict[str, Sizes]  # by group
    attacked: dict[str, dict[str, list[Attacked]]]  # by attack and group
    _changes: dict[str, Compared | None] = field(default_factory=dict, repr=False, compare=False)

    @property
    def name(self) -> str:
        """Of the metric that matters most."""
        return leading(self.groups[0].first)

    @property
    def metric(self) -> Metric:
        return metric_of(self.task, self.name)

    @property
    def least(self) -> Group:
        """The network with the fewest weights."""
        return min(self.groups, key=lambda group: group.kept)

    @property
    def colours(self) -> dict[str, int]:
        return {group.name: group.colour for group in self.groups}

    @cached_property
    def dense(self) -> Group | None:
        """What others are compared with: the first network that is whole and not hardened."""
        return next((group for group in self.groups if group.dense), None)

    def against_dense(self, group: Group) -> Compared | None:
        """The leading metric's change."""
        if self.dense is None or self.dense.name == group.name:
            return None
        if group.name not in self._changes:
            self._changes[group.name] = compared(self.dense, group, self.name)
        return self._changes[group.name]

    def survival(self, group: Group) -> Interval:
        """Of the leading metric at the full budget of the first attack."""
        for found in self.attacked.values():
            return found[group.name][-1].found
        return Interval(math.nan)

    def spelled(self, found: Interval, name: str = "") -> str:
        """With its interval, as people write it."""
        share = metric_of(self.task, name or self.name).share
        return spelled(found, lambda value: shown(value, share))

    def change(self, mean: float, low: float, high: float) -> str:
        """A difference of the leading metric; of shares in points of per cent."""
        share = self.metric.share
        told = signed(mean, share) + (" points" if share else "")
        if not math.isfinite(low):
            return told
        return f"{told} ({signed(low, share)} to {signed(high, share)})"


def signed(value: float, share: bool) -> str:
    """With its sign; of shares in per cent without the mark."""
    scaled = 100 * value if share else value
    digits = 1 if share or abs(scaled) >= 10 else 2 if abs(scaled) >= 1 else 3
    return f"{scaled:+.{digits}f}".replace("-", "−")


def measure(task: str, groups: Sequence[Group], attacks: Sequence[str], limit: int) -> Measured:
    """Pack, time and attack."""
    described = system_of(task).description
    wanted = list(attacks) or ([described.attack] if described.attack else [])
    if wanted == ["none"] or not all(isinstance(group.first.task, Attackable) for group in groups):
        wanted = []
    return Measured(
        task,
        tuple(groups),
        {group.name: sizes_of(group.first) for group in groups},
        {attack: attack_curve(groups, attack, limit) for attack in wanted},
    )
