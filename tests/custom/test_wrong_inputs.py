"""Forty wrong inputs, one line each: what was given, what was expected, what to do; exit code 2 and no traceback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import fewer
from fewer.cli import main
from fewer.core.errors import UserError

torch.set_num_threads(1)
X = torch.randn(40, 4, generator=torch.Generator().manual_seed(1))
Y = torch.arange(40) % 3
WORDS = torch.randint(0, 9, (40, 5), generator=torch.Generator().manual_seed(1))


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


def reader() -> nn.Module:
    return nn.Sequential(nn.Embedding(9, 4), nn.Flatten(), nn.Linear(20, 3))


class Broken(Dataset[Any]):
    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> Any:
        raise OSError("no such image")


def ragged() -> Iterator[Any]:
    yield X[:10], Y[:10]
    yield X[:10, :3], Y[:10]


def other_names() -> Iterator[Any]:
    yield {"a": X, "labels": Y}
    yield {"b": X, "labels": Y}


# network, data, words of `train`; what the line says
GIVEN: dict[str, tuple[Any, Any, dict[str, Any], str]] = {
    "no data": (net(), None, {}, "a network without data"),
    "no network": (42, (X, Y), {}, "a model of type int"),
    "a class of a network": (nn.Linear, (X, Y), {}, "data for a task"),
    "inputs alone": (net(), X, {}, "data of type Tensor"),
    "a name": (net(), "data.csv", {}, "data of type str"),
    "empty arrays": (net(), (X[:0], Y[:0]), {}, "without a sample"),
    "an empty loader": (net(), [], {}, "yields nothing"),
    "two samples": (net(), (X[:2], Y[:2]), {}, "2 samples; expected 3 or more"),
    "an empty dict": (net(), {}, {}, "a train batch of nothing"),
    "a dict without labels": (net(), {"x": X}, {}, "inputs by name, and their `labels`"),
    "a dict of labels alone": (net(), {"labels": Y}, {}, "inputs by name, and their `labels`"),
    "a dict with names that the network does not take": (net(), {"pixels": X, "labels": Y}, {}, "unexpected keyword"),
    "a dict whose lengths differ": (net(), {"input": X[:9], "labels": Y}, {}, "9 inputs and 40 targets"),
    "a dict of words": (net(), {"input": ["a"] * 40, "labels": Y}, {}, "inputs input are list"),
    "batches of other names": (net(), other_names(), {}, "batches have different inputs"),
    "splits of other names": (
        net(), {"train": {"input": X, "labels": Y}, "test": (X, Y)}, {}, "test inputs in one tensor; expected those"
    ),
    "batches of other shapes": (net(), ragged(), {}, "which raised RuntimeError"),
    "a data set that raises": (net(), DataLoader(Broken(), 8), {}, "OSError: no such image"),
    "tokens beyond the table": (reader(), (WORDS + 9, Y), {}, "which raised IndexError"),
    "tokens as floats": (reader(), (WORDS.float(), Y), {}, "type float32, which raised"),
    "numbers for tokens": (net(), (WORDS[:, :4], Y), {}, "type int64, which raised RuntimeError"),
    "inputs too wide": (net(), (torch.cat([X, X], 1), Y), {}, "inputs of shape (2, 8)"),
    "a sample without its axis": (net(), (torch.tensor(1.0), Y), {}, "inputs are Tensor"),
    "images for rows": (net(), (X.reshape(40, 1, 2, 2), Y), {}, "inputs of shape (2, 1, 2, 2)"),
    "labels beyond the scores": (net(), (X, Y + 1), {}, "the network answers 3 scores"),
    "labels in a column": (net(), (X, Y[:, None]), {}, "reshape"),
    "one class": (net(), (X, Y * 0), {}, "two classes or more"),
    "NaN": (net(), (torch.where(X > 2, torch.nan, X), Y), {}, "NaN or infinite"),
    "objects": (net(), (np.array([object()] * 40), Y.numpy()), {}, "object array"),
    "quantities that do not fit": (net(), (X, X[:, :2]), {}, "as many quantities as targets"),
    "lazy layers": (nn.Sequential(nn.LazyLinear(3)), (X, Y), {}, "call the network once"),
    "more than there is": (net(), (X, Y), {"prune": "lamp", "sparsity": 1.0}, "sparsity 1.0"),
    "a pattern of nothing": (net(), (X, Y), {"prune": "lamp", "only": "encoder.*"}, "no parameter called encoder"),
    "nothing to prune": (nn.BatchNorm1d(4), (X, Y), {"prune": "lamp"}, "pruning may touch"),
    "settings for a network": (net(), (X, Y), {"settings": {"width": 3}}, "settings for a network"),
    "a misspelt word": (net(), (X, Y), {"leraning_rate": 1}, "the word 'leraning_rate'"),
    "a rate below zero": (net(), (X, Y), {"lr": -1}, "lr"),
    "a misspelt split": (net(), {"train": (X, Y), "val": (X, Y), "test": (X, Y)}, {}, "call it validation"),
    "no test split": (net(), {"train": (X, Y)}, {}, "add test"),
    "an attack on what is no table": (
        nn.Sequential(nn.Flatten()), (WORDS[:, :3], Y), {"harden": "pgd:0.1"}, "floating-point inputs"
    ),
}  # fmt: skip


def test_there_are_forty() -> None:
    assert len(GIVEN) == 40


@pytest.mark.parametrize("case", GIVEN, ids=lambda case: case.replace(" ", "-"))
def test_what_is_wrong_is_one_line_before_anything_is_trained(case: str, tmp_path: Path) -> None:
    model, data, words, said = GIVEN[case]
    with pytest.raises(UserError) as caught:
        fewer.train(model, tmp_path / "run", data=data, **{"steps": 2, **words})
    assert said in str(caught.value) and "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["train", "nothing"], "there are vision"),
        (["train", "vision", "--sparsity", "0.9"], "without a method"),
        (["train", "vision", "--prune", "lamp", "--only", "nothing"], "no parameter called nothing"),
        (["train", "vision", "--lr", "fast"], "lr=fast"),
    ],
)
def test_the_command_line_says_it_as_text_and_as_json(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for more in ([], ["--json"]):
        assert main([*words, "--out", str(tmp_path / "run"), *more]) == 2
        told = capsys.readouterr().err
        assert told.count("\n") == 1 and said in told and told.startswith("{" if more else "fewer:")
