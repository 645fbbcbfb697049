"""A class for every place of a sample: the words of a sentence, the pixels of an image."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

from torch import Tensor
from torch.nn import functional

from fewer.core.data import TensorData, batches
from fewer.core.errors import UserError
from fewer.core.task import Nets, Noise
from fewer.custom.data import Samples
from fewer.custom.supervised import SupervisedTask

__all__ = ["IGNORED", "Places", "class_axis"]

IGNORED = -100  # torch's and Hugging Face's label of a place that does not count
_PER_BATCH = 500


def class_axis(answer: Tensor, y: Tensor) -> int | None:
    """Which axis of an answer has the scores: the last, or behind the samples as torch has it; None: there is none.

    Where both would fit, the last of (samples, words, classes), else the first of (samples, classes, rows, columns).
    """
    if answer.ndim != y.ndim + 1 or y.ndim < 2:
        return None
    fits = {-1: answer.shape[1:-1] == y.shape[1:], 1: answer.shape[2:] == y.shape[1:]}
    order = (-1, 1) if y.ndim == 2 else (1, -1)
    return next((axis for axis in order if fits[axis]), None)


class Places(SupervisedTask):
    """Scores of classes for every place from the network, integer labels (samples, places...) from the loaders.

    Predictions are log-probabilities in the shape of the network's answer. Places labelled -100 do not count.
    """

    _axis = -1

    def _targets(self, split: str, y: Tensor) -> Tensor:
        return y.long()

    def _check(self, splits: Mapping[str, TensorData[Samples]], answer: Tensor) -> None:
        for split, data in splits.items():
            y = data.samples.y
            axis = class_axis(answer, y[: len(answer)])
            if axis is None:
                given = f"a network that answers {tuple(answer.shape[1:])} to {split} labels of {tuple(y.shape[1:])}"
                raise UserError(f"{given} a sample", "scores of classes for every label")
            self._axis, known = axis, y[y != IGNORED]
            classes = answer.shape[axis]
            if not len(known) or int(known.min()) < 0 or int(known.max()) >= classes:
                told = f"from {int(known.min())} to {int(known.max())}" if len(known) else f"that are all {IGNORED}"
                raise UserError(f"{split} labels {told}", f"0 to {classes - 1}, or {IGNORED} for what does not count")

    def attack_loss(self, nets: Nets, batch: Samples, noise: Noise) -> Tensor:
        found, counts = self._of_truth(self.predict(nets, batch.x, noise), batch.y)
        return -found.flatten(1).sum(1) / counts.flatten(1).sum(1).clamp(min=1)

    def _of_truth(self, prediction: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities of the labels, 0 where none counts, and which do."""
        counts = y != IGNORED
        found = prediction.movedim(self._axis, -1).gather(-1, y.clamp(min=0).unsqueeze(-1)).squeeze(-1)
        return found * counts, counts

    def predict(self, nets: Nets, inputs: Any, noise: Noise) -> Tensor:
        return functional.log_softmax(self._answer(nets, inputs), dim=self._axis)

    def evaluate(self, split: str) -> Generator[Samples, Tensor, dict[str, float]]:
        """Over places that count."""
        data, right, loss, places = self.data(split), 0, 0.0, 0
        for index in batches(data, _PER_BATCH):
            batch = data.take(index)
            prediction = (yield batch).to(batch.y.device)
            found, counts = self._of_truth(prediction, batch.y)
            right += int(((prediction.argmax(self._axis) == batch.y) & counts).sum())
            loss, places = loss - float(found.double().sum()), places + int(counts.sum())
        return {"accuracy": right / places, "loss": loss / places}
