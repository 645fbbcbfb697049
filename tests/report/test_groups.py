"""Runs under several seeds are one line, with an interval that is Student's."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from scipy import stats
from torch import nn

from fewer.core.registry import system_of
from fewer.pruning.pruning import Pruning
from fewer.report.certainty.units import Interval
from fewer.report.description import in_words
from fewer.report.groups import grouped, over_seeds, spelled
from fewer.run.job import Job
from fewer.run.load import Trained
from tests.toys import Fit


def trained(path: str, job: Job, **metrics: float) -> Trained:
    net = nn.Linear(4, 5)
    mask = {"net": {"weight": torch.arange(20).view(5, 4) < 2}} if job.prune else {}
    return Trained(Path(path), job, Fit(), {"net": net}, mask, metrics)


def test_the_interval_is_that_of_scipy() -> None:
    values = [0.9, 0.92, 0.97, 0.91]
    low, high = stats.t.interval(0.95, 3, loc=sum(values) / 4, scale=stats.sem(values))
    assert over_seeds(values) == pytest.approx((0.925, low, high), abs=1e-4)


def test_one_seed_claims_no_interval() -> None:
    assert not over_seeds([1.0]).known and spelled(over_seeds([1.0]), str) == "1.0"
    assert spelled(over_seeds([]), str) == "-" and spelled(Interval(1.0, 0.5, 2.0), str) == "1.0 (0.5 to 2.0)"


def test_seeds_of_one_job_are_one_group_and_other_jobs_their_own() -> None:
    dense = [trained(f"runs/dense/seed-{n}", Job("vision", seeds=(n,)), accuracy=0.9 + n / 100) for n in range(3)]
    pruned = trained("runs/snip", Job("vision", prune=Pruning("snip", 0.9)), accuracy=0.8)
    first, second = grouped([*dense, pruned])
    assert (first.name, len(first.runs), second.name) == ("dense", 3, "snip")
    assert first.metric("accuracy").mean == pytest.approx(0.91) and (first.colour, second.colour) == (0, 1)
    assert (first.sparsity, second.kept, second.sparsity) == (0.0, 2 + 5, pytest.approx(18 / 25))
    assert second.count.kept_prunable == 2 and second.count.prunable_density == pytest.approx(0.1)


def test_groups_of_one_name_are_told_apart() -> None:
    runs = [trained("a/run", Job("vision")), trained("b/run", Job("vision", ("network=mlp",)))]
    assert [group.name for group in grouped(runs)] == ["run", "b/run"]


def test_settings_are_told_in_words() -> None:
    job = Job("vision", ("network=mlp",), prune=Pruning("snip", 0.95), harden="pgd:0.1")
    told = in_words(job)
    assert (
        "network mlp" in told
        and "95 % of the prunable weights were removed before the first step, chosen by SNIP" in told
    )
    assert "pgd:0.1" in told
    assert "Nothing was pruned" in in_words(Job("vision"))


def test_a_task_of_ones_own_is_described_too() -> None:
    assert system_of("mine:Task").description.attack == "" and system_of("mine:Task").description.heading == "mine:Task"
