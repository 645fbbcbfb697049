"""A control training whose process died goes on to the same bits, alone, as a cohort and on kept weights."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fewer.core.engines.base import Training
from fewer.core.engines.loop import Loop
from fewer.pruning.pruning import Pruning
from fewer.run.job import Job
from tests.systems.control.synthetic import logs

FILES = ("weights.safetensors", "mask.safetensors", "metrics.json", "metrics.jsonl")


def job(data: Path, **changes: Any) -> Job:
    """Twenty updates on logs in a file."""
    settings = (f"data={data}", "hidden=80,80", "autoencoder_hidden=80,80", "episodes=2", "horizon=5")
    pruning = Pruning("random", 0.9, "layer", samples=50)
    return Job("control", settings, Training(steps=20, batch=50), prune=pruning, **changes)


def dies(wanted: Job, out: Path, at: int) -> None:
    """Run it in a fork that ends without a word when it has logged that step."""
    child = os.fork()
    if child == 0:
        try:
            loop = Loop(log_every=4, save_seconds=0.0, on_log=lambda line: line["step"] >= at and os._exit(9))
            wanted.run(out, loop=loop)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


@pytest.mark.parametrize("changes", [{"seeds": (0, 1)}, {"engine": "sparse"}], ids=["cohort", "sparse"])
def test_a_training_whose_process_died_ends_with_the_same_bits(changes: dict[str, Any], tmp_path: Path) -> None:
    np.savez(tmp_path / "logs.npz", **logs()._asdict())
    wanted = job(tmp_path / "logs.npz", **changes)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    wanted.run(whole, loop=Loop(log_every=4))
    for at in (8, 16):
        dies(wanted, cut, at)
    wanted.run(cut, loop=Loop(log_every=4, save_seconds=0.0))
    places = [place for place in (whole, whole / "seed-0", whole / "seed-1") if place.exists()]
    compared = 0
    for place in places:
        for name in FILES:
            if (place / name).exists():
                assert (place / name).read_bytes() == (cut / place.relative_to(whole) / name).read_bytes(), name
                compared += 1
    assert compared >= 4
