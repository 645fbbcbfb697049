"""Small robust networks on photographs: standard, hardened, and pruned while either, each a piece that goes on.

Weights are averaged along the training (Izmailov 2018, as an exponential mean), labels are smoothed (Szegedy 2016) in
standard training, SGD with momentum falls by a cosine. On a GPU networks are compiled and run in bfloat16, channels
last; audits are in float32. Without --data, and at scale quick, the embedded digits stand in.
"""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from fewer.attack.audit import Audit
from fewer.attack.hardening.harden import harden
from fewer.core.abilities import Variant
from fewer.core.engines.base import Training
from fewer.core.engines.evaluate import evaluate, predictor
from fewer.core.engines.loop import Loop, fit
from fewer.core.engines.nets import NetworkSet
from fewer.core.engines.optimizer import Optimizer
from fewer.core.engines.plain import Plain
from fewer.core.engines.state import fill_, fresh_modules
from fewer.core.errors import UserError
from fewer.core.files import checkpoint
from fewer.core.files.run_folder import MASK, METRICS, WEIGHTS, Folder
from fewer.core.machine.versions import versions
from fewer.core.settings import from_text
from fewer.core.task import Copy, Task
from fewer.pruning.pruning import Pruning
from fewer.pruning.schedules.gradual import events_for
from fewer.studies.order import Order
from fewer.studies.pieces import Piece, Pieces, choice
from fewer.studies.study import Result
from fewer.systems.vision.studies.light.suite import audited
from fewer.systems.vision.studies.measure import counts
from fewer.systems.vision.task.task import Settings, Vision

__all__ = ["Averaged", "Recipe", "catalogue", "photographs", "recipes", "settings"]

BUDGET = 8 / 255
PGD = f"pgd:{BUDGET:.8f},steps=10,step={2 / 255:.8f},ramp=0"
# a part of the suite, to save GPU time: what PGD-100 x 10, FAB-T and Square would find beside it is not measured
ATTACKS = f"fgsm:{BUDGET:.8f}+pgd:{BUDGET:.8f},steps=40+apgd:{BUDGET:.8f}+apgd-t:{BUDGET:.8f}"
JPEG = "cifar10-jpeg"


@dataclass(frozen=True)
class Recipe:
    """One training on photographs."""

    name: str
    network: str = "resnet18"
    hardening: str = ""
    epochs: int = 30
    batch: int = 512
    lr: float = 0.2
    sparsity: float = 0.0
    smooth: float = 0.1
    average: float = 0.999  # of the averaged weights that stays at each step
    start_from: str = ""  # a piece whose finished weights are tuned


@dataclass(frozen=True)
class Choices:
    """What may be changed."""

    epochs: int = choice(0, "of every piece; 0: its own")
    images: int = choice(2000, "test images that face the attacks of an audit; 0: all")


class Averaged(Variant):
    """A task beside whose network its average over the training is kept."""

    def __init__(self, task: Task[Any], decay: float) -> None:
        super().__init__(task)
        self.decay = decay

    def copies(self) -> dict[str, Copy]:
        return {**self.task.copies(), "average": Copy("net", tau=1 - self.decay)}


def recipes(order: Order) -> dict[str, Recipe]:
    """By name, with the order's choices."""
    hardened = {"hardening": PGD, "epochs": 20, "batch": 256, "lr": 0.1, "smooth": 0.0}
    found = [
        Recipe("standard"),
        Recipe("standard-95", sparsity=0.95),
        Recipe("slim", "resnet18-slim"),
        Recipe("slim-tuned-90", "resnet18-slim", lr=0.05, sparsity=0.9, start_from="slim"),
        Recipe("hardened", **hardened),  # type: ignore[arg-type]
        *(Recipe(f"hardened-{percent}", sparsity=percent / 100, **hardened) for percent in (90, 95, 99)),  # type: ignore[arg-type]
    ]
    epochs = from_text(Choices, order.words).epochs
    if order.scale == "quick":
        short = {"network": "resnet10-tiny", "batch": 32, "average": 0.9, "epochs": 1, "lr": 0.05}
        # so few weights, hardly trained, do not all stay on paths beyond this
        found = [dataclasses.replace(each, sparsity=min(each.sparsity, 0.9), **short) for each in found]  # type: ignore[arg-type]
    return {each.name: dataclasses.replace(each, epochs=epochs or each.epochs) for each in found}


def settings(order: Order) -> dict[str, Any]:
    """What the order stands for."""
    chosen = from_text(Choices, order.words)
    return {
        "data": order.data or "digits", "attacks": ATTACKS, "images under attack": chosen.images or "all",
        "trainings": {name: dataclasses.asdict(recipe) for name, recipe in recipes(order).items()},
    }  # fmt: skip


def catalogue(order: Order) -> Pieces:
    """A piece for each training, and one for each audit."""
    made = recipes(order)
    every = {
        name: Piece(_cost(each), lambda each=each: train(each, order), late=bool(each.start_from))  # type: ignore[misc]
        for name, each in made.items()
    }
    for name, each in made.items():
        line = f"{ATTACKS} on the finished {name}"
        every[f"audit-{name}"] = Piece(line, lambda each=each: audit(each, order), late=True)  # type: ignore[misc]
    return Pieces(every, Choices)


def _cost(recipe: Recipe) -> str:
    tuned = f", from {recipe.start_from}" if recipe.start_from else ""
    return (
        f"{recipe.network}, {recipe.epochs} epochs of batch {recipe.batch}, {recipe.hardening or 'not hardened'}, "
        f"{recipe.sparsity:.0%} pruned{tuned}"
    )


def _folder(name: str, order: Order) -> Folder:
    return Folder(order.out / "photographs" / name)


