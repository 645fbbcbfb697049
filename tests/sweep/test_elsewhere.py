"""The same numbers on Ray, where a worker is killed, and over two processes of torchrun."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections import deque
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from fewer.core.errors import UserError
from fewer.run.distributed import train_distributed
from fewer.run.job import Job
from fewer.sweep.executors import ray_pool
from fewer.sweep.executors.ray_pool import bring_home
from fewer.sweep.grid import grid_of
from fewer.sweep.plan import units_of
from fewer.sweep.run import Sweep, Where
from fewer.sweep.unit import Outcome

TRAIN = [
    "train", "vision", "--set", "network=cnn0", "--set", "classes=3,7", "--steps", "12", "--batch", "16",
    "--precision", "float64", "--optimizer", "adam,lr=0.003,warmup=0", "--harden", "pgd:0.1",
    "--prune", "magnitude,when=gradual,every=2", "--sparsity", "0.6", "--engine", "plain", "--json",
]  # fmt: skip


def grid(marker: Path) -> dict[str, Any]:
    return {
        "base": {"task": "tests.sweep.tasks:Mortal", "batch": 8, "steps": 10, "prune.samples": 20},
        "axes": {"prune": ["dense", "magnitude"], "sparsity": 0.5, "seed": "0-2"},
        "points": [{"set.marker": str(marker)}, {"prune": "magnitude", "sparsity": 0.999}],
        "resources": {"retries": 2, "cohort": 3},
    }


def test_ray_gives_the_same_table_although_a_worker_is_killed(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray's own, about its sockets and its future
        away = Sweep(grid_of(grid(marker)), tmp_path / "away", Where("ray")).run()
    assert marker.read_text() == "x"  # the first attempt was killed, and there was one more
    here = Sweep(grid_of(grid(marker)), tmp_path / "here", Where("inline")).run()
    assert away == here and [row["status"] for row in away] == ["done"] * 7 + ["failed"]
    for row in away[:7]:
        one, other = (load_file(tmp_path / place / "points" / row["point"] / "weights.safetensors") for place in
                      ("here", "away"))  # fmt: skip
        assert all(torch.equal(one[key], other[key]) for key in one)


def test_figures_come_home_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr(
        "fewer.sweep.executors.ray_pool.write_atomically", lambda path, content: written.append(path.name)
    )
    bring_home({"a/metrics.json": b"{}", "a/weights.safetensors": b"", "a/config.json": b"{}"}, tmp_path)
    assert written[-1] == "metrics.json" and len(written) == 3


def test_two_processes_of_torchrun_train_as_one_does(tmp_path: Path) -> None:
    """Gradual pruning and attacks on the way: masks, noise and order are those of the whole batch."""
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "fewer"]
    done = subprocess.run([*launch, *TRAIN, "--out", str(tmp_path / "two")], capture_output=True, text=True,
                          check=False, env={**os.environ, "OMP_NUM_THREADS": "1"})  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("accuracy") == 1  # one process speaks
    from fewer.cli import main

    torch.set_num_threads(1)
    assert main([*TRAIN, "--out", str(tmp_path / "one")]) == 0
    one, two = (load_file(tmp_path / name / "weights.safetensors") for name in ("one", "two"))
    assert max(float((one[key] - two[key]).abs().max()) for key in one) < 1e-9
    masks = [load_file(tmp_path / name / "mask.safetensors") for name in ("one", "two")]
    assert all(torch.equal(masks[0][key], masks[1][key]) for key in masks[0])
    lines = [(tmp_path / name / "metrics.jsonl").read_text() for name in ("one", "two")]
    assert lines[0][:40] == lines[1][:40]


def test_torchrun_refuses_several_seeds(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="one seed"):
        train_distributed(Job("tests.toys:Blobs", seeds=(0, 1)), tmp_path)


def test_ray_has_only_so_many_units_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[int] = []

    class Fake:
        """Answers whatever is asked first."""

        def remote(self, _: Any) -> Any:
            return self

        def options(self, **_: Any) -> Any:
            return SimpleNamespace(remote=lambda *words: object())

        def cluster_resources(self) -> dict[str, float]:
            return {"CPU": 4.0}

        def wait(self, left: list[Any], num_returns: int) -> tuple[list[Any], list[Any]]:
            waits.append(len(left))
            return left[:num_returns], left[num_returns:]

        def shutdown(self) -> None:
            pass

    monkeypatch.setattr(ray_pool, "_connected", lambda _: Fake())
    monkeypatch.setattr(ray_pool, "_outcome", lambda *_: Outcome({}))
    monkeypatch.setattr(ray_pool, "AHEAD", 10)
    found = grid_of({"base": {"task": "vision", "steps": 1}, "axes": {"seed": "0-24"}, "resources": {"cohort": 1}})
    units = deque(units_of(found.points, found.resources))
    done = list(ray_pool.work_on_ray(units, tmp_path, found.resources, None))
    assert len(done) == 25 and not units
    assert waits == [10] * 16 + list(range(9, 0, -1))
