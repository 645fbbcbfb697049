"""Twelve thousand real MNIST digits inside the package: 10,000 to train with and 2,000 to test.

Both are drawn at random from the whole original sets with the original class frequencies; `scripts/embed_digits.py`
makes the file. The numbers of the images in the original files are kept beside them.
"""

from __future__ import annotations

import functools
from importlib import resources

import numpy as np
from numpy.typing import NDArray

__all__ = ["read_digits"]


@functools.cache
def read_digits(split: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Images (count, 1, 28, 28) and labels (count,) of `train` or `test`; read-only, shared by all who ask."""
    with resources.files(__package__).joinpath("digits.npz").open("rb") as file, np.load(file) as held:
        images = held[f"{split}_images"].reshape(-1, 1, 28, 28)
        labels = held[f"{split}_labels"].astype(np.int64)
    images.flags.writeable = labels.flags.writeable = False
    return images, labels
