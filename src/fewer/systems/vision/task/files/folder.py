"""A user's own images: one folder per class, or one npz file."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from fewer.core.errors import MissingExtra, UserError
from fewer.core.files import npz
from fewer.systems.vision.task.files.axes import channels_first

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["ENDINGS", "class_names", "decoded", "read_images", "read_npz"]

Pair = tuple[NDArray[np.generic], NDArray[np.int64]]
ENDINGS = (".png", ".jpg", ".jpeg")
_LARGEST = 1 << 33  # bytes of all arrays in an npz together


def class_names(path: Path) -> list[str]:
    """The classes of an image folder in the order of their numbers: alphabetical, or numerical if all are numbers."""
    names = [entry.name for entry in path.iterdir() if entry.is_dir() and not entry.name.startswith(".")]
    return sorted(names, key=int) if all(name.isdecimal() for name in names) else sorted(names)


def read_images(path: Path) -> dict[str, Pair]:
    """A folder with one folder of PNG or JPEG files per class, or with such folders called `train` and `test`."""
    parts = {split: path / split for split in ("train", "test") if (path / split).is_dir()}
    if "train" not in parts:
        parts = {"train": path}
    names = class_names(parts["train"])
    if len(names) < 2:
        raise UserError(
            f"{path} with {len(names)} class folders",
            "idx files, CIFAR binaries, or one folder of images for each of two or more classes",
        )
    for split, part in parts.items():
        if class_names(part) != names:
            raise UserError(f"{part} with classes {class_names(part)}", f"those of train, {names}", f"mend {split}")
    return {split: _read_classes(part, names) for split, part in parts.items()}


def _read_classes(path: Path, names: list[str]) -> Pair:
    images: list[NDArray[np.uint8]] = []
    labels: list[int] = []
    for label, name in enumerate(names):
        files = sorted(file for file in (path / name).iterdir() if file.suffix.lower() in ENDINGS)
        if not files:
            raise UserError(
                f"{path / name} without images", f"files ending in {' '.join(ENDINGS)}", "remove the folder"
            )
        for file in files:
            images.append(decoded(file, str(file)))
            labels.append(label)
            if images[-1].shape != images[0].shape:
                raise UserError(
                    f"{file} of {images[-1].shape} (channels, height, width)",
                    f"{images[0].shape}, as the first image",
                    "bring all to one size and mode",
                )
    return np.stack(images), np.array(labels)


def decoded(source: Path | BinaryIO, name: str) -> NDArray[np.uint8]:
    """(channels, height, width) of one PNG or JPEG file, or of its bytes."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise MissingExtra("no pillow", "it installed, to read PNG and JPEG", "pip install 'fewer[vision]'") from error
    try:
        with Image.open(source) as image:
            pixels = _pixels(image)
    except (OSError, UnidentifiedImageError, ValueError, Image.DecompressionBombError) as error:
        raise UserError(f"{name}: {error}", "a PNG or JPEG image") from error
    return np.ascontiguousarray(pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1))


def _pixels(image: Image) -> NDArray[np.uint8]:
    """Grey stays one channel, of 16 bits the upper 8; palettes, transparency and the rest become three."""
    if image.mode == "L":
        return np.asarray(image)
    if image.mode.startswith("I"):
        return (np.asarray(image).clip(0, 65535) >> 8).astype(np.uint8)
    return np.asarray(image.convert("L" if image.mode == "1" else "RGB"))


def read_npz(path: Path) -> dict[str, Pair]:
    """`images` and `labels`, and `test_images` and `test_labels` if they are there; never pickled objects."""
    try:
        with npz.opened(path, _LARGEST) as held:
            found = {name: held[name] for name in ("images", "labels", "test_images", "test_labels") if name in held}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{path}: {error}", "an npz file of plain arrays", "save it again with numpy.savez") from error
    prefixes = {"train": "", "test": "test_"} if {"test_images", "test_labels"} & set(found) else {"train": ""}
    return {split: _pair(found, prefix, path) for split, prefix in prefixes.items()}


def _pair(found: dict[str, NDArray[Any]], prefix: str, path: Path) -> Pair:
    for name in (f"{prefix}images", f"{prefix}labels"):
        if name not in found:
            raise UserError(f"{path} without {name!r}", "arrays called images and labels", "rename them")
    images, labels = found[f"{prefix}images"], found[f"{prefix}labels"]
    if labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
        raise UserError(f"{path} with labels {labels.dtype} {labels.shape}", "integers (count,)")
    if (placed := channels_first(images)) is None:
        raise UserError(f"{path} with images {images.shape}", "(count, height, width) or one or three channels beside")
    return placed, labels.astype(np.int64)
