"""What a hardening that went wrong says of itself."""

from __future__ import annotations

from pathlib import Path

from fewer.core.engines.base import Training
from fewer.core.engines.optimizer import Optimizer
from fewer.run.diagnostics import signs
from fewer.run.job import Job
from fewer.run.load import load


def trained(out: Path, harden: str | None, *, lr: float, steps: int) -> list[str]:
    training = Training(steps=steps, batch=32, optimizer=Optimizer("sgd", lr=lr))
    Job("vision", ("network=cnn0",), training, harden=harden).run(out)
    return signs(load(out))


def test_a_network_that_gives_one_answer_is_told_so(tmp_path: Path) -> None:
    found = trained(tmp_path / "run", "fgsm:0.001,ramp=0", lr=1e-9, steps=310)
    assert any("constant" in sentence or "guessing" in sentence for sentence in found)


def test_a_run_that_was_not_hardened_says_nothing(tmp_path: Path) -> None:
    assert trained(tmp_path / "run", None, lr=1e-6, steps=5) == []
