"""What the vision studies measure: counts, accuracies under attack, and signs that a training went wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from fewer.attack.audit import Audit, robust
from fewer.attack.hardening.detectors import overfitting, plateau
from fewer.core.data import convert
from fewer.core.engines.base import Engine
from fewer.core.engines.evaluate import evaluate, predictor
from fewer.core.engines.nets import NetworkSet
from fewer.core.files.run_folder import Folder
from fewer.core.mask import Mask, dense, kept
from fewer.core.seed import Stream
from fewer.core.task import Task

__all__ = ["ATTACKS", "Row", "Watch", "accuracies", "accuracy_under", "counts", "measured", "signs", "troubles"]

ATTACKS = "fgsm:0.3+pgd:0.3"  # FGSM, and PGD-40 with steps of 0.01 from a random start
Row = dict[str, Any]
Craft = Callable[[Any, Any, Any], Any]  # (networks, batch, noise) -> the batch, moved


def counts(modules: Mapping[str, nn.Module], mask: Mask) -> Row:
    """Weights, those kept, and what is never pruned (biases, norms)."""
    weights = sum(tensor.numel() for part in dense(modules).values() for tensor in part.values())
    parameters = sum(parameter.numel() for module in modules.values() for parameter in module.parameters())
    return {"weights": weights, "kept": kept(mask) if mask else weights, "biases": parameters - weights}


def measured(task: Task[Any], engine: Engine, replica: int, *, limit: int | None) -> Row:
    """Counts and accuracies of one replica."""
    modules = engine.state.modules_of(replica)
    return {**counts(modules, engine.state.mask_of(replica)), **accuracies(task, modules, limit=limit)}


def accuracies(task: Task[Any], modules: Mapping[str, nn.Module], *, limit: int | None, split: str = "test") -> Row:
    """Clean accuracy, and what FGSM and PGD-40 each leave by themselves."""
    nets = NetworkSet(modules, training=False)
    on_gpu = any(parameter.is_cuda for module in modules.values() for parameter in module.parameters())
    # PGD's last point is judged, as in the paper; the suite judges every point that is visited
    audit = Audit(split=split, limit=limit, judge="last", layout="contiguous", per_batch=10_000 if on_gpu else None)
    report = robust(task, nets, ATTACKS, audit)
    found = {name: line.alone for name, line in zip(("fgsm", "pgd40"), report.lines)}
    return {"clean": report.clean, **found, "images": report.images}


def accuracy_under(task: Task[Any], modules: Mapping[str, nn.Module], attack: Craft) -> float:
    """Of test images that an attack has moved, whatever it aimed at."""
    predict, first = predictor(task, modules), next(modules["net"].parameters())
    zero = torch.zeros((), dtype=torch.int64, device=first.device)
    nets, noise = NetworkSet(modules, training=False), Stream(zero, zero, first.dtype)

    def attacked(batch: Any) -> Tensor:
        return predict(attack(nets, convert(batch, first.device, first.dtype), noise))

    return float(evaluate(task, attacked, "test")["accuracy"])


class Watch:
    """An event that changes nothing: it measures the first replica at evenly spaced steps, into the folder's log."""

    def __init__(self, steps: int, points: int, task: Task[Any], folder: Folder, *, limit: int) -> None:
        self.times = sorted({round(steps * (i + 1) / points) - 1 for i in range(points)}) if points else []
        self.task, self.folder, self.limit = task, folder, limit

    def next(self, step: int) -> int | None:
        return next((time for time in self.times if time >= step), None)

    def act(self, engine: Engine) -> None:
        found = accuracies(self.task, engine.state.modules_of(0), limit=self.limit)
        self.folder.log({"step": engine.count + 1, **found})


def stood(row: Row, classes: int) -> tuple[int, str]:
    """The last step at which the loss still stood on the plateau of guessing, and the sentence about it; 0: never."""
    last, sentence, losses = 0, "", list[float]()
    for step, loss in row["losses"]:
        # each line is a mean over the steps since the one before
        losses += [float("inf") if loss is None else loss] * (step - len(losses))
        if (said := plateau(losses, classes)) is not None:
            last, sentence = step, said
    return last, sentence


def signs(row: Row, classes: int) -> list[str]:
    """Sentences about a finished training: a plateau it stood on, and FGSM overstating its robustness."""
    found = []
    last, sentence = stood(row, classes)
    if last:
        found.append(f"until step {last} of {row['steps']} {sentence}")
    if (gap := overfitting(row["fgsm"], row["pgd40"])) is not None:
        found.append(gap)
    return found


def troubles(rows: Sequence[Row], classes: int) -> list[str]:
    """The signs of several seeds in at most two lines."""
    steps = [(row, stood(row, classes)[0]) for row in rows]
    plateaus = [f"{last} of {row['steps']} (seed {row['seed']})" for row, last in steps if last]
    gaps = [
        f"{100 * row['fgsm']:.0f} and {100 * row['pgd40']:.0f} % (seed {row['seed']})"
        for row in rows if overfitting(row["fgsm"], row["pgd40"]) is not None
    ]  # fmt: skip
    lines = []
    if plateaus:
        lines.append(f"stood at the loss of guessing, ln {classes}, until step {', '.join(plateaus)}")
    if gaps:
        lines.append(f"FGSM overstates its robustness, accuracy under FGSM and PGD-40: {', '.join(gaps)}")
    return lines
