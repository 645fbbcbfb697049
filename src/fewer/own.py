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
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from fewer.core.data import TensorData, batches
from fewer.core.errors import UserError
from fewer.core.task import Nets, Noise, Objective, Task

__all__ = ["Classification", "Own", "Regression", "Samples"]

_PER_BATCH = 500
_EVERY = 10  # where there is no loader `validation`, every tenth training sample is held out


class Samples(NamedTuple):
    """A batch."""

    x: Tensor  # (batch, ...)
    y: Tensor  # (batch,) integer for classes, (batch, ...) floating for quantities


class Own(Task[Samples]):
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
    def harm(self, nets: Nets, batch: Samples, noise: Noise) -> Tensor:
        """(batch,): the loss of each sample, descended in training and increased by attacks."""

    def networks(self) -> dict[str, nn.Module]:
        return {"net": self.model()}

    def objectives(self) -> tuple[Objective[Samples], ...]:
        return (Objective(("net",), lambda nets, batch, noise: self.harm(nets, batch, noise).mean()),)

    def data(self, split: str) -> TensorData[Samples]:
        if not hasattr(self, "_splits"):
            self._splits = _read(self.loaders())
        if split not in self._splits:
            raise UserError(f"split {split!r}", f"one of {', '.join(self._splits)}", "name it in `loaders`")
        return self._splits[split]

    def inputs(self, batch: Samples) -> Tensor:
        return batch.x

    @property
    def bounds(self) -> tuple[Tensor, Tensor]:
        """What inputs may be at all."""
        x = self.data("train").samples.x
        low, high = (x.amin() if self.low is None else self.low), (x.amax() if self.high is None else self.high)
        return torch.as_tensor(low), torch.as_tensor(high)

    def surface(self, batch: Samples) -> Tensor:
        """An adversary may change every input."""
        return batch.x

    def replace(self, batch: Samples, surface: Tensor) -> Samples:
        """Other inputs, the same targets."""
        return batch._replace(x=surface)


class Classification(Own):
    """Scores of classes from the network, integer labels from the loaders. Predictions are log-probabilities."""

    def harm(self, nets: Nets, batch: Samples, noise: Noise) -> Tensor:
        return functional.cross_entropy(nets.net(batch.x), batch.y, reduction="none")

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


class Regression(Own):
    """Quantities from the network, of the targets' shape; squared error. Predictions are the quantities."""

    def harm(self, nets: Nets, batch: Samples, noise: Noise) -> Tensor:
        error: Tensor = nets.net(batch.x) - batch.y
        return error.square().flatten(1).sum(1)

    def predict(self, nets: Nets, inputs: Tensor, noise: Noise) -> Tensor:
        return nets.net(inputs)  # type: ignore[no-any-return]

    def evaluate(self, split: str) -> Generator[Samples, Tensor, dict[str, float]]:
        """`r2` is the share of the targets' variance that is explained."""
        data, error = self.data(split), 0.0
        spread = data.samples.y.double().sub(data.samples.y.double().mean(0)).square().sum()
        for index in batches(data, _PER_BATCH):
            batch = data.take(index)
            error += float(((yield batch).to(batch.y) - batch.y).double().square().sum())
        return {"r2": 1 - error / max(float(spread), 1e-12), "mean_squared_error": error / data.samples.y.numel()}


def _read(loaders: Mapping[str, Iterable[Any]]) -> dict[str, TensorData[Samples]]:
    """Every split in memory; a loader that shuffles does so in the same way each time."""
    if missing := {"train", "test"} - set(loaders):
        raise UserError(f"loaders {', '.join(loaders) or 'none'}", "train and test", f"add {min(missing)}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        found = {split: _gathered(split, loader) for split, loader in loaders.items()}
    if "validation" not in found:
        samples = found["train"]
        held = torch.arange(len(samples.x)) % _EVERY == _EVERY - 1
        found["validation"] = Samples(*(leaf[held] for leaf in samples))
        found["train"] = Samples(*(leaf[~held] for leaf in samples))
    return {split: TensorData(samples) for split, samples in found.items()}


def _gathered(split: str, loader: Iterable[Any]) -> Samples:
    parts = list(loader)
    for part in parts:
        if not isinstance(part, tuple | list) or len(part) != 2 or not all(isinstance(leaf, Tensor) for leaf in part):
            raise UserError(f"a {split} loader that yields {type(part).__name__}", "pairs (inputs, targets) of tensors")
    if not parts:
        raise UserError(f"a {split} loader that yields nothing", "at least one batch")
    return Samples(torch.cat([x for x, _ in parts]), torch.cat([y for _, y in parts]))
