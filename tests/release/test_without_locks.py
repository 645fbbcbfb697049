"""Where files cannot be locked, as on Windows: packs run, everything imports, training is refused in one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import importlib, pathlib, sys
sys.modules["fcntl"] = None
import importlib.util
before = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "fcntl" else before(name, *rest)
import numpy as np
import fewer
assert np.isfinite(fewer.open_pack("control-hopper-99").predict(np.zeros(11, np.float32))).all()
assert "torch" not in sys.modules
for module in ("core.files.run_folder", "systems.nowcast.task.task", "systems.nowcast.task.files.packed", "run.job"):
    importlib.import_module("fewer." + module)
from fewer.cli import main
raise SystemExit(main(["train", "tests.toys:Fit", "--steps", "1", "--out", sys.argv[1]]))
"""


def test_without_fcntl_packs_run_and_training_is_refused_in_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "run")]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1 and "without file locks" in done.stderr
