"""How many mutants were killed, of those that could be, and the names of the others."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["GONE", "reasons", "record", "rows", "told"]

GONE = "gone"  # of a survivor whose line is no more

EQUIVALENT = Path(__file__).with_name("equivalent.json")
Counted = Mapping[str, Mapping[str, Mapping[str, Any]]]


def reasons() -> dict[str, str]:
    """Mutants that no test could notice, each with why."""
    found: dict[str, str] = json.loads(EQUIVALENT.read_text())
    return found


def rows(counted: Counted) -> list[list[Any]]:
    """Room, mutants tried, equivalent ones, those whose code is gone, killed at first, killed now, survived, and both
    shares: at first of all that are not equivalent, now of those that are still there too."""
    made = []
    for room, trials in counted.items():
        left = [trial for name, trial in trials.items() if name not in reasons()]
        gone = sum(_outcome(trial) == GONE for trial in left)
        first, now = (
            sum(_outcome(trial, when).startswith("killed") for trial in left) for when in ("first", "outcome")
        )
        made.append([room, len(trials), len(trials) - len(left), gone, first, now, len(left) - gone - now])
    made.append(["all", *(sum(row[place] for row in made) for place in range(1, 7))])
    return [[*row, row[4] / max(1, row[1] - row[2]), row[5] / max(1, row[5] + row[6])] for row in made]


def _outcome(trial: Mapping[str, Any], when: str = "outcome") -> str:
    return str(trial.get(when, trial.get("outcome", "")))


def survivors(counted: Counted) -> list[str]:
    """Names of those that nothing noticed, that are not equivalent and that are still there."""
    known = reasons()
    return [
        name
        for trials in counted.values()
        for name, trial in trials.items()
        if name not in known and _outcome(trial) != GONE and not _outcome(trial).startswith("killed")
    ]


def told(counted: Counted) -> str:
    """The count in lines."""
    lines = [
        f"{room}: {killed} of {killed + survived} killed ({share:.0%}), at first {first} of {number - same} "
        f"({early:.0%}), {same} equivalent, {gone} gone"
        for room, number, same, gone, first, killed, survived, early, share in rows(counted)
    ]
    return "\n".join([*(f"survived: {name}" for name in survivors(counted)), *lines])


def record(counted: Counted, order: argparse.Namespace) -> dict[str, Any]:
    """A result as RESULTS.md shows it."""
    from fewer.core.machine.versions import origin
    from fewer.studies.study import hardware, in_words

    shown = [[*row[:-2], f"{row[-2]:.0%}", f"{row[-1]:.0%}"] for row in rows(counted)]
    tried = {room: len(trials) for room, trials in counted.items()}
    few = [f"{number} in {room}" for room, number in tried.items() if number < order.each]
    return {
        "title": "Mutation testing: small wrong changes of the source that a test notices",
        "columns": [
            "room",
            "mutants",
            "equivalent",
            "deleted",
            "killed at first",
            "killed now",
            "survived",
            "share killed at first",
            "share killed now",
        ],
        "rows": shown,
        "notes": [
            f"{order.each} mutants of each room drawn with seed {order.seed} from all places where a comparison, "
            "arithmetic, a sign, a constant, a boolean, a condition, a return or a statement can be changed"
            + (f", of which time allowed fewer to be tried ({', '.join(few)})" if few else "")
            + "; each is tried with the tests that run its line, the quickest first, and killed only by what passes "
            "without it.",
            "At first: by the tests that were there when the sample was drawn, before any was written for survivors. "
            "Now: by the tests of this version, without what is equivalent or was deleted. The share at first is what "
            "to expect of code that nobody has looked at in this way.",
            "Equivalent ones cannot be noticed; scripts/mutation/equivalent.json has the reason of each. Deleted: the "
            "survivor showed code that did nothing, which is gone or was written anew.",
            *(f"Survived: `{name}`" for name in survivors(counted)),
        ],
        "command": f"python scripts/mutation/__main__.py DIR --each {order.each} --seed {order.seed}",
        "hardware_in_words": in_words(hardware()),
        **origin(),
    }
