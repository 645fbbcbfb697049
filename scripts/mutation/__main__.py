"""Try small wrong changes of the source: `python scripts/mutation/__main__.py DIR [--rooms core ...] [--again]`.

DIR keeps a copy of the tree, which lines each test runs, and every trial with its first outcome beside the last, so
that the same command goes on where it ended. Wants `coverage` beside the development extras. Those that cannot be
noticed stand in equivalent.json with the reason; what is printed last is counted by `tally`, and `--keep FILE` writes
it as a result.
"""

from __future__ import annotations

import argparse
import compileall
import hashlib
import json
import math
import shutil
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from scripts.mutation.reach import measure  # noqa: E402
from scripts.mutation.server import SURVIVED, forked, warm  # noqa: E402
from scripts.mutation.sites import Mutant, mutants  # noqa: E402
from scripts.mutation.tally import GONE, reasons, record, told  # noqa: E402
from scripts.mutation.trials import Trials  # noqa: E402

ROOMS = {
    "core": ("core",),
    "pruning": ("pruning",),
    "attack": ("attack",),
    "packs": ("packs",),
    "sparse": ("sparse",),
    "metrics": (
        "systems/nowcast/task/scores", "systems/control/task/worlds/evaluation.py",
        "systems/control/task/statistics.py", "systems/cellfree/task/statistics.py",
        "systems/cellfree/task/spectral/efficiency.py", "systems/cellfree/task/spectral/report.py",
        "systems/vision/task/task.py",
    ),
}  # fmt: skip
TESTS = (
    "tests/core", "tests/pruning", "tests/attack", "tests/sparse", "tests/packs", "tests/run/test_options.py",
    "tests/systems/cellfree/test_selectors.py", "tests/systems/cellfree/test_spectral.py",
    "tests/systems/cellfree/test_spectral_report.py", "tests/systems/cellfree/test_statistics.py",
    "tests/systems/control/test_statistics.py", "tests/systems/nowcast/test_score_edges.py",
    "tests/systems/vision/test_settings.py", "tests/systems/control/test_evaluation.py",
    "tests/systems/control/test_studies.py", "tests/systems/nowcast/test_scores.py",
    "tests/systems/nowcast/test_thresholds.py", "tests/systems/vision/test_task.py",
    "tests/systems/vision/test_networks.py", "tests/custom/test_own.py", "tests/custom/test_contract.py",
    "tests/old/test_old_files.py", "tests/systems/nowcast/test_pictures.py",
)  # fmt: skip
LEFT_OUT = ("node_modules", "__pycache__", ".git", ".venv", "build", "dist", "*.egg-info", ".hypothesis")
MAP_SECONDS = 240


def every(room: str, only: str = "") -> list[Mutant]:
    """All of one room as its source is now."""
    found: list[Mutant] = []
    for place in ROOMS[room]:
        start = ROOT / "src/fewer" / place
        for path in sorted(start.rglob("*.py")) if start.is_dir() else [start]:
            name = str(path.relative_to(ROOT / "src/fewer"))
            found += mutants(name, path.read_bytes()) if name.startswith(only) else []
    return found


def sampled(rooms: list[str], each: int, seed: int, only: str = "") -> dict[str, list[Mutant]]:
    """So many of each room: those with the lowest hashes, so that a change elsewhere leaves them the same."""
    chosen = {}
    for room in rooms:
        lots = sorted(every(room, only), key=lambda one: hashlib.blake2b(f"{seed} {one.name}".encode()).digest())
        chosen[room] = sorted(lots[:each], key=lambda one: (one.path, one.start))
    return chosen


def drawn(rooms: list[str], order: argparse.Namespace, known: Path) -> dict[str, list[str]]:
    """The names of a sample, kept in a file: what a survivor has changed in the source is not to change the sample."""
    kept: dict[str, list[str]] = json.loads(known.read_text()) if known.exists() else {}
    for room, found in sampled([room for room in rooms if room not in kept], order.each, order.seed).items():
        kept[room] = [one.name for one in found]
    known.write_text(json.dumps(kept, indent=1))
    return {room: [name for name in kept[room] if name.startswith(order.only)] for room in rooms}