def _task(recipe: Recipe, order: Order) -> Vision:
    if order.scale != "quick" and not order.data:
        raise UserError("no --data", "photographs", "fewer reproduce vision/cifar-robust --data cifar10-jpeg.tar.xz")
    settings = Settings(
        network=recipe.network, data=order.data or "digits", augment="crop,flip" if order.data else "crop",
        smooth=recipe.smooth, normalise=True, validation=0.0, channels_last=_device(order) == "cuda",
    )  # fmt: skip
    return Vision(settings)


def _device(order: Order) -> str:
    return "cuda" if order.scale != "quick" and torch.cuda.is_available() else "cpu"


def train(recipe: Recipe, order: Order) -> None:
    """From first weights, or those of another piece, to a folder with the averaged weights and what they score."""
    folder, device = _folder(recipe.name, order), _device(order)
    if folder.finished:
        return
    task, begin = _task(recipe, order), time.monotonic()
    steps = max(1, recipe.epochs * len(task.data("train")) // recipe.batch)
    on_gpu = device == "cuda"
    optimizer = Optimizer("sgd", recipe.lr, weight_decay=5e-4, warmup=steps // 10, decay_from=0.0)
    training = Training(
        steps, recipe.batch, optimizer, device, precision="bfloat16" if on_gpu else "float32", compile=on_gpu
    )
    whole: Task[Any] = harden(task, recipe.hardening, total=steps) if recipe.hardening else task
    engine = Plain(averaged := Averaged(whole, recipe.average), training, 0, modules=_first(recipe, averaged, order))
    pruning = Pruning(
        "magnitude", recipe.sparsity, "global", "gradual", every=max(1, steps // 40),
        layer_quota=(1 - recipe.sparsity) / 4,  # one scale for all layers could empty the last, widest ones
    )  # fmt: skip
    folder.path.mkdir(parents=True, exist_ok=True)
    with folder.locked():
        folder.claim({**dataclasses.asdict(recipe), "steps": steps, "device": device}, versions())
        fit(engine, folder, events=events_for([pruning] if recipe.sparsity else [None], steps), loop=_loop(order))
        mask, weights = engine.state.mask_of(0), engine.state.weights_of(0)["average"]
        net = engine.state.modules_of(0)["average"]
        folder.write_networks(WEIGHTS, {"net": weights})
        folder.write_networks(MASK, {name: part for name, part in mask.items() if name == "net"})
        accuracy = evaluate(task, predictor(task, {"net": net}))["accuracy"]
        kept = counts({"net": net}, {name: part for name, part in mask.items() if name == "net"})
        seconds = round(time.monotonic() - begin, 1)  # of this call
        row = {**dataclasses.asdict(recipe), **kept, "clean": accuracy, "steps": steps, "seconds": seconds}
        folder.write_json(METRICS, {**row, "pixels": pixels(order)})
        checkpoint.forget(folder)
    order.log(f"{recipe.name}: clean {accuracy:.2%}, {kept['kept']} weights kept, {seconds} s")


def pixels(order: Order) -> str:
    """What every record says of its images."""
    if not order.data:
        return "embedded digits"
    return "CIFAR-10 at JPEG quality 75" if Path(order.data).name.startswith(JPEG) else "own images"


def _loop(order: Order) -> Loop:
    def told(line: dict[str, Any]) -> None:
        order.log(f"step {line['step']}: loss {line['loss/net']}")

    return Loop(log_every=200, save_seconds=20.0, on_log=told)


def _first(recipe: Recipe, task: Task[Any], order: Order) -> dict[str, nn.Module] | None:
    if not recipe.start_from:
        return None
    source = _folder(recipe.start_from, order)
    if not source.finished:
        raise UserError(f"no finished {recipe.start_from} in {order.out}", "it", f"--pieces {recipe.start_from} first")
    modules = fresh_modules(task, 0)
    for module in modules.values():
        fill_(module, source.read_networks(WEIGHTS)["net"])
    return modules


def audit(recipe: Recipe, order: Order) -> None:
    """The attacks, one after the other; one that is over is kept."""
    folder = _folder(recipe.name, order)
    if not folder.finished:
        raise UserError(f"no finished {recipe.name} in {order.out}", "it", f"--pieces {recipe.name} first")
    if (folder.path / "suite.json").exists():
        return
    task = _task(recipe, order)
    net = fresh_modules(task, 0)["net"]
    fill_(net, folder.read_networks(WEIGHTS)["net"])
    images = 20 if order.scale == "quick" else from_text(Choices, order.words).images
    short = f"fgsm:{BUDGET:.8f}+pgd:{BUDGET:.8f},steps=3"
    attacks = short if order.scale == "quick" else ATTACKS
    nets = NetworkSet({"net": net.to(_device(order))}, training=False)
    order.log(audited(task, nets, folder, attacks, Audit(limit=images or None)).text())


def photographs(order: Order) -> Result:
    """The table of what is finished; at scale quick all is made first."""
    if order.scale == "quick":
        for piece in catalogue(order).every.values():
            piece.make()
    rows, details = [], []
    for name in recipes(order):
        folder = _folder(name, order)
        if not folder.finished:
            continue
        found = folder.read_json(METRICS)
        suite = folder.read_json("suite.json") if (folder.path / "suite.json").exists() else None
        stood = f"{suite['robust']:.2%} of {suite['images']}" if suite else ""
        rows.append([name, found["network"], found["kept"], f"{found['clean']:.2%}", stood, found["pixels"]])
        details.append({**found, "suite": suite})
    columns = ["training", "network", "kept weights", "clean", "under attack at 8/255", "images"]
    notes = [f"one seed; attacks: {ATTACKS}, worst case per image, a part of the suite"]
    return Result("Photographs: standard, hardened, pruned", columns, rows, notes, details={"trainings": details})
