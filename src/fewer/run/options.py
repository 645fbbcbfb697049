"""From words to a job: the one parser, for the command line, Python and grids.

A word is given under the name it has in `fewer train --help`, as text or as the value itself; whatever is wrong with
it is said here in one line, the same through every door, before anything runs.
"""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import torch

from fewer.attack.hardening.recipe import harden_text
from fewer.core.engines.base import Training
from fewer.core.engines.optimizer import Optimizer
from fewer.core.errors import Notice, UserError
from fewer.core.recipe import Recipe, affordable
from fewer.core.registry import checked_settings, task_class
from fewer.core.settings import from_text, nearest
from fewer.pruning.pruning import Pruning
from fewer.pruning.recipe import automatic, parse_prune
from fewer.run.job import Job
from fewer.run.presets import expanded, pairs_of, text_of
from fewer.sparse.convert import BREAK_EVEN
from fewer.sparse.pattern import has_kernels

__all__ = ["KEYS", "Words", "job_of", "parse_seeds", "tell_if_worse"]

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


def job_of(task: str, words: Mapping[str, Any], *, device: str | None = None) -> Job:
    """The job of a task's name and of `Words`; `optimizer.KEY` and `prune.KEY` add to the text of either.

    `device` is where it will be trained, where the words do not say so: a recipe spends updates by what they cost.
    """
    given = expanded(task, words)
    for key in given:
        if key not in KEYS and key.partition(".")[0] not in _GROUPS:
            raise UserError(f"the word {key!r}", "what `fewer train --help` lists", nearest(key, KEYS))
    settings = pairs_of(given.get("settings", ()))
    kind, auto = task_class(task)[0], automatic(str(given.get("prune", "")))
    recipe = kind.recipe(checked_settings(task, settings))
    pruning = [f"{key}={text_of(given[key]).replace(',', '+')}" for key in ("sparsity", "only", "skip") if key in given]
    prune = parse_prune(str(given.get("prune", "")), [*_more(given, "prune"), *pruning], recipe=recipe.prune)
    training = _training(recipe.recommended(auto=auto), given)
    engine = str(given.get("engine", "auto"))
    if auto and prune is not None and _on_kept_weights(recipe, prune, training, engine, device or training.device):
        engine = "sparse"
        if "steps" not in given:
            training = dataclasses.replace(training, steps=affordable(training.steps, prune.sparsity))
    start_from = given.get("start_from")
    return Job(
        task=task,
        settings=settings,
        training=training,
        prune=prune,
        harden=harden_text(str(given.get("harden", ""))),
        engine=engine,
        seeds=parse_seeds(given.get("seeds", 0)),
        start_from=str(start_from) if start_from else None,
    )


def tell_if_worse(job: Job) -> None:
    """A line where a training prunes in a way that its task knows to be worse; grids compare on purpose, in silence."""
    recipe = task_class(job.task)[0].recipe(checked_settings(job.task, job.settings))
    if job.prune and (line := recipe.warning(job.prune.method, job.prune.when, job.prune.sparsity)):
        warnings.warn(line, Notice, stacklevel=3)


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


def _on_kept_weights(recipe: Recipe, prune: Pruning, training: Training, engine: str, device: str) -> bool:
    """Whether the sparse engine trains it, and an update costs what its kept weights do."""
    if not recipe.sparse or engine not in ("auto", "sparse") or device != "cpu" or training.compile:
        return False
    if prune.only or prune.skip or prune.when in ("gradual", "rounds") or 1 - prune.sparsity > BREAK_EVEN:
        return False  # what is kept of the whole is not known, or not yet
    return training.precision != "bfloat16" and has_kernels(torch.zeros(0))


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