def copied(tree: Path) -> None:
    """What the tests need, beside which nothing here is touched."""
    if not tree.exists():
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(*LEFT_OUT))
    else:
        shutil.copytree(ROOT / "tests", tree / "tests", ignore=shutil.ignore_patterns(*LEFT_OUT), dirs_exist_ok=True)
        shutil.copytree(ROOT / "src", tree / "src", ignore=shutil.ignore_patterns(*LEFT_OUT), dirs_exist_ok=True)
    compileall.compile_dir(tree / "src", quiet=2)  # else every fork compiles all that it imports


def map_tests(places: list[str], tree: Path, folder: Path, until: float) -> None:
    """Every test file of these that was not measured as it is now."""
    folder.mkdir(exist_ok=True)
    for place in places:
        start = tree / place
        for path in sorted(start.rglob("test_*.py")) if start.is_dir() else [start]:
            file = str(path.relative_to(tree))
            out = folder / (file.replace("/", "-") + ".json")
            known = out.exists() and out.stat().st_mtime >= path.stat().st_mtime
            if path.exists() and not known and (begin := time.monotonic()) < until:

                def work(file: str = file, out: Path = out) -> int:
                    return measure(file, tree / "src/fewer", out, MAP_SECONDS) or 0

                code = forked(work, folder / "log", 900.0)
                print(f"{file}: {code}, {time.monotonic() - begin:.0f} s", flush=True)


def main() -> int:
    """Try what was not tried yet, and tell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rooms", nargs="+", default=list(ROOMS), choices=list(ROOMS))
    parser.add_argument("--each", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--again", action="store_true", help="try those again that survived, with the tests of now")
    parser.add_argument("--only", default="", help="modules whose path begins so, such as core/files")
    parser.add_argument("--tests", nargs="+", default=list(TESTS), help="test files and folders to try them with")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin nothing more after so many")
    parser.add_argument("--trial", type=float, default=150.0, help="seconds of tests that a mutant is tried with")
    parser.add_argument("--map-only", action="store_true", help="only find out which tests run which lines")
    parser.add_argument("--keep", type=Path, help="write the count as a result")
    arguments = parser.parse_args()
    folder, until = arguments.folder.resolve(), time.monotonic() + arguments.seconds
    folder.mkdir(parents=True, exist_ok=True)
    names = drawn(arguments.rooms, arguments, folder / f"drawn-{arguments.seed}-{arguments.each}.json")
    known = folder / "trials.json"
    trials: dict[str, dict[str, object]] = json.loads(known.read_text()) if known.exists() else {}
    copied(folder / "tree")
    warm(folder / "tree")
    map_tests(arguments.tests, folder / "tree", folder / "reach", until)
    tried, same = Trials(folder, arguments.trial), reasons()
    for room, wanted in names.items():
        found = {one.name: one for one in every(room, arguments.only)}
        for name in [] if arguments.map_only else wanted:
            before = trials.get(name)
            again = before is None or (arguments.again and before["outcome"] == SURVIVED and name not in same)
            if not again or time.monotonic() > until:
                continue
            outcome = tried(found[name]) if name in found else {"outcome": GONE}
            first = outcome["outcome"] if before is None else before.get("first", before["outcome"])
            trials[name] = {"room": room, "first": first, **outcome}
            known.write_text(json.dumps(trials, indent=1))
            print(f"{trials[name]['outcome']}: {name}", flush=True)
    counted = {room: {name: trials[name] for name in wanted if name in trials} for room, wanted in names.items()}
    print(told(counted))
    if arguments.keep:
        arguments.keep.write_text(json.dumps(record(counted, arguments), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
