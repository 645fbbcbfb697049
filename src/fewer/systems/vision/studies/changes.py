"""Changes of a training that the paper's text leaves open: other readings of "both adversarial and normal examples"."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from fewer.attack.attacks.fgsm import fgsm
from fewer.core.abilities import Variant
from fewer.core.data import TensorData, batches, convert
from fewer.core.engines.nets import NetworkSet
from fewer.core.seed import Stream
from fewer.core.task import Nets, Noise, Objective, Task
from fewer.systems.vision.task.data import Images
from fewer.systems.vision.task.task import Vision

__all__ = ["CHANGES", "Alternating", "Injected", "Unclipped"]

CHANGES = {
    "alternate": "an epoch of attacked images, then an epoch of clean ones; the last is clean",
    "inject": "attacked copies of all training images, made once against a standard network, beside the images",
}


class Alternating(Variant):
    """Attacked images in every other epoch, beginning with the first: an even number of epochs ends with clean ones."""

    def __init__(self, task: Task[Any], hardened: Task[Any], epoch: int) -> None:
        super().__init__(task)
        self.pairs = tuple(zip(hardened.objectives(), task.objectives()))
        self.epoch = epoch  # steps

    def objectives(self) -> tuple[Objective[Any], ...]:
        return tuple(
            dataclasses.replace(clean, loss=_in_turn(attacked, clean, self.epoch)) for attacked, clean in self.pairs
        )


def _in_turn(attacked: Objective[Any], clean: Objective[Any], epoch: int) -> Any:
    def loss(nets: Nets, batch: Any, noise: Noise) -> Tensor:
        # a captured graph has no branches: both are computed, one counts
        odd = (noise.step // epoch) % 2 == 1
        return torch.where(odd, clean.loss(nets, batch, noise), attacked.loss(nets, batch, noise))

    return loss


class Injected(Variant):
    """Twice as many training images: each one clean, and as FGSM against a given network leaves it."""

    def __init__(self, task: Vision, modules: Mapping[str, nn.Module], budget: float) -> None:
        super().__init__(task)
        self.images = task
        clean = task.data("train")
        attack, nets = fgsm(task, budget), NetworkSet(modules, training=False)
        first = next(modules["net"].parameters())
        zero = torch.zeros((), dtype=torch.int64, device=first.device)
        noise = Stream(zero, zero, first.dtype)
        attacked = [
            attack(nets, convert(clean.take(index), first.device, first.dtype), noise).pixels.cpu()
            for index in batches(clean, 1000)
        ]
        samples = clean.samples
        both = Images(torch.cat([samples.pixels, *attacked]), torch.cat([samples.label, samples.label]))
        self.doubled = TensorData(both)

    def data(self, split: str) -> TensorData[Images]:
        return self.doubled if split == "train" else self.images.data(split)


class Unclipped(Variant):
    """The same images, where an attack may leave the range of pixels."""

    def __init__(self, task: Vision) -> None:
        super().__init__(task)
        self.bounds = torch.tensor(-torch.inf), torch.tensor(torch.inf)
