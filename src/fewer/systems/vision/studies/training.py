"""What the studies of the vision task share: data, a trained network, and its accuracy under attack."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import nn

from fewer.attack.attacks.pgd import pgd
from fewer.attack.hardening.harden import harden
from fewer.core.data import convert
from fewer.core.engines.base import Training
from fewer.core.engines.evaluate import evaluate, predictor
from fewer.core.engines.loop import Loop, fit
from fewer.core.engines.nets import NetworkSet
from fewer.core.engines.optimizer import Optimizer
from fewer.core.engines.plain import Plain
from fewer.core.seed import Stream
from fewer.studies.order import Log
from fewer.systems.vision.task.data import Images
from fewer.systems.vision.task.files.fetch import fetch_mnist
from fewer.systems.vision.task.task import Vision

__all__ = ["accuracies", "device", "mnist", "trained"]

BUDGET = 0.3  # pixels, the paper's


def device(scale: str) -> str:
    """The GPU for a full study where there is one."""
    return "cuda" if scale == "full" and torch.cuda.is_available() else "cpu"


def mnist(scale: str) -> str:
    """Where the digits are: embedded for a quick study; all of MNIST, in FEWER_MNIST or fetched, for a full one."""
    if scale == "quick":
        return "digits"
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(os.environ.get("FEWER_MNIST") or Path(cache) / "fewer" / "mnist")
    fetch_mnist(folder)
    return str(folder)


def trained(
    task: Vision, *, steps: int, hardening: str = "", batch: int = 128, seed: int = 0, on: str = "cpu", log: Log
) -> dict[str, nn.Module]:
    """The task's networks after training with Adam, adversarially if a hardening is named."""
    # The field's recipe: a short warm-up, and the rate falling to zero over the second half.
    optimizer = Optimizer(lr=1e-3 if not hardening else 2e-3, warmup=min(100, steps // 5), decay_from=0.5)
    training = Training(steps=steps, batch=batch, optimizer=optimizer, device=on)
    engine = Plain(harden(task, hardening, total=steps) if hardening else task, training, seed)
    name = f"{task.settings.network} {hardening or 'clean'}"
    fit(engine, loop=Loop(log_every=max(1, steps // 4), on_log=lambda line: log(f"{name}: {line}")))
    return engine.state.modules_of(0)


def accuracies(
    task: Vision, modules: Mapping[str, nn.Module], *, steps: int = 10, step: float = 0.05, split: str = "test"
) -> tuple[float, float]:
    """Clean, and under PGD with a random start inside the paper's budget."""
    attack, predict = pgd(task, BUDGET, steps=steps, step=step), predictor(task, modules)
    first = next(modules["net"].parameters())
    zero = torch.zeros((), dtype=torch.int64, device=first.device)
    nets, noise = NetworkSet(modules, training=False), Stream(zero, zero, first.dtype)

    def attacked(batch: Images) -> torch.Tensor:
        return predict(attack(nets, convert(batch, first.device, first.dtype), noise))

    return evaluate(task, predict, split)["accuracy"], evaluate(task, attacked, split)["accuracy"]
