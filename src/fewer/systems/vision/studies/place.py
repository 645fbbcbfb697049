"""Where a study reads its images, trains, and keeps its pieces."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from fewer.core.errors import UserError
from fewer.core.files.run_folder import Folder
from fewer.pruning.pruning import Pruning
from fewer.studies.order import Log, Order
from fewer.systems.vision.studies.recipe import Recipe, label
from fewer.systems.vision.task.task import Settings, Vision

__all__ = ["Place", "data_in_words", "expect_pieces", "images", "where"]

QUICK_LIMIT = 500  # test images that face an attack


@dataclass(frozen=True)
class Place:
    """Where the pieces of a study are trained and kept."""

    out: Path
    source: str = "digits"  # what Vision reads; empty: nothing may be trained, only found
    device: str = "cpu"
    limit: int | None = None  # test images that face an attack; None: all
    log: Log = print

    def folder(self, piece: Recipe, pruning: Pruning, seed: int) -> Folder:
        return Folder(self.out / "pieces" / piece.name / f"{label(pruning)}-seed{seed}")

    def unfinished(self, piece: Recipe, replicas: Sequence[tuple[Pruning, int]]) -> Folder:
        """Where the training of a cohort is saved on its way."""
        names = " ".join(f"{label(pruning)}-seed{seed}" for pruning, seed in replicas)
        return Folder(self.out / "unfinished" / f"{piece.name}-{hashlib.sha256(names.encode()).hexdigest()[:12]}")

    def task(self, network: str, **settings: Any) -> Vision:
        return _task(Settings(**{"network": network, "data": self.source, "validation": 0.0, **settings}))

    def images_of(self, piece: Recipe) -> Vision:
        """The task of a piece, not hardened."""
        return self.task(piece.network, validation=piece.validation, contrast=piece.contrast, classes=piece.classes)


@functools.lru_cache(maxsize=2)
def _task(settings: Settings) -> Vision:
    """Reading 70,000 images takes seconds, and every cohort of a piece wants the same ones."""
    return Vision(settings)


def images(order: Order) -> str:
    """What a study reads: the user's own, the embedded digits when quick, else the folder that FEWER_MNIST names."""
    if order.data or order.scale == "quick":
        return order.data or "digits"
    folder = os.environ.get("FEWER_MNIST", "")
    if not Path(folder, "train-images-idx3-ubyte").exists() and not Path(folder, "train-images-idx3-ubyte.gz").exists():
        given = f"FEWER_MNIST={folder}" if folder else "no --data and no FEWER_MNIST in the environment"
        raise UserError(
            given, "the folder with MNIST's four idx files", "`fewer data vision --out FOLDER` fetches them"
        )
    return folder


def data_in_words(order: Order) -> str:
    """What the numbers are about, for titles and settings; where the files lie is nobody's business."""
    if order.data:
        return "own images"
    return "12,000 embedded MNIST digits" if order.scale == "quick" else "MNIST"


def where(order: Order) -> Place:
    """A study's place. Without images a full study can still be put together from pieces that are finished."""
    quick = order.scale == "quick"
    device = "cuda" if not quick and torch.cuda.is_available() else "cpu"
    try:
        source = images(order)
    except UserError as error:
        if not (order.out / "pieces").is_dir():
            raise
        order.log(f"only finished pieces can be read: {error}")
        source = ""
    return Place(order.out, source, device, QUICK_LIMIT if quick else None, order.log)


def expect_pieces(found: Sequence[Any] | Mapping[str, Any], place: Place) -> None:
    """Without any of its pieces a study has nothing to draw; the folder may be full of another's."""
    if not found:
        given = f"none of this study's pieces in {place.out / 'pieces'}"
        raise UserError(given, "finished ones to read, or images to train with", "set FEWER_MNIST, or --scale quick")
