"""Sweeps in processes: killed, interrupted, with workers that die; nothing is lost, nothing is half written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from fewer.sweep.grid import grid_of
from fewer.sweep.run import Sweep, Where
from tests.sweep import kills
from tests.waiting import GIVE_UP_SECONDS, until

GRID = """
[base]
task = "tests.toys:Blobs"
batch = 8
steps = 2000000
[axes]
seed = "0-1"
engine = "plain"
"""


def test_a_sweep_killed_three_times_ends_complete_and_identical(tmp_path: Path) -> None:
    # a process of its own, which forks the sweeps: what other tests left in this one is nobody's business there
    command, place = [sys.executable, kills.__file__, "24", "3", "inline", "30"], {"TMPDIR": str(tmp_path)}
    done = subprocess.run(command, env={**os.environ, **place}, capture_output=True, text=True, timeout=GIVE_UP_SECONDS)
    said = done.stdout + done.stderr
    assert done.returncode == 0 and "24 of 24 points, 3 kills, 0 files differ" in said, said


def test_a_dead_worker_costs_its_unit_a_try_and_no_other_unit_anything(tmp_path: Path) -> None:
    base = {"task": "tests.sweep.tasks:Mortal", "batch": 8, "steps": 10}
    content: dict[str, Any] = {
        "base": base,
        "points": [
            {"set.marker": str(tmp_path / "once"), "set.deaths": 1},
            {"set.marker": str(tmp_path / "always"), "set.deaths": 99},
            {"seed": "0-2"},
        ],
        "resources": {"retries": 1},
    }  # fmt: skip
    rows = Sweep(grid_of(content), tmp_path / "sweep", Where(processes=1)).run()
    assert [row["status"] for row in rows] == ["done", "failed", "done", "done", "done"]
    assert rows[1]["why"] == "worker died: the process ended by signal SIGKILL, 2 times"
    assert (tmp_path / "once").read_text() == "x" and (tmp_path / "always").read_text() == "xx"


def nobody_of(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


def _heed_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_an_interrupt_ends_the_children_and_exits_with_130(tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text(GRID)
    command = [sys.executable, "-m", "fewer", "sweep", str(tmp_path / "grid.toml"), "--out", str(tmp_path / "out")]
    place = {"PYTHONPATH": os.pathsep.join(sys.path)}
    # a shell starts what it runs in the background with interrupts ignored, and children inherit that
    process = subprocess.Popen([*command, "--processes", "1"], env={**os.environ, **place}, stderr=subprocess.PIPE,
                               start_new_session=True, preexec_fn=_heed_interrupts)  # fmt: skip
    until(lambda: process.poll() is not None or list(tmp_path.glob("out/points/*/metrics.jsonl")))
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to everybody in the group
    _, said = process.communicate(timeout=GIVE_UP_SECONDS)
    assert (
        process.returncode == 130
        and b"Traceback" not in said
        and said.endswith(b"run the same command again to go on\n")
    )
    until(lambda: nobody_of(process.pid))  # who has just ended is a member until it is reaped
    assert not list(tmp_path.rglob("*.part"))
    plan = json.loads((tmp_path / "out" / "plan.json").read_text())
    assert len(plan["units"]) == 2
