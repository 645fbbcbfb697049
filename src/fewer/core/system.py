"""A system: one field's task, and everything that people of that field see of it, said in one object.

Whatever presents tasks (the command line, reports, the service, studies, benches) knows them through this object
alone, so that a field is one folder, or somebody's own package. Everything heavy is named as "module:name" and
imported when it is asked for: listing systems needs no torch.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Description", "Metric", "Named", "Study", "System", "imported"]

Named = tuple[str, str]  # "module:name", and one line that says what it is


@dataclass(frozen=True)
class Metric:
    """What a number that `evaluate` returns counts."""

    label: str
    meaning: str = ""
    share: bool = False  # shown in percent
    cases: int = 0  # that it is counted on, where they are not the whole test split


@dataclass(frozen=True)
class Description:
    """In words: a heading, what it is for, the attack that its chapter draws, and what a budget of 1 is."""

    heading: str
    lead: str
    attack: str = ""
    unit: str = "budget, in the units of the input"
    adversary: str = "The adversary may change the input."
    metrics: tuple[str, ...] = ()  # the ones to show first; the others are a click away


@dataclass(frozen=True)
class Study:
    """A paper's table or figure, or our own; functions are named as "module:name"."""

    place: str  # (order) -> `studies.study.Result`
    line: str  # what it shows
    settings: str = ""  # (order) -> what the order stands for: sizes, seeds, updates, data; kept beside the numbers
    plan: str = ""  # (order) -> every `studies.plan.Planned` training, from which its time is told before it starts
    pieces: str = ""  # (order) -> `studies.pieces.Pieces` it is made of
    remarks: str = ""  # (record) -> sentences about what came out


@dataclass(frozen=True)
class System:
    """All there is of one field; what is left out is left out of pages and reports, or has a plain form there."""

    line: str  # one line for lists
    task: str  # the Task's class, whose settings are its attribute `Settings` or lie beside it
    description: Description
    paper: str = ""  # title and authors of the one that its studies repeat
    metrics: Mapping[str, Metric] = field(default_factory=dict)  # of those that need more than their name
    install: str = ""  # what pip installs where an import fails
    picture: str = ""  # (run, attack) -> HTML: the picture its users think in
    units: str = (
        ""  # (task, predict) -> `report.certainty.units.Units` of the test split, from which intervals are drawn
    )
    shorten: str = ""  # (task, limit) -> task with less to evaluate, where all of it would take minutes
    carry: str = ""  # task -> dict that JSON holds: what a pack takes along beside its network, such as a map
    service: str = ""  # a `serve.service.Service`
    page: str = ""  # the package with `index.html` and what it loads
    data: Named | None = None  # a module with `add` and `run`: `fewer data NAME`
    verbs: Mapping[str, Named] = field(default_factory=dict)  # such modules, as verbs of their own
    demo: str = ""  # () -> {name: Job} for the demonstration
    case: str = ""  # a `studies.matrix.cases.Case`: what the studies of every method train
    presets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # words of `fewer train` under one name
    studies: Mapping[str, Study] = field(default_factory=dict)
    claims: str = ""  # every testable sentence of its paper: a tuple of `studies.claims.Claim`
    benches: Mapping[str, Named] = field(default_factory=dict)  # modules with `run(quick) -> list[Row]`
    speed: str = ""  # () -> [(name, make, shape of a sample)]: networks whose speed `fewer bench sparse` tells
    prepare: str = ""  # array -> array: what users have at hand (bytes of pixels), as a pack takes it; numpy alone


def imported(place: str) -> Any:
    """What "module:name" names, or the module where no name is given."""
    module, _, name = place.partition(":")
    found = importlib.import_module(module)
    return getattr(found, name) if name else found
