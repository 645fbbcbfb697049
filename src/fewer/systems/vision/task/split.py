"""Choosing samples by class: which images are held out, the same in every process."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fewer.core.errors import UserError

__all__ = ["held_out", "stratified"]


def stratified(labels: NDArray[np.int64], count: int, seed: int) -> NDArray[np.int64]:
    """Sorted positions of `count` samples with the class frequencies of all, by largest remainders."""
    classes, sizes = np.unique(labels, return_counts=True)
    wanted = sizes * count / len(labels)
    shares = np.floor(wanted).astype(int)
    by_remainder = np.argsort(shares - wanted, kind="stable")
    shares[by_remainder[: count - shares.sum()]] += 1
    random = np.random.RandomState(seed)  # its stream is frozen by promise; a Generator's may change
    chosen = [random.permutation(np.flatnonzero(labels == which))[:share] for which, share in zip(classes, shares)]
    return np.sort(np.concatenate(chosen))


def held_out(labels: NDArray[np.int64], share: float, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions that stay and positions that are held out; at least one of each class stays and goes."""
    if share == 0:
        return np.arange(len(labels)), np.arange(0)
    classes = len(np.unique(labels))
    out = stratified(labels, max(round(share * len(labels)), classes), seed)
    stay = np.setdiff1d(np.arange(len(labels)), out, assume_unique=True)
    if len(np.unique(labels[out])) < classes or len(np.unique(labels[stay])) < classes:
        raise UserError(
            f"a share of {share} of {len(labels)} images in {classes} classes",
            "at least one image of each class on both sides",
            "bring more images, or another share",
        )
    return stay, out
