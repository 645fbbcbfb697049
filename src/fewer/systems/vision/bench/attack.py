"""Robust accuracy under PGD-40: ours against foolbox on the same images, without random start, in one run.

A network that is not robust loses its images early, and they are dropped; a robust one keeps them, and there the
aim is only not to be slower. Judging every visited point may find an image that foolbox, which judges the last one,
misses; with `judge="last"` the two answer the same question.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import torch

from fewer.attack.audit import Audit, robust
from fewer.attack.hardening.harden import harden
from fewer.bench.row import Row, interleaved_seconds
from fewer.core.engines.base import Training
from fewer.core.engines.nets import NetworkSet
from fewer.core.engines.optimizer import Optimizer
from fewer.core.engines.plain import Plain
from fewer.core.errors import MissingExtra
from fewer.systems.vision.task.task import Settings, Vision

__all__ = ["run"]

BUDGET, STEPS, STEP = 0.3, 40, 0.01
PER_BATCH = 500


@dataclass(frozen=True)
class Case:
    """A network to train for so many steps, which of PGD's points are judged, and the ratio asked for."""

    network: str
    hardening: str
    steps: int
    required: float
    judge: str = "every"


CASES = (
    Case("mlp", "", 300, 3.0),
    Case("cnn2", "", 200, 3.0),
    Case("cnn1", "fast:0.3,ramp=0.7", 500, 1.0),
    Case("cnn1", "fast:0.3,ramp=0.7", 500, 1.0, judge="last"),
)
QUICK = (Case("mlp", "", 150, 3.0), Case("cnn0", "fast:0.3,ramp=0.7", 200, 1.0, judge="last"))


def run(quick: bool = False) -> list[Row]:
    """One row a network, in images a second; each row states both accuracies."""
    rows, trained = [], {}
    for case in QUICK if quick else CASES:
        task = Vision(Settings(network=case.network))
        key = (case.network, case.hardening)
        if key not in trained:
            trained[key] = _trained(task, case)
        rows.append(_row(task, trained[key], case, images=200 if quick else 500, rounds=3))
    return rows


def _trained(task: Vision, case: Case) -> NetworkSet:
    learnt = harden(task, case.hardening, total=case.steps) if case.hardening else task
    engine = Plain(learnt, Training(case.steps, 128, Optimizer(lr=2e-3)))
    engine.advance(case.steps)
    return NetworkSet(engine.state.modules_of(0), training=False)


def _row(task: Vision, nets: NetworkSet, case: Case, *, images: int, rounds: int) -> Row:
    batch = task.data("test").take(torch.arange(images))
    audit = Audit(limit=images, per_batch=PER_BATCH, judge=case.judge)
    answers: dict[str, float] = {}

    def ours() -> None:
        text = f"pgd:{BUDGET},steps={STEPS},step={STEP},start=centre"
        answers["ours"] = robust(task, nets, text, audit).robust

    def theirs() -> None:
        answers["theirs"] = _foolbox(nets, batch)

    seconds = interleaved_seconds({"ours": ours, "theirs": theirs}, rounds=rounds, warmup=1)
    kind = "hardened" if case.hardening else "plain"
    return Row(
        f"PGD-40, {kind} {case.network}, {case.judge} point: {answers['ours']:.1%} and {answers['theirs']:.1%} stand",
        images / seconds["ours"], images / seconds["theirs"], "images/s", seconds["theirs"] / seconds["ours"],
        "foolbox 3.3.4, same batches", case.required,
    )  # fmt: skip


def _foolbox(nets: NetworkSet, batch: Any) -> float:
    """Robust accuracy as a foolbox user computes it."""
    try:
        foolbox: Any = importlib.import_module("foolbox")
    except ImportError:
        raise MissingExtra("no foolbox", "foolbox 3.3.4 to compare with", "pip install 'fewer[dev]'") from None
    model = foolbox.PyTorchModel(nets.modules["net"].eval(), bounds=(0, 1), device=batch.pixels.device)
    attack = foolbox.attacks.LinfProjectedGradientDescentAttack(steps=STEPS, abs_stepsize=STEP, random_start=False)
    standing = 0
    for pixels, label in zip(batch.pixels.split(PER_BATCH), batch.label.split(PER_BATCH)):
        _, _, fooled = attack(model, pixels, foolbox.criteria.Misclassification(label), epsilons=BUDGET)
        standing += int((~fooled).sum())
    return standing / len(batch.label)
