"""A training that ends before or after a call that changes its folder goes on to the same bits: some moments here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.waiting import GIVE_UP_SECONDS


def test_trainings_ended_around_fsync_rename_and_unlink_end_identical() -> None:
    script = Path(__file__).parents[2] / "scripts/release/faults.py"
    command = [sys.executable, str(script), "--variants", "gradual", "--most", "8"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=GIVE_UP_SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    same, _, tried, _ = done.stdout.split()
    assert same == tried and int(tried) >= 5
