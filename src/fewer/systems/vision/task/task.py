"""Image classification as a task: cross-entropy on labelled images, attacked in their pixels."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from fewer.core.data import TensorData, batches
from fewer.core.engines.optimizer import Optimizer
from fewer.core.errors import UserError
from fewer.core.maths.entropy import cross_entropy
from fewer.core.recipe import Recipe
from fewer.core.settings import setting
from fewer.core.task import Nets, Noise, Objective, Task
from fewer.systems.vision.task.augment import KINDS, augmented, parse_augment
from fewer.systems.vision.task.data import Images, checked, chosen_classes, load, mixed, split_up, tensors
from fewer.systems.vision.task.networks import NETWORKS, Contrast, Normalise, resized_, xavier_

__all__ = ["Images", "Settings", "Vision"]

_PER_BATCH = 500  # images that evaluate yields at once


@dataclass(frozen=True)
class Settings:
    """What is classified, and by which network."""

    network: str = setting("cnn2", f"one of {', '.join(NETWORKS)}", "name")
    data: str = setting(
        "digits",
        "digits (embedded), an .npz, a tar of train/CLASS/*.jpg, or a folder: idx, CIFAR binaries, one per class",
        "name or path",
    )
    classes: str = setting("", "only these, such as 3,7; empty: all", "numbers")
    normalise: bool = setting(False, "subtract the training set's mean, divide by its deviation", "yes/no")
    contrast: float = setting(0.0, "steepness of a sigmoid around mid-grey that pixels pass first; 0: none", "1")
    hidden: int = setting(0, "before the head, as left by shrinking; 0: the network's own", "features")
    initial: str = setting("torch", "first weights: torch (uniform) or xavier (normal)", "name")
    augment: str = setting("", f"of training images: some of {', '.join(KINDS)}; empty: none", "names")
    smooth: float = setting(0.0, "given to the other classes by training (label smoothing, Szegedy 2016)", "share")
    channels_last: bool = setting(False, "let images lie channels last, which convolutions on a GPU like", "yes/no")
    validation: float = setting(0.1, "held out of the training images, by class", "share")

    def __post_init__(self) -> None:
        if self.network not in NETWORKS:
            raise UserError(f"network {self.network!r}", f"one of {', '.join(NETWORKS)}")
        if self.initial not in ("torch", "xavier"):
            raise UserError(f"initial {self.initial!r}", "torch or xavier")
        if not 0 <= self.contrast <= 100:  # black against white from about 40 on
            raise UserError(f"contrast {self.contrast}", "a steepness from 0 (none) to 100")
        if self.contrast and self.normalise:
            raise UserError("contrast and normalise", "one of the two", "contrast already has a fixed range")
        if self.hidden < 0:
            raise UserError(f"hidden {self.hidden}", "0 or more features")
        if not 0 <= self.validation < 1:
            raise UserError(f"validation {self.validation}", "a share from 0 to below 1")
        if not 0 <= self.smooth < 1:
            raise UserError(f"smooth {self.smooth}", "a share from 0 to below 1")
        parse_augment(self.augment)
        self.chosen()

    def chosen(self) -> tuple[int, ...]:
        """The classes named, as numbers."""
        try:
            return tuple(int(part) for part in self.classes.split(",")) if self.classes.strip() else ()
        except ValueError as error:
            raise UserError(f"classes {self.classes!r}", "numbers with commas, such as 3,7") from error


class Vision(Task[Images]):
    """Classify images; attackable in the pixels, with features before a linear head."""

    recommended = {"steps": 2000, "batch": 128, "optimizer": Optimizer(lr=1e-3, warmup=100, decay_from=0.5)}

    @classmethod
    def recipe(cls, settings: Any) -> Recipe:
        """Gradually, by LAMP; the MLP in three times the steps: with 2 % of its weights it lost 1.1 % of the validation
        accuracy in as many as dense, and 0.2 % in these. Networks of images are not tried so long.
        """
        longer = {"steps": 6000} if settings is not None and settings.network == "mlp" else {}
        return Recipe(cls.recommended, prune="lamp,when=gradual", pruned=longer)

    def __init__(self, settings: Settings = Settings()) -> None:  # noqa: B008  frozen
        self.settings = settings
        arrays = {name: checked(part, name=f"{settings.data} {name}") for name, part in load(settings.data).items()}
        shapes = {part.images.shape[1:] for part in arrays.values()}
        if len(shapes) != 1:
            raise UserError(f"{settings.data} with images {sorted(shapes)}", "one shape for train and test")
        arrays, self.classes = chosen_classes(arrays, settings.chosen())
        arrays = {name: mixed(part) for name, part in arrays.items()}
        self.shape: tuple[int, int, int] = shapes.pop()
        with torch.device("meta"):
            NETWORKS[settings.network](self.shape, self.classes)  # images too small for the network are refused here
        self._splits = {
            name: TensorData(tensors(part))
            for name, part in split_up(arrays, settings.validation).items()
            if len(part.labels)
        }
        self.bounds = torch.tensor(0.0), torch.tensor(1.0)
        self._normal = self._statistics() if settings.normalise else None

    def _statistics(self) -> tuple[Tensor, Tensor]:
        pixels = self._splits["train"].samples.pixels.transpose(0, 1).flatten(1)
        deviation, mean = torch.std_mean(pixels, dim=1, correction=0)
        return mean, deviation.clamp(min=1e-3)  # a channel that never changes stays finite

    def networks(self) -> dict[str, nn.Module]:
        net = NETWORKS[self.settings.network](self.shape, self.classes)
        if self.settings.hidden:
            resized_(net, self.settings.hidden)
        if self.settings.initial == "xavier":
            xavier_(net)
        if self._normal is not None:
            net.normalise = Normalise(*self._normal)
        if self.settings.contrast:
            net.normalise = Contrast(self.settings.contrast)
        net.channels_last = self.settings.channels_last
        return {"net": net}

    def objectives(self) -> tuple[Objective[Images], ...]:
        return (Objective(("net",), self._loss, augment=self._augment if self.settings.augment else None),)

    def _augment(self, batch: Images, noise: Noise) -> Images:
        return batch._replace(pixels=augmented(batch.pixels, noise, parse_augment(self.settings.augment)))

    def _loss(self, nets: Nets, batch: Images, noise: Noise) -> Tensor:
        return functional.cross_entropy(nets.net(batch.pixels), batch.label, label_smoothing=self.settings.smooth)

    def data(self, split: str) -> TensorData[Images]:
        if split not in self._splits:
            expected = ", ".join(self._splits)
            raise UserError(f"split {split!r}", f"one of {expected}", "set validation above 0 to hold images out")
        return self._splits[split]

    def inputs(self, batch: Images) -> Tensor:
        return batch.pixels

    def predict(self, nets: Nets, inputs: Tensor, noise: Noise) -> Tensor:
        """(batch, classes), log-probabilities: their mean over members is the members' geometric mean."""
        return functional.log_softmax(nets.net(inputs), dim=-1)

    def evaluate(self, split: str) -> Generator[Images, Tensor, dict[str, float]]:
        """Accuracy is a share; the loss is the mean cross-entropy in nats."""
        data, right, loss = self.data(split), 0, 0.0
        for index in batches(data, _PER_BATCH):
            batch = data.take(index)
            prediction = (yield batch).to(batch.label.device)
            right += int((prediction.argmax(-1) == batch.label).sum())
            loss += float(functional.cross_entropy(prediction, batch.label, reduction="sum"))
        return {"accuracy": right / len(data), "loss": loss / len(data)}

    def perturbable(self, batch: Images) -> Tensor:
        """The pixels."""
        return batch.pixels

    def replace(self, batch: Images, surface: Tensor) -> Images:
        """Other pixels, the same labels."""
        return batch._replace(pixels=surface)

    def attack_loss(self, nets: Nets, batch: Images, noise: Noise) -> Tensor:
        """Cross-entropy of each image."""
        return cross_entropy(nets.net(batch.pixels), batch.label)

    def logits(self, nets: Nets, inputs: Tensor, noise: Noise) -> Tensor:
        """(batch, classes)."""
        return nets.net(inputs)  # type: ignore[no-any-return]

    def labels(self, batch: Images) -> Tensor:
        """(batch,)."""
        return batch.label

    def features(self, nets: Nets, inputs: Tensor) -> Tensor:
        """(batch, features), after the last ReLU."""
        return nets.net(inputs, features=True)  # type: ignore[no-any-return]

    def majority(self, predictions: Tensor) -> Tensor:
        """Log of the share of members that choose each class; of equals the first class wins."""
        shares = functional.one_hot(predictions.argmax(-1), predictions.shape[-1]).to(predictions).mean(0)
        return torch.log(shares.clamp(min=1e-6))

    def head(self) -> tuple[str, str]:
        return "net", "head.weight"
