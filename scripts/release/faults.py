"""End a short training before and after each fsync, rename and unlink, go on, compare with one that was never ended.

python scripts/release/faults.py [--variants plain gradual ...] [--most N]     prints "N of N identical"
"""

from __future__ import annotations

import argparse
import functools
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.run.kills import SETTINGS, VARIANTS, different, train  # noqa: E402

CALLS = ("fsync", "replace", "unlink")
ENDED = 9


def inject(at: int, counted: Callable[[int], None] | None = None) -> None:
    """End this process at the moment `at`: two for each call, before it and after it."""
    moment = 0

    def wrapped(call: Callable[..., Any]) -> Callable[..., Any]:
        def instead(*words: Any, **named: Any) -> Any:
            nonlocal moment
            for part in (0, 1):
                if moment == at:
                    os._exit(ENDED)
                moment += 1
                if part == 0:
                    found = call(*words, **named)
            if counted is not None:
                counted(moment)
            return found

        return instead

    for name in CALLS:
        setattr(os, name, wrapped(getattr(os, name)))


def forked(variant: str, out: Path, steps: int, at: int, tally: Path | None = None) -> int:
    """The exit code of a training in a process of its own; `tally` gets the number of moments."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            inject(at, None if tally is None else lambda n: tally.write_text(str(n)) and None)
            train(variant, out, steps)
            code = 0
        except BaseException as error:
            print(f"{variant}: {error}", file=sys.stderr, flush=True)
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def crash_points(variant: str, folder: Path, steps: int, most: int) -> tuple[int, int]:
    """How many moments were tried, and after how many the result was the same to the bit with nothing left behind."""
    reference, tally = folder / "reference", folder / "tally"
    if forked(variant, reference, steps, -1, tally) != 0:
        raise SystemExit("the training that nobody ended failed")
    moments = int(tally.read_text())
    tried = same = 0
    for at in range(moments)[:: max(1, -(-moments // most))]:
        out = folder / "run"
        if forked(variant, out, steps, at) != ENDED:
            raise SystemExit(f"{variant}: moment {at} of {moments} was not reached")
        tried += 1
        wrong = different(reference, out) if forked(variant, out, steps, -1) == 0 else ["it does not go on"]
        same += not wrong
        if wrong:
            print(f"{variant}, moment {at} of {moments}: {', '.join(wrong)}", file=sys.stderr, flush=True)
        shutil.rmtree(out)
    return tried, same


def main() -> int:
    """Count the identical ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=list(VARIANTS))
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--most", type=int, default=1000, help="moments of each variant")
    arguments = parser.parse_args()
    import torch

    import fewer.run.job
    from fewer.core.registry import make

    torch.set_num_threads(1)
    fewer.run.job.make = functools.cache(make)  # type: ignore[attr-defined]
    fewer.run.job.make("vision", SETTINGS)
    tried = same = 0
    for variant in arguments.variants:
        with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
            found = crash_points(variant, Path(folder), arguments.steps, arguments.most)
        tried, same = tried + found[0], same + found[1]
    print(f"{same} of {tried} identical")
    return 0 if same == tried else 1


if __name__ == "__main__":
    sys.exit(main())
