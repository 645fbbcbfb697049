"""Pieces of the vision studies that train in a moment."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from fewer.systems.vision.studies.recipe import DENSE, Recipe, cured, gradual
from fewer.systems.vision.task.digits import read_digits


def quiet(line: str) -> None:
    """Says nothing."""


def tiny(name: str = "tiny", **changes: object) -> Recipe:
    """Ten steps, two densities, two seeds."""
    base = cured(name, "cnn0", steps=10, batch=16, hardening="pgd:0.3,steps=2", seeds=(0, 1))
    return dataclasses.replace(base, **{"prunings": (DENSE, gradual(0.1, 10)), **changes})


def digits_file(folder: Path, train: int, test: int) -> str:
    """An npz with the first digits of each split."""
    arrays = {}
    for prefix, split, count in (("", "train", train), ("test_", "test", test)):
        images, labels = read_digits(split)
        arrays |= {f"{prefix}images": images[:count, 0], f"{prefix}labels": labels[:count]}
    np.savez(folder / "digits.npz", **arrays)
    return str(folder / "digits.npz")
