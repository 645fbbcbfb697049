"""From a name or a path to checked images: the embedded digits, idx files, CIFAR binaries, npz, or image folders."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fewer.core.errors import UserError
from fewer.systems.vision.task import digits
from fewer.systems.vision.task.files import archive, cifar, folder, idx
from fewer.systems.vision.task.split import held_out

__all__ = ["Arrays", "Images", "checked", "chosen_classes", "load", "mixed", "split_up", "tensors"]

_TEST_SHARE = 1 / 6  # where a source has no test images of its own: MNIST's proportion
_SEED = 0


class Images(NamedTuple):
    """A batch."""

    pixels: Tensor  # (batch, channels, height, width), in [0, 1]
    label: Tensor  # (batch,), integer


class Arrays(NamedTuple):
    """Images (count, channels, height, width), bytes or floats in [0, 1], and labels (count,)."""

    images: NDArray[np.generic]
    labels: NDArray[np.int64]


def load(source: str) -> dict[str, Arrays]:
    """`train`, and `test` if the source has one: "digits", an .npz file, or a folder of a known kind."""
    if source == "digits":
        return {split: Arrays(*digits.read_digits(split)) for split in ("train", "test")}
    path = Path(source)
    if path.is_file() and path.suffix == ".npz":
        return {split: Arrays(*pair) for split, pair in folder.read_npz(path).items()}
    if archive.is_archive(path):
        return {split: Arrays(*pair) for split, pair in archive.read_archive(path).items()}
    if not path.is_dir():
        raise UserError(f"data {source!r}", "digits, an .npz or tar file, or a folder that exists", "check the path")
    if idx.find(path, idx.FILES["train"][0]) is not None:
        return {split: Arrays(*idx.read_folder(path, split)) for split in ("train", "test")}
    if cifar.found(path):
        return {split: Arrays(*cifar.read_folder(path, split)) for split in ("train", "test")}
    return {split: Arrays(*pair) for split, pair in folder.read_images(path).items()}


def checked(arrays: Arrays, *, name: str) -> Arrays:
    """The same, or an error that names the first thing wrong."""
    images, labels = arrays
    if images.ndim != 4 or len(images) != len(labels) or len(labels) == 0:
        raise UserError(f"{name}: images {images.shape}, labels {labels.shape}", "four axes and one label for each")
    if images.dtype != np.uint8:
        if not np.issubdtype(images.dtype, np.floating):
            raise UserError(f"{name}: images of {images.dtype}", "unsigned bytes, or floats in [0, 1]")
        if not np.isfinite(images).all():
            where = int(np.argmin(np.isfinite(images).reshape(len(images), -1).all(1)))
            raise UserError(f"{name}: NaN or infinity in image {where}", "finite pixels")
        if images.min() < 0 or images.max() > 1:
            cure = "scale and shift them" if images.min() < 0 else "divide by the largest"
            raise UserError(f"{name}: pixels from {images.min()} to {images.max()}", "0 to 1", cure)
    if labels.min() < 0:
        raise UserError(f"{name}: label {labels.min()}", "classes counted from 0")
    return arrays


def chosen_classes(arrays: Mapping[str, Arrays], wanted: tuple[int, ...]) -> tuple[dict[str, Arrays], int]:
    """Only the wanted classes, counted anew in the given order (all if none is named), and how many there are."""
    highest = max(int(each.labels.max()) for each in arrays.values())
    if highest >= sum(len(each.labels) for each in arrays.values()):
        raise UserError(f"label {highest} in a smaller number of images", "classes counted from 0 without gaps")
    keep = np.array(wanted or range(highest + 1))
    if keep.min() < 0 or keep.max() > highest or len(set(wanted)) != len(wanted) or len(keep) < 2:
        raise UserError(f"classes {','.join(map(str, keep))}", f"two or more different ones of 0 to {highest}")
    number = np.full(highest + 1, -1)
    number[keep] = np.arange(len(keep))
    result = {}
    for split, (images, labels) in arrays.items():
        new = number[labels]
        for which, count in zip(keep, np.bincount(new[new >= 0], minlength=len(keep))):
            if count == 0:
                raise UserError(f"no {split} image of class {which}", "at least one of every class", "choose classes")
        result[split] = Arrays(images, labels) if not wanted else Arrays(images[new >= 0], new[new >= 0])
    return result, len(keep)


def mixed(arrays: Arrays) -> Arrays:
    """In an order by lot if they come class by class, so that the first few stand for all; else as they are."""
    images, labels = arrays
    if np.count_nonzero(np.diff(labels)) >= len(np.unique(labels)):
        return arrays
    order = np.random.RandomState(_SEED).permutation(len(labels))  # its stream is frozen by promise
    return Arrays(images[order], labels[order])


def split_up(arrays: Mapping[str, Arrays], validation: float) -> dict[str, Arrays]:
    """`train`, `validation` and `test`; what a source does not hold apart is drawn from its training images."""
    train, test = arrays["train"], arrays.get("test")
    if test is None:
        stay, out = held_out(train.labels, _TEST_SHARE, _SEED)
        train, test = (Arrays(train.images[rows], train.labels[rows]) for rows in (stay, out))
    stay, out = held_out(train.labels, validation, _SEED + 1)
    return {
        "train": Arrays(train.images[stay], train.labels[stay]),
        "validation": Arrays(train.images[out], train.labels[out]),
        "test": test,
    }


def tensors(arrays: Arrays) -> Images:
    """As the networks want them."""
    pixels = arrays.images.astype(np.float32)
    if arrays.images.dtype == np.uint8:
        pixels /= 255
    return Images(torch.from_numpy(pixels), torch.from_numpy(arrays.labels.copy()))
