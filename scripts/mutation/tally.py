"""How many mutants were killed, of those that could be, and the names of the others."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["reasons", "record", "rows", "told"]

EQUIVALENT = Path(__file__).with_name("equivalent.json")
Counted = Mapping[str, Mapping[str, Mapping[str, Any]]]


def reasons() -> dict[str, str]:
    """Mutants that no test could notice, each with why."""
    found: dict[str, str] = json.loads(EQUIVALENT.read_text())
    return found


def rows(counted: Counted) -> list[list[Any]]:
    """Room, mutants, equivalent ones, killed, survived, and the share of those that could be killed."""
    known, made = reasons(), []
    for room, trials in counted.items():
        same = [name for name in trials if name in known]
        killed = [n for n, t in trials.items() if n not in known and str(t.get("outcome", "")).startswith("killed")]
        left = len(trials) - len(same) - len(killed)
        made.append([room, len(trials), len(same), len(killed), left, len(killed) / max(1, len(killed) + left)])
    total = [sum(row[place] for row in made) for place in range(1, 5)]
    return [*made, ["all", *total, total[2] / max(1, total[2] + total[3])]]


def survivors(counted: Counted) -> list[str]:
    """Names of those that nothing noticed and that are not equivalent."""
    known = reasons()
    return [
        name
        for trials in counted.values()
        for name, trial in trials.items()
        if name not in known and not str(trial.get("outcome", "")).startswith("killed")
    ]


def told(counted: Counted) -> str:
    """The count in lines."""
    lines = [
        f"{room}: {killed} of {number - same} killed ({share:.0%}), {same} equivalent"
        for room, number, same, killed, _, share in rows(counted)
    ]
    return "\n".join([*(f"survived: {name}" for name in survivors(counted)), *lines])


def record(counted: Counted, order: argparse.Namespace) -> dict[str, Any]:
    """A result as RESULTS.md shows it."""
    from fewer.core.machine.versions import origin
    from fewer.studies.study import hardware, in_words

    shown = [[*row[:-1], f"{row[-1]:.0%}"] for row in rows(counted)]
    return {
        "title": "Mutation testing: small wrong changes of the source that a test notices",
        "columns": ["room", "mutants", "equivalent", "killed", "survived", "share killed"],
        "rows": shown,
        "notes": [
            f"{order.each} mutants of each room drawn with seed {order.seed} from all places where a comparison, "
            "arithmetic, a sign, a constant, a boolean, a condition, a return or a statement can be changed; each is "
            "tried with the tests that run its line, the quickest first.",
            "Equivalent ones cannot be noticed; scripts/mutation/equivalent.json has the reason of each.",
            *(f"Survived: `{name}`" for name in survivors(counted)),
        ],
        "command": f"python scripts/mutation/__main__.py DIR --each {order.each} --seed {order.seed}",
        "hardware_in_words": in_words(hardware()),
        **origin(),
    }
