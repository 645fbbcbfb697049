"""From words to a job: the one parser, for the command line, Python and grids.

A word is given under the name it has in `fewer train --help`, as text or as the value itself; whatever is wrong with
it is said here in one line, the same through every door, before anything runs.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from fewer.attack.hardening.recipe import harden_text
from fewer.core.engines.base import Training
from fewer.core.engines.optimizer import Optimizer
from fewer.core.errors import UserError
from fewer.core.registry import checked_settings, task_class
from fewer.core.settings import from_text, nearest
from fewer.pruning.recipe import parse_prune
from fewer.run.job import Job
from fewer.run.presets import expanded, pairs_of, text_of

__all__ = ["KEYS", "Words", "job_of", "parse_seeds"]

_TRAINING = ("steps", "batch", "precision", "device", "validate_every", "patience", "compile")
_SEEDS = "whole numbers such as 0-4 or 0,3,7"


class Words(TypedDict, total=False):
    """What may be said of a training beside its task; what is left out, or None, is the task's or the job's own."""

    preset: str | None  # words that the task's system has under that name; those given beside it win
    settings: Mapping[str, object] | Sequence[str] | None  # of the task: {"network": "cnn"} or ["network=cnn"]
    steps: int | str | None
    batch: int | str | None
    lr: float | str | None
    optimizer: str | None  # adam,lr=1e-3
    precision: str | None
    device: str | None
    validate_every: int | str | None
    patience: int | str | None
    compile: bool | str | None
    prune: str | None  # lamp,when=gradual
    sparsity: float | str | None
    only: str | Sequence[str] | None  # encoder.*
    skip: str | Sequence[str] | None  # head
    harden: str | None  # pgd:0.3
    engine: str | None
    seeds: int | str | Sequence[int] | None  # 0-4
    start_from: str | os.PathLike[str] | None


KEYS = ("task", *Words.__annotations__)
_GROUPS = ("optimizer", "prune")  # whose settings may also be words of their own, such as optimizer.lr


def job_of(task: str, words: Mapping[str, Any]) -> Job:
    """The job of a task's name and of `Words`; `optimizer.KEY` and `prune.KEY` add to the text of either."""
    given = expanded(task, words)
    for key in given:
        if key not in KEYS and key.partition(".")[0] not in _GROUPS:
            raise UserError(f"the word {key!r}", "what `fewer train --help` lists", nearest(key, KEYS))
    settings = pairs_of(given.get("settings", ()))
    checked_settings(task, settings)
    pruning = [f"{key}={text_of(given[key]).replace(',', '+')}" for key in ("sparsity", "only", "skip") if key in given]
    start_from = given.get("start_from")
    return Job(
        task=task,
        settings=settings,
        training=_training(task_class(task)[0].recommended, given),
        prune=parse_prune(str(given.get("prune", "")), [*_more(given, "prune"), *pruning]),
        harden=harden_text(str(given.get("harden", ""))),
        engine=str(given.get("engine", "auto")),
        seeds=parse_seeds(given.get("seeds", 0)),
        start_from=str(start_from) if start_from else None,
    )


def parse_seeds(given: int | str | Sequence[int]) -> tuple[int, ...]:
    """Seeds from a number, numbers, or a text such as `0-4` or `0,3,7`.

    >>> parse_seeds("0-2,7")
    (0, 1, 2, 7)
    """
    found: list[int] = []
    try:
        for part in text_of(given).split(","):
            begin, dash, end = part.partition("-")
            found += range(int(begin), int(end) + 1) if dash else [int(begin)]
    except ValueError:
        raise UserError(f"seeds {text_of(given) or 'none'}", _SEEDS) from None
    if not found:
        raise UserError(f"seeds {given}, which are none", _SEEDS)
    return tuple(found)


def _more(given: Mapping[str, Any], group: str) -> list[str]:
    return [f"{key.partition('.')[2]}={text_of(value)}" for key, value in given.items() if key.startswith(f"{group}.")]


def _training(recommended: Mapping[str, Any], given: Mapping[str, Any]) -> Training:
    """What the task recommends, changed by the words."""
    start = Training(**recommended)
    kind, *rest = str(given["optimizer"]).split(",") if "optimizer" in given else ("",)
    rate = [f"lr={given['lr']}"] if "lr" in given else []
    pairs = [*([f"kind={kind}"] if kind else []), *rest, *_more(given, "optimizer"), *rate]
    if pairs:
        start = dataclasses.replace(start, optimizer=from_text(Optimizer, pairs, start.optimizer))
    changes = {key: text_of(given[key]) for key in _TRAINING if key in given}
    return from_text(Training, changes, start, cure="see `fewer train --help`")
