"""One training on photographs: from first weights, or another piece's, to averaged ones in a folder."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fewer.attack.hardening.harden import harden
from fewer.core.abilities import Variant
from fewer.core.engines.base import Engine, Training
from fewer.core.engines.evaluate import evaluate, predictor
from fewer.core.engines.loop import Loop, fit
from fewer.core.engines.optimizer import Optimizer
from fewer.core.engines.plain import Plain
from fewer.core.engines.state import fill_, fresh_modules
from fewer.core.errors import UserError
from fewer.core.files import checkpoint
from fewer.core.files.run_folder import MASK, METRICS, WEIGHTS, Folder
from fewer.core.machine.versions import versions
from fewer.core.mask import density
from fewer.core.task import Copy, Task
from fewer.pruning.pruning import Pruning
from fewer.pruning.schedules.gradual import Gradual, events_for
from fewer.studies.order import Order
from fewer.systems.vision.studies.light.photo_recipes import Recipe
from fewer.systems.vision.studies.measure import counts
from fewer.systems.vision.task.task import Settings, Vision

__all__ = ["Averaged", "device_of", "finished_network", "folder_of", "pixels", "task_of", "train"]

JPEG = "cifar10-jpeg"
_SETTLING = 60  # steps without learning in which batch norms see the averaged weights
_CHANGES = 24  # of the mask, had they the whole training


class Averaged(Variant):
    """A task beside whose network its average over the training is kept."""

    def __init__(self, task: Task[Any], decay: float) -> None:
        super().__init__(task)
        self.decay = decay

    def copies(self) -> dict[str, Copy]:
        return {**self.task.copies(), "average": Copy("net", tau=1 - self.decay)}


class Eagerly:
    """A gradual pruning that calls networks as they are: for two images it is not worth compiling them.

    Where the training began at a pruned network, it waits until more is to go than has gone.
    """

    def __init__(self, pruning: Gradual) -> None:
        self.pruning = pruning

    def next(self, step: int) -> int | None:
        return self.pruning.next(step)

    def act(self, engine: Engine) -> None:
        before = engine.state.mask_of(0)
        wanted = self.pruning.sparsity(self.pruning.prunings[0], engine.count)
        if before and wanted <= 1 - density(before):
            return
        with torch.compiler.set_stance("force_eager"):
            self.pruning.act(engine)


def folder_of(name: str, order: Order) -> Folder:
    """Where a piece lies."""
    return Folder(order.out / "photographs" / name)


def task_of(recipe: Recipe, order: Order) -> Vision:
    """The photographs, all training images of them."""
    if order.scale != "quick" and not order.data:
        raise UserError("no --data", "images", f"fewer reproduce {order.study} --data FILE")
    augment = recipe.augment if order.data or not recipe.augment else "crop"  # a mirrored digit is another sign
    settings = Settings(
        network=recipe.network, data=order.data or "digits", augment=augment,
        smooth=recipe.smooth, normalise=True, validation=0.0, channels_last=device_of(order) == "cuda",
    )  # fmt: skip
    return Vision(settings)


def device_of(order: Order) -> str:
    """A GPU where there is one, but for quick studies."""
    return "cuda" if order.scale != "quick" and torch.cuda.is_available() else "cpu"


def pixels(order: Order) -> str:
    """What every record says of its images."""
    if not order.data:
        return "embedded digits"
    return "CIFAR-10 at JPEG quality 75" if Path(order.data).name.startswith(JPEG) else "own images"


def train(recipe: Recipe, order: Order) -> None:
    """To a folder with the averaged weights and what they score; one that is finished is only found."""
    folder, device = folder_of(recipe.name, order), device_of(order)
    if folder.finished:
        return
    task, begin = task_of(recipe, order), time.monotonic()
    steps = max(1, recipe.epochs * len(task.data("train")) // recipe.batch)
    folder.path.mkdir(parents=True, exist_ok=True)
    with folder.locked():
        folder.claim({**dataclasses.asdict(recipe), "steps": steps, "device": device}, versions())
        engine = _engine(recipe, task, steps, order)
        fit(engine, folder, events=_events(recipe, engine, steps), loop=_loop(recipe, order))
        _settle_(engine)
        weights = engine.state.weights_of(0)["average"]
        mask = {name: part for name, part in engine.state.mask_of(0).items() if name == "net"}
        folder.write_networks(WEIGHTS, {"net": weights})
        folder.write_networks(MASK, mask)
        net = _filled(task, weights).to(device)
        accuracy = evaluate(task, predictor(task, {"net": net}))["accuracy"]
        seconds = round(time.monotonic() - begin, 1)  # of this call
        row = {**dataclasses.asdict(recipe), **counts({"net": net}, mask), "clean": accuracy, "steps": steps}
        folder.write_json(METRICS, {**row, "seconds": seconds, "device": device, "pixels": pixels(order)})
        checkpoint.forget(folder)
    order.log(f"{recipe.name}: clean {accuracy:.2%}, {row['kept']} weights kept, {seconds} s")


def _engine(recipe: Recipe, task: Vision, steps: int, order: Order) -> Plain:
    on_gpu = device_of(order) == "cuda"
    if on_gpu:
        torch._dynamo.config.suppress_errors = True  # what cannot be compiled goes on as it is, with a warning
    decay = 5e-4 if recipe.optimizer == "sgd" else 0.0
    optimizer = Optimizer(recipe.optimizer, recipe.lr, weight_decay=decay, warmup=steps // 10, decay_from=0.0)
    precision = "bfloat16" if on_gpu else "float32"
    training = Training(steps, recipe.batch, optimizer, device_of(order), precision, compile=on_gpu)
    whole: Task[Any] = harden(task, recipe.hardening, total=steps) if recipe.hardening else task
    averaged = Averaged(whole, recipe.average)
    engine = Plain(averaged, training, 0, modules=_first(recipe, averaged, order))
    if recipe.start_from and (mask := folder_of(recipe.start_from, order).read_networks(MASK)):
        found = {name: tensor.bool().to(engine.device) for name, tensor in mask["net"].items()}
        engine.state.mask_(0, {"net": found, "average": found})
    return engine


def _events(recipe: Recipe, engine: Plain, steps: int) -> list[Eagerly]:
    """LAMP (Lee 2021) over all layers, gradually; unchecked, as every layer keeps its quota."""
    sparsity = recipe.sparsity
    if recipe.keep:
        sparsity = 1 - recipe.keep / counts({"net": engine.modules["net"]}, {})["weights"]
    if not sparsity:
        return []
    pruning = Pruning(
        "lamp", sparsity, "global", "gradual", begin=0.0 if recipe.start_from else 0.2, end=0.5,
        every=max(1, steps // _CHANGES), layer_quota=(1 - sparsity) / 4, unchecked=True,
    )  # fmt: skip
    return [Eagerly(event) for event in events_for([pruning], steps) if isinstance(event, Gradual)]


@torch.no_grad()
def _settle_(engine: Plain) -> None:
    """Batch norms of the averaged weights: beyond its last step a training by a cosine learns nothing more."""
    net, average = (engine.state.networks[name] for name in ("net", "average"))
    net.weights.copy_(average.weights)
    with torch.enable_grad():
        engine.advance(min(_SETTLING, engine.training.steps))


def _loop(recipe: Recipe, order: Order) -> Loop:
    def told(line: dict[str, Any]) -> None:
        order.log(f"{recipe.name} step {line['step']}: loss {line['loss/net']}")

    return Loop(log_every=100, save_seconds=45.0, on_log=told)


def _filled(task: Vision, weights: dict[str, Tensor]) -> nn.Module:
    net = fresh_modules(task, 0)["net"]
    fill_(net, weights)
    return net


def finished_network(name: str, task: Vision, order: Order) -> nn.Module:
    """As a piece left it, on the CPU."""
    source = folder_of(name, order)
    if not source.finished:
        raise UserError(f"no finished {name} in {order.out}", "it", f"--pieces {name} first")
    return _filled(task, source.read_networks(WEIGHTS)["net"])


def _first(recipe: Recipe, task: Task[Any], order: Order) -> dict[str, nn.Module] | None:
    if not recipe.start_from:
        return None
    modules = fresh_modules(task, 0)
    tensors = finished_network(recipe.start_from, task_of(recipe, order), order).state_dict()
    for module in modules.values():
        fill_(module, tensors)
    return modules
