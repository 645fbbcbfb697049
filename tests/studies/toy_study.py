"""A study whose rows and trainings a test decides on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from fewer.core.system import Study
from fewer.studies import order as orders
from fewer.studies.order import Order
from fewer.studies.plan import Planned
from fewer.studies.study import Result

NAME = "toy/table"


@dataclass
class Toy:
    """What the study gives back."""

    rows: list[list[int]] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    trainings: Callable[[], list[Planned]] = list

    def run(self, order: Order) -> Result:
        figures = {"toy.png": f"{len(self.rows)} rows".encode()}
        return Result("a title", ["a"], list(self.rows), figures=figures, commands=list(self.commands))

    def install(self, monkeypatch: pytest.MonkeyPatch, *, plan: bool = False) -> Toy:
        """Among the studies over all systems."""
        module = SimpleNamespace(run=self.run, plan=lambda order: self.trainings(), settings=lambda order: {"a": 1})
        monkeypatch.setitem(sys.modules, "toy_study", module)
        study = Study("toy_study:run", "a toy", settings="toy_study:settings", plan="toy_study:plan" if plan else "")
        monkeypatch.setitem(orders._OF_ALL, NAME, study)
        return self
