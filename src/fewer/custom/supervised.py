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
from fewer.core.errors import UserError
from fewer.core.maths.entropy import cross_entropy
from fewer.core.task import Nets, Noise, Objective, Task
from fewer.core.user_code import called
from fewer.custom.calling import Shifted, adapted_, leaves
from fewer.custom.data import Samples, class_labels, quantities, read, tried

__all__ = ["Classification", "Regression", "Samples", "SupervisedTask"]

_PER_BATCH = 500
_FAR = 1e6  # beyond what an embedding's vectors are


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
        return {"net": adapted_(self.model(), self.data("train").samples.x, self._table)}

    def objectives(self) -> tuple[Objective[Samples], ...]:
        return (Objective(("net",), lambda nets, batch, noise: self.attack_loss(nets, batch, noise).mean()),)

    def splits(self) -> Mapping[str, TensorData[Samples]]:
        """Every split, from memory after the first time."""
        if not hasattr(self, "_splits"):
            name = type(self).__name__
            splits = read(called(self.loaders, f"{name}.loaders", "a dict of loaders"), self._targets)
            answer, self._table = tried(self.model, splits["train"].samples.x, name)
            self._check(splits, answer)
            self._splits = splits
        return self._splits

    def data(self, split: str) -> TensorData[Samples]:
        splits = self.splits()
        if split not in splits:
            raise UserError(f"split {split!r}", f"one of {', '.join(splits)}", "name it in `loaders`")
        return splits[split]

    def inputs(self, batch: Samples) -> Any:
        return batch.x

    def _answer(self, nets: Nets, inputs: Any) -> Tensor:
        """What the network says to inputs as they are in a batch."""
        found: Tensor = nets.net(*leaves(inputs))
        return found

    @property
    def bounds(self) -> tuple[Tensor, Tensor]:
        """What inputs may be at all; where a table's answer is moved, anything."""
        inputs = [self.perturbable(data.samples) for data in self.splits().values()]
        if self._table is not None:
            return torch.tensor(-_FAR), torch.tensor(_FAR)
        low = min(x.amin() for x in inputs) if self.low is None else self.low
        high = max(x.amax() for x in inputs) if self.high is None else self.high
        return torch.as_tensor(low), torch.as_tensor(high)

    def perturbable(self, batch: Samples) -> Tensor:
        """An adversary may change the first input that is no whole number, or what a table made of whole numbers."""
        if isinstance(batch.x, Shifted):
            return batch.x.shift
        if self._table is not None:
            first = leaves(batch.x)[0]
            return torch.zeros(len(first), *self._table.shape, device=first.device)
        return batch.x if isinstance(batch.x, Tensor) else batch.x[_moved(batch.x)]  # type: ignore[no-any-return]

    def replace(self, batch: Samples, surface: Tensor) -> Samples:
        """Other inputs, the same targets."""
        if self._table is not None:
            return batch._replace(x=Shifted(batch.x.x if isinstance(batch.x, Shifted) else batch.x, surface))
        whole = isinstance(batch.x, Tensor)
        return batch._replace(x=surface if whole else {**batch.x, _moved(batch.x): surface})


def _moved(inputs: Mapping[str, Tensor]) -> str:
    """Which of several inputs an adversary moves."""
    return next((name for name, leaf in inputs.items() if leaf.is_floating_point()), next(iter(inputs)))


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
        return cross_entropy(self._answer(nets, batch.x), batch.y)

    def logits(self, nets: Nets, inputs: Any, noise: Noise) -> Tensor:
        """(batch, classes)."""
        return self._answer(nets, inputs)

    def labels(self, batch: Samples) -> Tensor:
        """(batch,)."""
        return batch.y

    def predict(self, nets: Nets, inputs: Any, noise: Noise) -> Tensor:
        return functional.log_softmax(self._answer(nets, inputs), dim=-1)

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
        error: Tensor = self._answer(nets, batch.x).reshape(batch.y.shape) - batch.y
        return error.square().reshape(error.shape[0], -1).sum(1)

    def predict(self, nets: Nets, inputs: Any, noise: Noise) -> Tensor:
        return self._answer(nets, inputs)

    def evaluate(self, split: str) -> Generator[Samples, Tensor, dict[str, float]]:
        """`r2` is the share of the targets' variance that is explained."""
        data, error = self.data(split), 0.0
        spread = data.samples.y.double().sub(data.samples.y.double().mean(0)).square().sum()
        for index in batches(data, _PER_BATCH):
            batch = data.take(index)
            error += float(((yield batch).to(batch.y).reshape(batch.y.shape) - batch.y).double().square().sum())
        return {"r2": 1 - error / max(float(spread), 1e-12), "mean_squared_error": error / data.samples.y.numel()}
