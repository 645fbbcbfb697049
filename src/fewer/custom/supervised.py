"""Your own model: a torch module and data loaders in, every method of this package out.

    class Mine(Classification):
        def model(self): return MyNetwork()
        def loaders(self): return {"train": DataLoader(...), "test": DataLoader(...)}

In a file `mine.py` this is all that `fewer train mine:Mine`, `fewer pack` and the rest need. Data too large for memory,
several networks, or a loss of another kind: write a `Task` (fewer/core/task.py), as examples/own_task.py does.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from fewer.core.data import TensorData, batches
from fewer.core.engines.entropy import cross_entropy
from fewer.core.errors import UserError
from fewer.core.task import Nets, Noise, Objective, Task
from fewer.core.user_code import called
from fewer.custom.data import Samples, class_labels, quantities, read, tried

__all__ = ["Classification", "Regression", "Samples", "SupervisedTask"]

_PER_BATCH = 500


class SupervisedTask(Task[Samples]):
    """What both kinds share: one network, and samples read once from the loaders into memory."""

    recommended: Mapping[str, Any] = {"steps": 2000, "batch": 128}
    low: float | None = None  # lowest and highest value of an input, which no attack leaves; None: those of the data
    high: float | None = None

    @abstractmethod
    def model(self) -> nn.Module:
        """A fresh network; it answers a batch of inputs."""

    @abstractmethod
    def loaders(self) -> Mapping[str, Iterable[Any]]:
        """`train` and `test`, maybe `validation`: anything that yields (inputs, targets), such as a DataLoader."""

    @abstractmethod
    def attack_loss(self, nets: Nets, batch: Samples, noise: Noise) -> Tensor:
        """(batch,): the loss of each sample, descended in training and increased by attacks."""

    def _targets(self, split: str, y: Tensor) -> Tensor:
        """As losses take them, or a refusal."""
        return y

    def _check(self, splits: Mapping[str, TensorData[Samples]], answer: Tensor) -> None:
        """Refuse targets that do not belong to what the network answers."""

    def networks(self) -> dict[str, nn.Module]:
        return {"net": self.model()}

    def objectives(self) -> tuple[Objective[Samples], ...]:
        return (Objective(("net",), lambda nets, batch, noise: self.attack_loss(nets, batch, noise).mean()),)

    def data(self, split: str) -> TensorData[Samples]:
        if not hasattr(self, "_splits"):
            name = type(self).__name__
            splits = read(called(self.loaders, f"{name}.loaders", "a dict of loaders"), self._targets)
            self._check(splits, tried(self.model, splits["train"].samples.x, name))
            self._splits = splits
        if split not in self._splits:
            raise UserError(f"split {split!r}", f"one of {', '.join(self._splits)}", "name it in `loaders`")
        return self._splits[split]

    def inputs(self, batch: Samples) -> Tensor:
        return batch.x

    @property
    def bounds(self) -> tuple[Tensor, Tensor]:
        """What inputs may be at all."""
        self.data("train")
        inputs = [data.samples.x for data in self._splits.values()]
        low = min(x.amin() for x in inputs) if self.low is None else self.low
        high = max(x.amax() for x in inputs) if self.high is None else self.high
        return torch.as_tensor(low), torch.as_tensor(high)

    def perturbable(self, batch: Samples) -> Tensor:
        """An adversary may change every input."""
        return batch.x

    def replace(self, batch: Samples, surface: Tensor) -> Samples:
        """Other inputs, the same targets."""
        return batch._replace(x=surface)


class Classification(SupervisedTask):
    """Scores of classes from the network, integer labels from the loaders. Predictions are log-probabilities."""

    def _targets(self, split: str, y: Tensor) -> Tensor:
        return class_labels(split, y)

    def _check(self, splits: Mapping[str, TensorData[Samples]], answer: Tensor) -> None:
        if answer.ndim != 2:
            raise UserError(f"a network that answers shape {tuple(answer.shape)}", "(batch, classes)")
        classes = answer.shape[1]
        for split, data in splits.items():
            low, high = int(data.samples.y.min()), int(data.samples.y.max())
            if low < 0 or high >= classes:
                raise UserError(
                    f"{split} labels from {low} to {high}", f"0 to {classes - 1}: the network answers {classes} scores",
                    "number classes from 0, and let the network have one score for each",
                )  # fmt: skip

    def attack_loss(self, nets: Nets, batch: Samples, noise: Noise) -> Tensor:
        return cross_entropy(nets.net(batch.x), batch.y)

    def logits(self, nets: Nets, inputs: Tensor, noise: Noise) -> Tensor:
        """(batch, classes)."""
        return nets.net(inputs)  # type: ignore[no-any-return]

    def labels(self, batch: Samples) -> Tensor:
        """(batch,)."""
        return batch.y

    def predict(self, nets: Nets, inputs: Tensor, noise: Noise) -> Tensor:
        return functional.log_softmax(nets.net(inputs), dim=-1)

    def majority(self, predictions: Tensor) -> Tensor:
        """Log of the share of members that choose each class."""
        shares = functional.one_hot(predictions.argmax(-1), predictions.shape[-1]).to(predictions).mean(0)
        return shares.clamp(min=1e-6).log()

    def evaluate(self, split: str) -> Generator[Samples, Tensor, dict[str, float]]:
        data, right, loss = self.data(split), 0, 0.0
        for index in batches(data, _PER_BATCH):
            batch = data.take(index)
            prediction = (yield batch).to(batch.y.device)
            right += int((prediction.argmax(-1) == batch.y).sum())
            loss += float(functional.nll_loss(prediction, batch.y, reduction="sum"))
        return {"accuracy": right / len(data), "loss": loss / len(data)}


class Regression(SupervisedTask):
    """Quantities from the network, as many a sample as the targets have; squared error."""

    def _targets(self, split: str, y: Tensor) -> Tensor:
        return quantities(split, y)

    def _check(self, splits: Mapping[str, TensorData[Samples]], answer: Tensor) -> None:
        asked = [tuple(data.samples.y.shape[1:]) for data in splits.values()]
        if len(set(asked)) > 1 or answer[0].numel() != splits["train"].samples.y[0].numel():
            shapes = " and ".join(str(shape) for shape in dict.fromkeys(asked))
            raise UserError(
                f"a network that answers {tuple(answer.shape[1:])} to targets of shape {shapes} a sample",
                "as many quantities as targets",
            )

    def attack_loss(self, nets: Nets, batch: Samples, noise: Noise) -> Tensor:
        error: Tensor = nets.net(batch.x).reshape(batch.y.shape) - batch.y
        return error.square().reshape(error.shape[0], -1).sum(1)

    def predict(self, nets: Nets, inputs: Tensor, noise: Noise) -> Tensor:
        return nets.net(inputs)  # type: ignore[no-any-return]

    def evaluate(self, split: str) -> Generator[Samples, Tensor, dict[str, float]]:
        """`r2` is the share of the targets' variance that is explained."""
        data, error = self.data(split), 0.0
        spread = data.samples.y.double().sub(data.samples.y.double().mean(0)).square().sum()
        for index in batches(data, _PER_BATCH):
            batch = data.take(index)
            error += float(((yield batch).to(batch.y).reshape(batch.y.shape) - batch.y).double().square().sum())
        return {"r2": 1 - error / max(float(spread), 1e-12), "mean_squared_error": error / data.samples.y.numel()}
