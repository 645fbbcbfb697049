"""Packs that are wrong in their structure, by the thousand, each lot in a fork whose time and memory are measured.

python scripts/release/fuzz.py [--headers 90000] [--programs 10000] [--lot 500] [--seed 0] [--keep FILE]

headers   files whose header says something else, whose sections are cut, doubled or flipped; half with a right checksum
programs  sound files of shipped packs and of every operation whose program and tensors do not fit together
A mutant opens and predicts or is refused as a `PackError`; no other error, no more than ten seconds of the processor
for one mutant, no process above 512 MB.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.packs import fuzz_pack, fuzz_programs  # noqa: E402
from tests.packs.fuzz_pack import Slowest  # noqa: E402

MOST_MB = 512
MOST_ADDRESSES = 6 << 30  # torch alone asks for several GB of addresses
Run = Callable[[int, int, Slowest], Counter[str]]


def lot(run: Run, count: int, seed: int, told: Path) -> dict[str, Any]:
    """What became of so many in a process of its own; an error where it ended otherwise or took too much memory."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            warnings.simplefilter("error")
            resource.setrlimit(resource.RLIMIT_AS, (MOST_ADDRESSES, MOST_ADDRESSES))  # it must not take the machine's
            slowest = Slowest()
            outcomes = run(count, seed, slowest)
            told.write_text(json.dumps({"outcomes": outcomes, "slowest": slowest.seconds}))
            code = 0
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        finally:
            os._exit(code)
    _, status, used = os.wait4(child, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        raise SystemExit(f"lot of seed {seed} ended with {os.waitstatus_to_exitcode(status)}")
    found: dict[str, Any] = json.loads(told.read_text())
    return {**found, "mb": used.ru_maxrss / 1024, "seconds": used.ru_utime + used.ru_stime}


def lots(name: str, run: Run, order: argparse.Namespace, count: int) -> list[Any]:
    """One row: how many, refused, opened, and the most that any took."""
    outcomes, mb, slowest, seconds = Counter[str](), 0.0, 0.0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        for number, start in enumerate(range(0, count, order.lot)):
            found = lot(run, min(order.lot, count - start), order.seed * 10**6 + number, Path(folder) / "told")
            outcomes.update(found["outcomes"])
            mb, slowest = max(mb, found["mb"]), max(slowest, found["slowest"])
            seconds += found["seconds"]
    predicted, refused = outcomes["predicted"], outcomes["refused"] + outcomes["refused to predict"]
    print(f"{name}: {dict(outcomes)}, {mb:.0f} MB, slowest {slowest:.2f} s, {seconds:.0f} s", file=sys.stderr)
    return [name, count, refused, predicted, 0, f"{mb:.0f}", f"{slowest:.2f}"]


def record(rows: list[list[Any]], order: argparse.Namespace) -> dict[str, Any]:
    """A result as RESULTS.md shows it."""
    from fewer.core.machine.versions import origin
    from fewer.studies.study import hardware, in_words

    limits = fuzz_programs.LIMITS
    return {
        "title": "Packs that are wrong in their structure",
        "columns": ["what is wrong", "mutants", "refused", "predicted", "other errors", "largest process, MB",
                    "slowest, processor seconds"],
        "rows": rows,
        "notes": [
            "A refusal is a `PackError`; any other error, a mutant of more than ten seconds or a process above "
            f"{MOST_MB} MB ends the count. A process has tried {order.lot} mutants, and torch is imported in it.",
            f"Programs are opened with an allowance of {limits.numbers} numbers and {limits.work} multiplications a "
            "sample, as a service that meets strangers' packs may set it; the default allows 64 times the numbers.",
        ],
        "command": f"python scripts/release/fuzz.py --headers {order.headers} --programs {order.programs} "
                   f"--lot {order.lot} --seed {order.seed}",
        "hardware_in_words": in_words(hardware()),
        **origin(),
    }  # fmt: skip


def main() -> int:
    """Count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--headers", type=int, default=90_000)
    parser.add_argument("--programs", type=int, default=10_000)
    parser.add_argument("--lot", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="write the count as a result")
    order = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    rows = []
    if order.headers:
        rows.append(lots("the file: header, sections", _files, order, order.headers))
    if order.programs:
        fuzz_programs.warm()  # the forks share what torch took long to trace
        rows.append(lots("the program and its tensors", _programs, order, order.programs))
    if order.keep:
        order.keep.write_text(json.dumps(record(rows, order), indent=1) + "\n")
    worst = max(float(row[5]) for row in rows)
    print(f"{sum(row[1] for row in rows)} mutants, no other error, largest process {worst:.0f} MB")
    return 0 if worst <= MOST_MB else 1


def _files(count: int, seed: int, slowest: Slowest) -> Counter[str]:
    return fuzz_pack.run(count, seed, slowest=slowest)


def _programs(count: int, seed: int, slowest: Slowest) -> Counter[str]:
    return fuzz_programs.run(count, seed, slowest=slowest, traced=False)


if __name__ == "__main__":
    sys.exit(main())
