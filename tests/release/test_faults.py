"""Whatever happens to a training, it goes on to the same bits or is refused in one line: some of each kind here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from scripts.release.injected.moments import Moments, fail

from tests.waiting import GIVE_UP_SECONDS

SUITES = ("ends", "calls", "files", "memory", "writers", "flips")


def test_trainings_that_something_happens_to_end_identical_or_are_refused() -> None:
    script = Path(__file__).parents[2] / "scripts/release/faults.py"
    command = [sys.executable, str(script), *SUITES, "--variants", "gradual", "--most", "4", "--flips", "40"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=GIVE_UP_SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    same, _, tried, *_ = done.stdout.split()
    assert same == tried and int(tried) >= 4 * 5 + 40 - 5


def test_a_moment_is_before_within_or_after_a_call_and_a_fault_may_last(tmp_path: Path) -> None:
    moments = Moments(fail(28), 1, lasting=True)
    moments.passed()
    for _ in range(2):
        with pytest.raises(OSError, match="No space"):
            moments.passed()
    assert moments.count == 3
    once = Moments(fail(28), 0)
    with pytest.raises(OSError, match="No space"):
        once.passed()
    once.passed()
