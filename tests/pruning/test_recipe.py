"""Pruning in words: the same ones on the command line, in Python and in a grid."""

from __future__ import annotations

from pathlib import Path

import pytest

import fewer
from fewer.core.errors import UserError
from fewer.pruning.pruning import Pruning
from fewer.pruning.recipe import parse_prune


def test_lottery_is_magnitude_in_rounds_and_dense_is_no_pruning() -> None:
    assert parse_prune("lottery,rate=0.5", ["sparsity=0.75"]) == Pruning("magnitude", 0.75, when="rounds", rate=0.5)
    assert parse_prune("dense") is parse_prune("none") is parse_prune("") is parse_prune(None) is None


@pytest.mark.parametrize(
    ("text", "more", "said"),
    [
        ("lotery", (), "did you mean 'lottery'"),
        ("snip,sparsity=0.5", ("sparsity=0.9",), "one sparsity"),
        ("lottery,when=gradual", (), "one when"),
        ("dense,scope=layer", (), "name a method"),
        ("dense", ("sparsity=0.5",), "a method to prune by"),
    ],
)
def test_words_that_say_two_things_or_none_are_one_line(text: str, more: tuple[str, ...], said: str) -> None:
    with pytest.raises(UserError, match=said):
        parse_prune(text, more)


def test_a_lottery_ticket_is_trained_from_python(tmp_path: Path) -> None:
    run = fewer.train("tests.toys:Blobs", tmp_path / "run", prune="lottery,sparsity=0.5", steps=3)
    assert run.job.prune is not None and run.job.prune.when == "rounds"
    assert sum(int(kept.sum()) for kept in run.mask["net"].values()) == 28  # of 4 * 8 + 8 * 3
