"""Kill a sweep at random moments, start it again until it ends, compare with one that was never killed.

python tests/sweep/kills.py 200 5              200 points, the whole process group killed five times, on all cores
python tests/sweep/kills.py 24 3 inline 30     24 points of 30 steps each, one after another in the process itself
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
sys.path.insert(0, str(Path(__file__).parents[2]))

FILES = ("weights.safetensors", "mask.safetensors", "metrics.json", "metrics.jsonl", "config.json")


def content(count: int, steps: int = 60) -> dict[str, Any]:
    """A grid of `count` points, a multiple of eight: half of them alone, half in cohorts of three."""
    return {
        "base": {"task": "tests.toys:Blobs", "steps": steps, "batch": 8, "prune.samples": 20},
        "axes": {
            "prune": ["magnitude", "random"], "sparsity": [0.25, 0.5], "engine": ["auto", "plain"],
            "seed": list(range(count // 8)),
        },
        "resources": {"cohort": 3},
    }  # fmt: skip


def sweep(count: int, steps: int, out: Path, on: str) -> None:
    """The sweep itself."""
    from fewer.sweep.grid import grid_of
    from fewer.sweep.run import Sweep, Where

    rows = Sweep(grid_of(content(count, steps)), out, Where(on)).run()
    failed = [row for row in rows if row["status"] != "done"]
    if failed:
        raise SystemExit(f"{len(failed)} points failed, the first: {failed[0]}")


def forked(count: int, steps: int, out: Path, on: str) -> int:
    """The same in a fork of this process, leader of a group of its own."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setpgid(0, 0)
            sweep(count, steps, out, on)
            code = 0
        except BaseException:  # nothing else would tell: the child ends without unwinding
            traceback.print_exc()
        finally:
            os._exit(code)
    with contextlib.suppress(OSError):  # the child may have come first, or have ended: whoever kills finds its group
        os.setpgid(child, child)
    return child


def finished(out: Path) -> int:
    """How many points have metrics."""
    return len(list(out.glob("points/*/metrics.json")))


def killed_until_done(count: int, kills: int, out: Path, *, steps: int, on: str, lot: random.Random) -> int:
    """Kill the group once a random number of points more is finished, `kills` times; how many kills landed."""
    landed = 0
    for turn in range(kills + 1):
        child = forked(count, steps, out, on)
        goal = finished(out) + lot.randint(0, max(1, count // (kills + 2))) if turn < kills else count + 1
        while True:
            found, status = os.waitpid(child, os.WNOHANG)
            if found:
                if os.waitstatus_to_exitcode(status) != 0:
                    raise SystemExit("a sweep that was not killed failed")
                return landed
            if finished(out) >= goal and (out / "plan.json").exists():
                time.sleep(lot.uniform(0.0, 0.3))
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
                landed += 1
                break
            time.sleep(0.005)
    return landed


def read(path: Path) -> object:
    """The bytes; of a configuration all but the versions, as somebody may commit meanwhile."""
    if path.name != "config.json":
        return path.read_bytes()
    return {key: value for key, value in json.loads(path.read_text()).items() if key != "versions"}


def different(one: Path, other: Path) -> list[str]:
    """Files that are not the same to the bit, or that should not be there."""
    pairs = [(one / name, other / name) for name in ("table.json", "table.csv", "plan.json")]
    for folder in sorted((one / "points").iterdir()):
        twin = other / "points" / folder.name
        pairs += [(folder / name, twin / name) for name in FILES if (folder / name).exists()]
    wrong = [str(path.relative_to(one)) for path, twin in pairs if not twin.exists() or read(path) != read(twin)]
    left = [path.name for path in other.rglob("*") if path.name.startswith("state.") or path.name.endswith(".part")]
    return wrong + left


def main(count: int, kills: int, on: str = "processes", steps: int = 60) -> int:
    """Exit code 0 if both end complete and identical."""
    import torch

    import fewer.sweep.run  # noqa: F401  imported before the forks

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        whole, patched = Path(folder) / "whole", Path(folder) / "patched"
        begin = time.monotonic()
        os.waitpid(forked(count, steps, whole, on), 0)
        middle = time.monotonic()
        lot, landed = random.Random(0), 0
        while landed < kills:  # it got through before a kill: that proves nothing
            shutil.rmtree(patched, ignore_errors=True)
            landed = killed_until_done(count, kills, patched, steps=steps, on=on, lot=lot)
        end = time.monotonic()
        wrong = different(whole, patched)
        print(f"{finished(patched)} of {count} points, {landed} kills, {len(wrong)} files differ {wrong[:3]}; "
              f"{middle - begin:.1f} s unkilled, {end - middle:.1f} s killed")  # fmt: skip
        return int(bool(wrong) or finished(patched) != count)


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:4], *map(int, sys.argv[4:5])))
