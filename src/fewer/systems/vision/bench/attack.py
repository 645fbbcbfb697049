"""Robust accuracy under PGD-40: ours against foolbox on the same images, without random start, in one run.

A network that is not robust loses its images early, and they are dropped. A robust one keeps them; there an audit gains
by taking as many at a time as a processor's cache holds, which a user of foolbox could do by hand: rows say how many it
was given, and its better number is told beside. Judging every visited point may find an image that foolbox, which
judges the last one, misses; with `judge="last"` the two answer the same question.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
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
PER_BATCH, FITTING = 500, 125  # images that foolbox is given at a time: all, and as many as an audit takes


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
    Case("cnn1", "fast:0.3,ramp=0.7", 500, 1.5),
    Case("cnn1", "fast:0.3,ramp=0.7", 500, 1.5, judge="last"),
)
QUICK = (Case("mlp", "", 150, 3.0), Case("cnn0", "fast:0.3,ramp=0.7", 200, 1.5, judge="last"))


def run(quick: bool = False) -> list[Row]:
    """Two rows a network, in images a second: foolbox with all images at once, and with fewer."""
    rows, trained = [], {}
    for case in QUICK if quick else CASES:
        task = Vision(Settings(network=case.network))
        key = (case.network, case.hardening)
        if key not in trained:
            trained[key] = _trained(task, case)
        rows += _rows(task, trained[key], case, images=200 if quick else 500, rounds=3)
    return rows


def _trained(task: Vision, case: Case) -> NetworkSet:
    learnt = harden(task, case.hardening, total=case.steps) if case.hardening else task
    engine = Plain(learnt, Training(case.steps, 128, Optimizer(lr=2e-3)))
    engine.advance(case.steps)
    return NetworkSet(engine.state.modules_of(0), training=False)


def _rows(task: Vision, nets: NetworkSet, case: Case, *, images: int, rounds: int) -> list[Row]:
    batch = task.data("test").take(torch.arange(images))
    audit = Audit(limit=images, judge=case.judge)
    answers: dict[str, float] = {}

    def ours() -> None:
        text = f"pgd:{BUDGET},steps={STEPS},step={STEP},start=centre"
        answers["ours"] = robust(task, nets, text, audit).robust

    def theirs(per_batch: int) -> None:
        answers["theirs"] = _foolbox(nets, batch, per_batch)

    calls: dict[str, Callable[[], object]] = {"ours": ours}
    calls |= {str(count): partial(theirs, count) for count in (PER_BATCH, FITTING)}
    seconds = interleaved_seconds(calls, rounds=rounds, warmup=1)
    kind = "hardened" if case.hardening else "plain"
    what = f"PGD-40, {kind} {case.network}, {case.judge} point: {answers['ours']:.1%} and {answers['theirs']:.1%} stand"
    return [
        Row(
            what, images / seconds["ours"], images / seconds[str(count)], "images/s",
            seconds[str(count)] / seconds["ours"], f"foolbox 3.3.4, batches of {count}",
            case.required if count == PER_BATCH else None,
        )
        for count in (PER_BATCH, FITTING)
    ]  # fmt: skip


def _foolbox(nets: NetworkSet, batch: Any, per_batch: int) -> float:
    """Robust accuracy as a foolbox user computes it."""
    try:
        foolbox: Any = importlib.import_module("foolbox")
    except ImportError:
        raise MissingExtra("no foolbox", "foolbox 3.3.4 to compare with", "pip install 'fewer[dev]'") from None
    model = foolbox.PyTorchModel(nets.modules["net"].eval(), bounds=(0, 1), device=batch.pixels.device)
    attack = foolbox.attacks.LinfProjectedGradientDescentAttack(steps=STEPS, abs_stepsize=STEP, random_start=False)
    standing = 0
    for pixels, label in zip(batch.pixels.split(per_batch), batch.label.split(per_batch)):
        _, _, fooled = attack(model, pixels, foolbox.criteria.Misclassification(label), epsilons=BUDGET)
        standing += int((~fooled).sum())
    return standing / len(batch.label)
