"""Estimators of scikit-learn: a small network, pruned while it trains, with `fit`, `predict` and `score`.

`SparseClassifier(sparsity=0.9).fit(X, y)` goes wherever an estimator does: pipelines, grids, cross-validation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from fewer.core.data import TensorData
from fewer.core.engines.base import Engine, Training
from fewer.core.engines.loop import fit
from fewer.core.engines.optimizer import Optimizer
from fewer.core.engines.plain import Plain
from fewer.core.mask import kept, total
from fewer.custom.data import Samples
from fewer.custom.supervised import Classification, Regression
from fewer.pruning.pruning import Pruning, prune_
from fewer.pruning.recipe import parse_prune
from fewer.pruning.schedules.gradual import events_for

__all__ = ["SparseClassifier", "SparseRegressor"]


class _Rows:
    """A task of rows that are in memory, all of them for training."""

    def __init__(self, x: Tensor, y: Tensor, widths: tuple[int, ...]) -> None:
        self.rows, self.widths = TensorData(Samples(x, y)), widths

    def model(self) -> nn.Module:
        """Layers of these widths with ReLUs between."""
        layers: list[nn.Module] = []
        for before, after in zip(self.widths, self.widths[1:]):
            layers += [nn.Linear(before, after), nn.ReLU()]
        return nn.Sequential(*layers[:-1])

    def loaders(self) -> Mapping[str, Any]:
        raise NotImplementedError("rows are in memory")

    def splits(self) -> Mapping[str, TensorData[Samples]]:
        """The same for every split: an estimator is judged by whoever has other rows."""
        return {"train": self.rows}


class _RowsOfClasses(_Rows, Classification):
    _table = None


class _RowsOfQuantities(_Rows, Regression):
    _table = None


class _Sparse(BaseEstimator):
    """What both share: settings as scikit-learn wants them, and training."""

    _kind: type[_Rows]

    def __init__(
        self,
        hidden: tuple[int, ...] = (100,),
        sparsity: float = 0.9,
        prune: str = "lamp,when=gradual,connected=yes,input_quota=1",
        steps: int = 1000,
        batch: int = 64,
        lr: float = 1e-2,
        random_state: int | None = None,
    ) -> None:
        self.hidden, self.sparsity, self.prune = hidden, sparsity, prune
        self.steps, self.batch, self.lr, self.random_state = steps, batch, lr, random_state

    def _train(self, X: np.ndarray, y: Tensor, answers: int) -> None:
        self._mean = X.mean(0)
        spread = X.std(0)
        self._spread = np.where(spread > 0, spread, 1.0)
        x = self._standard(X)
        task: Any = self._kind(x, y, (x.shape[1], *self.hidden, answers))
        training = Training(self.steps, self.batch, Optimizer(lr=self.lr, decay_from=0.5))
        engine: Engine = Plain(task, training, int(np.random.RandomState(self.random_state).randint(2**31)))
        pruning = self._pruning(len(x))
        if pruning is not None and pruning.when != "gradual":
            prune_(engine, pruning)
        fit(engine, events=events_for([pruning], self.steps) if pruning is not None else ())
        self.network_ = engine.state.modules_of(0)["net"].eval()
        mask = engine.state.mask_of(0)
        self.density_ = kept(mask) / total(mask) if mask else 1.0

    def _pruning(self, samples: int) -> Pruning | None:
        words = {"sparsity": self.sparsity, "samples": min(100, samples), "every": max(1, self.steps // 10)}
        more = [f"{key}={value}" for key, value in words.items() if f"{key}=" not in self.prune]
        return parse_prune(self.prune, more)

    def _standard(self, X: np.ndarray) -> Tensor:
        return torch.from_numpy(((X - self._mean) / self._spread).astype(np.float32))

    def _answers(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        with torch.no_grad():
            found: np.ndarray = self.network_(self._standard(X)).double().numpy()
        return found


class SparseClassifier(ClassifierMixin, _Sparse):  # type: ignore[misc]
    """A classifier of which `sparsity` of the weights are zero; `density_` is the share that was kept.

    `prune` is a method with its settings, as of `fewer train --prune`, or dense; `hidden` the widths of its layers.
    """

    _kind = _RowsOfClasses

    def fit(self, X: Any, y: Any) -> SparseClassifier:
        """Train on rows and their classes, which may be called anything."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"Classifier can't train when only one class is present: {self.classes_[0]!r}")
        self._train(X, torch.from_numpy(labels.astype(np.int64)), len(self.classes_))
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """(rows, classes)."""
        scores = self._answers(X)
        shares = np.exp(scores - scores.max(1, keepdims=True))
        found: np.ndarray = shares / shares.sum(1, keepdims=True)
        return found

    def predict(self, X: Any) -> np.ndarray:
        """The likeliest class of each row."""
        best = self.predict_proba(X).argmax(1)
        found: np.ndarray = self.classes_[best]
        return found


class SparseRegressor(RegressorMixin, _Sparse):  # type: ignore[misc]
    """As `SparseClassifier`, for one quantity a row, or several."""

    _kind = _RowsOfQuantities

    def fit(self, X: Any, y: Any) -> SparseRegressor:
        """Train on rows and their quantities."""
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        y = np.asarray(y, dtype=np.float64)
        self._shape = y.shape[1:]
        self._centre, scale = y.mean(0), y.std(0)
        self._scale = np.where(scale > 0, scale, 1.0)
        targets = torch.from_numpy(((y - self._centre) / self._scale).astype(np.float32).reshape(len(y), -1))
        self._train(X, targets, targets.shape[1])
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The quantity, or quantities, of each row."""
        answers = self._answers(X)
        found: np.ndarray = answers.reshape(len(answers), *self._shape) * self._scale + self._centre
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
