"""Policies from the same logs by the same number of updates: ours, dense, beside d3rlpy's.

d3rlpy pins packages that we do not, so it lives in a Python of its own, named by FEWER_D3RLPY (a virtual environment's
python with d3rlpy, gymnasium and mujoco). Both sides have the same networks, batch and normalisation, the learning
rates of their own defaults, and meet the same episodes. At the same weights losses and gradients of IQL and BCQ agree
to a millionth (compared once, d3rlpy 2.8.1), but for the decoder of its BCQ, which ends without the reference's tanh.
Its IQL leaves rewards as they are, and its BCQ draws candidates anew in every step.

Where FEWER_OFFLINE names a folder, each finished training is kept there, and a bench that was stopped goes on from
them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from fewer.bench.row import Row
from fewer.core.errors import MissingExtra, UserError
from fewer.core.files.atomic import write_json
from fewer.run.job import Job
from fewer.run.options import job_of
from fewer.systems.control.task.logs import files
from fewer.systems.control.task.logs.source import transitions
from fewer.systems.control.task.worlds.environments import ENVIRONMENTS
from fewer.systems.control.task.worlds.rollout import episode_seed

__all__ = ["compared", "run"]

_PEER = Path(__file__).with_name("peer_d3rlpy.py")
_ENVIRONMENTS = {"plain-bc": ("hopper", "halfcheetah", "walker2d")}
_TWO = ("hopper", "halfcheetah")
_REQUIRED = 0.97  # of d3rlpy's score, of the plain clone
_UPDATES = {"plain-bc": 8000, "iql": 20_000, "bcq": 3000}  # a dense BCQ makes 20 a second
_SEEDS = {"plain-bc": 2, "iql": 1, "bcq": 1}


def run(quick: bool = False) -> list[Row]:
    """Scores and updates a second; quickly the plain clone alone, of few updates, on Hopper."""
    python = _python()
    if quick:
        return compared(python, "hopper", "plain-bc", updates=500, seeds=1, episodes=2, logged=4000)
    return [
        row
        for algorithm, updates in _UPDATES.items()
        for environment in _ENVIRONMENTS.get(algorithm, _TWO)
        for row in compared(python, environment, algorithm, updates=updates, seeds=_SEEDS[algorithm])
    ]


def compared(
    python: str, environment: str, algorithm: str, *, updates: int, seeds: int, episodes: int = 20, logged: int = 40_000
) -> list[Row]:
    """One algorithm on one environment: the mean score over seeds, and updates per processor second."""
    world, data = ENVIRONMENTS[environment], f"expert:{environment}:{logged}:2027:0.15"
    ours, theirs = list[dict[str, Any]](), list[dict[str, Any]]()
    with tempfile.TemporaryDirectory() as folder:
        files.write_arrays(logs := Path(folder) / "logs.npz", transitions(data, world))
        for seed in range(seeds):
            asked = {
                "algorithm": algorithm, "logs": str(logs), "environment": world.gymnasium, "updates": updates,
                "hidden": [400, 300], "seed": seed, "episode_seeds": [episode_seed(100, i) for i in range(episodes)],
            }  # fmt: skip
            name = f"{environment}-{algorithm}-{updates}-{episodes}-{logged}-{seed}"
            theirs.append(_kept(f"d3rlpy-{name}", partial(_theirs, python, asked)))
            settings = [f"environment={environment}", f"algorithm={algorithm}", f"data={data}", f"episodes={episodes}"]
            job = job_of("control", {"settings": settings, "steps": updates, "seeds": seed})
            ours.append(_kept(f"fewer-{name}", partial(_ours, job)))
    means = fmean(one["score"] for one in ours), fmean(world.score(fmean(one["returns"])) for one in theirs)
    rates = [updates * seeds / sum(one["seconds"] for one in side) for side in (ours, theirs)]
    what = f"{world.gymnasium.partition('-')[0]}, {algorithm}, {updates:,} updates"
    against = f"d3rlpy {theirs[0]['version']}, {seeds} seed{'s' if seeds > 1 else ''}"
    required = _REQUIRED if algorithm == "plain-bc" else None
    return [
        Row(f"{what}: score", *means, "score", means[0] / means[1], against, required),
        # ours counts the judging episodes too
        Row(f"{what}: updates", rates[0], rates[1], "updates/s", rates[0] / rates[1], against),
    ]


def _ours(job: Job) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        begin = time.process_time()
        score = job.run(Path(folder) / "run")[0]["score"]
        return {"score": score, "seconds": time.process_time() - begin}


def _kept(name: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """A side's training, found again where somebody keeps them."""
    folder = os.environ.get("FEWER_OFFLINE")
    if not folder:
        return make()
    place = Path(folder) / f"{name}.json"
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        write_json(place, make())
    return dict(json.loads(place.read_text()))


def _python() -> str:
    """A Python that has d3rlpy."""
    named = os.environ.get("FEWER_D3RLPY", sys.executable)
    try:
        found = subprocess.run([named, "-c", "import d3rlpy, imageio, mujoco"], capture_output=True, check=False)
    except OSError as error:
        raise UserError(f"FEWER_D3RLPY={named} ({error.strerror})", "a Python with d3rlpy") from None
    if found.returncode:
        raise MissingExtra(
            f"no d3rlpy in {named}", "a Python of its own that has it",
            "python -m venv d3; d3/bin/pip install d3rlpy 'gymnasium[mujoco]'; FEWER_D3RLPY=d3/bin/python",
        )  # fmt: skip
    return named


def _theirs(python: str, asked: dict[str, Any]) -> dict[str, Any]:
    done = subprocess.run([python, str(_PEER)], input=json.dumps(asked), capture_output=True, text=True, check=False)
    if done.returncode:
        raise UserError(f"d3rlpy's side ended with {done.stderr.strip()[-200:]!r}", "a score", f"try {python} by hand")
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))
