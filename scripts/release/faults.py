"""Faults by injection, and what becomes of a short training: each goes on to the bits of one that nothing happened to.

python scripts/release/faults.py [ends calls files memory writers flips] [--most N] [--flips N] [--keep FILE]
python scripts/release/faults.py ends --variants plain gradual --most 200     so many moments of each variant

ends     the process ends before, within or after a write, fsync, rename, unlink or mkdir
calls    from such a moment on they fail: no space, read-only, no permission, a broken disk, a quota
files    the system lets no file be longer than some bytes; memory: lets the process have some megabytes more
writers  two processes train into one folder; flips: one bit of one file of a finished or unfinished run is another
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from scripts.release.injected.flips import flips  # noqa: E402
from scripts.release.injected.suites import (  # noqa: E402
    crash_points,
    failing_calls,
    little_memory,
    small_files,
    two_writers,
)  # fmt: skip
from scripts.release.injected.training import VARIANTS, scratch, warm  # noqa: E402

SUITES = {
    "ends": (crash_points, "ended before, within or after a call that changes the disk"),
    "calls": (failing_calls, "such calls fail from a moment on, then work again"),
    "files": (small_files, "files longer than a limit are refused by the system"),
    "memory": (little_memory, "little memory"),
    "writers": (two_writers, "two writers"),
}


def measured(arguments: argparse.Namespace) -> list[list[Any]]:
    """Rows of fault, variant, tried, as it should be."""
    rows: list[list[Any]] = []
    for name in [suite for suite in SUITES if suite in arguments.suites]:
        for variant in arguments.variants:
            with scratch() as folder:
                tried, same = SUITES[name][0](variant, folder, arguments.steps, arguments.most)
            rows.append([SUITES[name][1], variant, tried, same])
            print(f"{name}, {variant}: {same} of {tried}", file=sys.stderr, flush=True)
    if "flips" in arguments.suites:
        with scratch() as folder:
            counted = flips(folder, arguments.flips)
        for name, row in counted.items():
            tried = sum(row.values())
            rows.append([f"a bit of {name}", f"{row['refused']} refused", tried, tried - row["wrong"]])
    return rows


def command(arguments: argparse.Namespace) -> str:
    """What was typed."""
    words = [*arguments.suites]
    if {*arguments.suites} != {"flips"}:
        words += ["--variants", *arguments.variants, "--steps", str(arguments.steps), "--most", str(arguments.most)]
    words += ["--flips", str(arguments.flips)] if "flips" in arguments.suites else []
    return " ".join(["python scripts/release/faults.py", *words])


def record(rows: list[list[Any]], commands: list[str]) -> dict[str, Any]:
    """A result as RESULTS.md shows it."""
    from fewer.core.machine.versions import origin
    from fewer.studies.study import hardware, in_words

    return {
        "title": "Faults by injection: short trainings that something happens to",
        "columns": ["fault", "training", "tried", "identical or refused"],
        "rows": rows,
        "notes": [
            "Trainings of some steps that save after every fifth; then the same command is run once more, and its "
            "weights, mask, metrics and log must be those of an undisturbed training to the bit, with nothing left "
            "behind.",
            "A flipped bit must be refused in one line, or leave every number as it was.",
        ],
        "commands": commands,
        "command": commands[-1],
        "hardware_in_words": in_words(hardware()),
        **origin(),
    }


def main() -> int:
    """Count those that went as they should."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="*", default=[*SUITES, "flips"], metavar="SUITE")
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=list(VARIANTS))
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--most", type=int, default=1000, help="faults of each kind and variant")
    parser.add_argument("--flips", type=int, default=2000)
    parser.add_argument("--keep", type=Path, help="write the count as a result; rows of other suites stay")
    arguments = parser.parse_args()
    if unknown := {*arguments.suites} - {*SUITES, "flips"}:
        parser.error(f"no suite {', '.join(unknown)}; there are {', '.join([*SUITES, 'flips'])}")
    warm()
    rows = measured(arguments)
    if arguments.keep:
        before = json.loads(arguments.keep.read_text()) if arguments.keep.exists() else {"rows": [], "commands": []}
        new = {(row[0], row[1]) for row in rows}
        kept = [row for row in before["rows"] if (row[0], row[1]) not in new]
        commands = list(dict.fromkeys([*before["commands"], command(arguments)]))
        arguments.keep.write_text(json.dumps(record([*kept, *rows], commands), indent=1) + "\n")
    tried, same = sum(row[2] for row in rows), sum(row[3] for row in rows)
    print(f"{same} of {tried} as they should be")
    return 0 if same == tried else 1


if __name__ == "__main__":
    sys.exit(main())
