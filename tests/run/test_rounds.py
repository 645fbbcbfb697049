"""Lottery tickets as a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from fewer.core.engines.base import Training
from fewer.core.errors import UserError
from fewer.core.mask import kept, total
from fewer.pruning.pruning import Pruning
from fewer.run.job import Job
from fewer.run.load import load
from fewer.run.lottery import tickets


def job(**changes: object) -> Job:
    pruning = Pruning("magnitude", 0.75, "global", "rounds", rate=0.5)
    options = {"settings": ("network=cnn0",), "training": Training(steps=5, batch=16), "prune": pruning, **changes}
    return Job("vision", **options)  # type: ignore[arg-type]


def test_rounds_end_at_the_sparsity_asked_for_and_leave_an_ordinary_run(tmp_path: Path) -> None:
    metrics = job().run(tmp_path / "ticket")
    run = load(tmp_path / "ticket")
    assert kept(run.mask) == round(0.25 * total(run.mask))
    assert run.metrics == metrics[0] and "accuracy" in run.metrics
    for name, mask in run.mask["net"].items():
        assert not run.modules["net"].get_parameter(name)[~mask].any()


def test_a_finished_ticket_is_only_read(tmp_path: Path) -> None:
    first = job().run(tmp_path / "ticket")
    before = (tmp_path / "ticket/weights.safetensors").stat().st_mtime_ns
    assert job().run(tmp_path / "ticket") == first
    assert (tmp_path / "ticket/weights.safetensors").stat().st_mtime_ns == before


def test_the_rate_is_evened_out_over_whole_rounds() -> None:
    settings = tickets(Pruning("magnitude", 0.95, when="rounds"))
    assert settings.rounds == 9 and (1 - settings.rate) ** 9 == pytest.approx(0.05)


def test_rounds_need_magnitude() -> None:
    with pytest.raises(UserError, match="magnitude"):
        Pruning("snip", 0.9, when="rounds")
