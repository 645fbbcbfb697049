"""What is wrong with a user's own data, network or module is said in one line before anything is trained."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from fewer.core.engines.base import Training
from fewer.core.engines.evaluate import evaluate, predictor
from fewer.core.engines.loop import fit
from fewer.core.engines.plain import Plain
from fewer.core.errors import UserError
from fewer.core.registry import make
from fewer.custom.supervised import Classification, Regression

torch.set_num_threads(1)
X = torch.randn(40, 4, generator=torch.Generator().manual_seed(1))
Y = torch.arange(40) % 3


class SupervisedTask(Classification):
    """Three classes; a test replaces one part."""

    parts: Mapping[str, tuple[Any, Any]] = {}
    answer: Callable[[], Any] = staticmethod(lambda: nn.Linear(4, 3))

    def model(self) -> nn.Module:
        return self.answer()  # type: ignore[no-any-return]

    def loaders(self) -> Mapping[str, Iterable[Any]]:
        pairs = {"train": (X, Y), "test": (X, Y), **self.parts}
        return {split: [pair] for split, pair in pairs.items()}


def at(x: Tensor, row: int, value: float) -> Tensor:
    return torch.where(torch.arange(len(x)).reshape(-1, *[1] * (x.ndim - 1)) == row, torch.tensor(value).to(x), x)


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "labels from one": ({"train": (X, Y + 1)}, "train labels from 1 to 3; expected 0 to 2"),
    "a label that torch would ignore": ({"test": (X, at(Y, 5, -100))}, "test labels from -100 to 2"),
    "a label without a score": ({"test": (X, at(Y, 5, 3))}, "test labels from 0 to 3"),
    "labels that are quantities": ({"train": (X, Y.float())}, "labels of type float32"),
    "one-hot labels": ({"train": (X, nn.functional.one_hot(Y))}, "argmax"),
    "labels in a column": ({"train": (X, Y[:, None])}, "reshape"),
    "one class": ({"train": (X, 0 * Y)}, "all 0"),
    "NaN to train with": ({"train": (at(X, 7, torch.nan), Y)}, "NaN or infinite, first in sample 7"),
    "infinity to test with": ({"test": (at(X, 3, torch.inf), Y)}, "test inputs that are NaN or infinite"),
    "a target less": ({"train": (X, Y[1:])}, "40 inputs and 39 targets"),
    "no sample": ({"test": (X[:0], Y[:0])}, "test loader without a sample"),
    "words": ({"train": (X, ["a"] * 40)}, "targets are list"),
    "arrays of words": ({"train": (X, np.array(["a"] * 40))}, "targets are <U1 array"),
    "a misspelt split": ({"val": (X, Y)}, "call it validation"),
    "inputs too wide": ({"train": (torch.cat([X, X], 1), Y)}, "which raised RuntimeError"),
}  # fmt: skip


@pytest.mark.parametrize("case", FAULTS, ids=lambda case: case.replace(" ", "-"))
def test_wrong_data_is_one_line(case: str) -> None:
    parts, said = FAULTS[case]
    task = SupervisedTask()
    task.parts = parts
    with pytest.raises(UserError) as caught:
        task.data("train")
    assert said in str(caught.value) and "\n" not in str(caught.value)


def raising() -> nn.Module:
    raise KeyError("width")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda: None, "returns NoneType"),
        (lambda: torch.sin, "expected a torch.nn.Module"),
        (lambda: nn.Linear(5, 3), "inputs of shape (2, 4) and type float32, which raised RuntimeError"),
        (lambda: nn.Sequential(nn.Linear(4, 3), nn.Unflatten(1, (3, 1))), "answers shape (2, 3, 1)"),
        (raising, "KeyError: 'width' (test_own_faults.py, line"),
    ],
)
def test_a_network_that_does_not_fit_is_one_line(answer: Callable[[], Any], said: str) -> None:
    task = SupervisedTask()
    task.answer = answer  # type: ignore[method-assign, assignment]
    with pytest.raises(UserError) as caught:
        task.data("train")
    assert said in str(caught.value)


def test_arrays_of_numpy_and_small_integers_are_understood_and_few_samples_still_validate() -> None:
    task = SupervisedTask()
    task.parts = {"train": (X[:5].double().numpy(), Y[:5].to(torch.uint8).numpy()), "test": (X, Y.int())}
    assert [len(task.data(split)) for split in ("train", "validation", "test")] == [4, 1, 40]
    engine = Plain(task, Training(steps=3, batch=4), 0)
    fit(engine)
    assert 0 <= evaluate(task, predictor(task, engine.state.modules_of(0)))["accuracy"] <= 1


def test_bounds_hold_every_split() -> None:
    task = SupervisedTask()
    task.parts = {"test": (at(X, 0, 9.0), Y)}
    assert float(task.bounds[1]) == 9.0


class Line(Regression):
    column, flat = False, False

    def model(self) -> nn.Module:
        return nn.Sequential(nn.Linear(4, 1), *([nn.Flatten(0)] if self.flat else []))

    def loaders(self) -> Mapping[str, Iterable[Any]]:
        y = 2 * X[:, :1] - X[:, 1:2]
        return {split: [(X, y if self.column else y[:, 0])] for split in ("train", "test", "validation")}


def test_a_single_quantity_may_be_a_number_or_a_column_on_either_side() -> None:
    found = []
    for column, flat in ((True, False), (False, False), (False, True), (True, True)):
        task = Line()
        task.column, task.flat = column, flat
        engine = Plain(task, Training(steps=60, batch=20, precision="float64"), 0)
        fit(engine)
        found.append(evaluate(task, predictor(task, engine.state.modules_of(0))))
    assert all(metrics == pytest.approx(found[0]) for metrics in found)
    task = Line()
    task.model = lambda: nn.Linear(4, 2)  # type: ignore[method-assign]
    with pytest.raises(UserError, match="as many quantities as targets"):
        task.data("train")


MODULES = {
    "def broken(:": "SyntaxError",
    "raise ValueError('boom')": "ValueError: boom (",
    "import sys; sys.exit(0)": "SystemExit: 0",
    "import no_such_package_here": "needs no_such_package_here",
    "x = 1": "it has no task",
    "from fewer.custom.supervised import Classification\nclass Mine(Classification):\n"
    "    def model(self): pass": "without loaders",
    "from fewer.custom.supervised import SupervisedTask\nclass Mine(SupervisedTask):\n"
    "    def __init__(self, path): pass\n"
    "    def model(self): pass\n    def loaders(self): pass\n    def attack_loss(self): pass\n"
    "    def predict(self): pass\n"
    "    def evaluate(self): pass": "missing 1 required positional argument",
}


@pytest.mark.parametrize("number", range(len(MODULES)))
def test_a_module_with_a_fault_is_one_line(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content, said = list(MODULES.items())[number]
    (tmp_path / f"faulty{number}.py").write_text(content + "\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    with pytest.raises(UserError) as caught:
        make(f"faulty{number}:Mine")
    assert said in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "said"), [(":", "module:Class"), ("mine:", "module:Class"), ("mine.py:A", "write mine:A")]
)
def test_a_name_that_cannot_be_a_task_is_one_line(name: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        make(name)
