"""A run that was killed ends with the bits of one that was not: a handful here, a hundred by the script."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.waiting import GIVE_UP_SECONDS


def test_trainings_killed_at_random_moments_end_identical_to_the_bit() -> None:
    script = Path(__file__).with_name("kills.py")
    command = [sys.executable, str(script), "4", "--variants", "gradual", "cohort", "--seed", "5"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=GIVE_UP_SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("4 of 4 identical")
    assert int(done.stdout.split("(")[1].split()[0]) >= 4  # every one of them was killed
