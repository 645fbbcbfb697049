"""Many small images decoded once: an archive or a folder becomes one array, kept in the cache under its content's hash.

The layout is train/CLASS/*.jpg and test/CLASS/*.jpg, in a folder or a tar file. Classes count in alphabetical order.
"""

from __future__ import annotations

import hashlib
import io
import lzma
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from fewer.core.errors import UserError
from fewer.core.files import npz
from fewer.core.files.atomic import write_atomically
from fewer.core.files.cache import cache_folder
from fewer.systems.vision.task.files.folder import ENDINGS, decoded

__all__ = ["is_archive", "read_archive"]

Pair = tuple[NDArray[np.generic], NDArray[np.int64]]
_ENDINGS = (".tar", ".tar.gz", ".tgz", ".tar.xz")
_LARGEST_IMAGE = 1 << 24  # bytes of one file in an archive
_LARGEST = 1 << 33  # bytes of all images together


def is_archive(path: Path) -> bool:
    """By its name."""
    return path.is_file() and path.name.endswith(_ENDINGS)


def read_archive(path: Path) -> dict[str, Pair]:
    """Images and labels of `train`, and of `test` if there is one; the second time without decoding a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    kept = cache_folder() / "images" / f"{digest.hexdigest()[:32]}.npz"
    if kept.is_file():
        return _kept(kept)
    try:
        found = _decoded(path)
    except (OSError, EOFError, tarfile.TarError, lzma.LZMAError, zlib.error) as error:
        raise UserError(f"{path}: {error}", "a tar file of PNG or JPEG images", "fetch it again") from error
    held = {f"{split}_{kind}": part for split, pair in found.items() for kind, part in zip(("images", "labels"), pair)}
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **held)  # not compressed: it is read often
    kept.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(kept, buffer.getvalue())
    return found


def _kept(path: Path) -> dict[str, Pair]:
    with npz.opened(path, _LARGEST) as held:
        splits = [split for split in ("train", "test") if f"{split}_images" in held]
        return {split: (held[f"{split}_images"], held[f"{split}_labels"]) for split in splits}


def _decoded(path: Path) -> dict[str, Pair]:
    """In the order of splits, classes and names."""
    images: dict[tuple[str, str, str], NDArray[np.uint8]] = {}
    size = 0
    for parts, content in _members(path):
        images[parts] = decoded(io.BytesIO(content), f"{path}:{'/'.join(parts)}")
        size += images[parts].nbytes
        if size > _LARGEST:
            raise UserError(f"{path} with more than {_LARGEST} bytes of pixels", "fewer or smaller images")
    if len(shapes := {image.shape for image in images.values()}) > 1:
        raise UserError(f"{path} with images {sorted(shapes)[:3]}", "one size and mode for all")
    names = sorted({name for split, name, _ in images if split == "train"})
    if len(names) < 2:
        raise UserError(f"{path} with {len(names)} classes in train/", "train/CLASS/*.jpg of two or more classes")
    found: dict[str, Pair] = {}
    for split in ("train", "test"):
        chosen = sorted(parts for parts in images if parts[0] == split)
        if other := {name for _, name, _ in chosen} - set(names):
            raise UserError(f"{path} with {sorted(other)} in {split} alone", f"the classes of train, {names}")
        if chosen:
            labels = np.array([names.index(name) for _, name, _ in chosen], dtype=np.int64)
            found[split] = (np.stack([images[parts] for parts in chosen]), labels)
    return found


def _members(path: Path) -> Iterator[tuple[tuple[str, str, str], bytes]]:
    """(split, class, name) and the bytes of every image file."""
    with tarfile.open(path, "r|*") as archive:  # as a stream: an xz file cannot be read backwards
        for member in archive:
            parts = PurePosixPath(member.name).parts
            if not member.isfile() or len(parts) != 3 or not parts[2].lower().endswith(ENDINGS):
                continue
            stream = archive.extractfile(member)
            if stream is None or member.size > _LARGEST_IMAGE:
                raise UserError(f"{path}:{member.name} of {member.size} bytes", f"at most {_LARGEST_IMAGE}")
            yield (parts[0], parts[1], parts[2]), stream.read()
