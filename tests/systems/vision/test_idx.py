"""The idx reader believes a file only when header and length agree."""

from __future__ import annotations

import contextlib
import gzip
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from fewer.core.errors import UserError
from fewer.systems.vision.task.files.idx import FILES, read_folder, read_idx


def encoded(array: np.ndarray) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


PIXELS = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)
WHOLE = encoded(PIXELS)


@settings(deadline=None)
@given(arrays.arrays(np.uint8, arrays.array_shapes(min_dims=1, max_dims=4, max_side=5)), st.booleans())
def test_an_array_comes_back_as_it_was_written(tmp_path_factory: pytest.TempPathFactory, array, zipped) -> None:
    path = tmp_path_factory.mktemp("idx") / "file"
    path.write_bytes(gzip.compress(encoded(array)) if zipped else encoded(array))
    np.testing.assert_array_equal(read_idx(path), array)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "begins with nothing"),
        (b"\0\0\x08", "begins with 000008"),
        (b"\0\x01" + WHOLE[2:], "magic number"),
        (b"\0\0\x0d" + WHOLE[3:], "type 0x0d"),
        (b"\0\0\x08\0" + WHOLE[4:], "0 dimensions"),
        (b"\0\0\x08\xff" + b"\xff" * 1020, "255 dimensions"),
        (WHOLE[:10], "ends inside its header"),
        (WHOLE[:-1], "23 bytes of content; expected 24"),
        (WHOLE + b"\0", "goes on after its content"),
        (bytes([0, 0, 8, 1]) + struct.pack(">I", 0), "sizes (0,)"),
        (bytes([0, 0, 8, 4]) + struct.pack(">4I", *[2**32 - 1] * 4) + b"x", "states the sizes"),
        (bytes([0, 0, 8, 1]) + struct.pack(">I", 2**32 - 1) + b"x", "holds 1 bytes"),
    ],
)
@pytest.mark.parametrize("zipped", [False, True])
def test_a_malformed_file_is_refused_in_one_line(tmp_path: Path, content: bytes, said: str, zipped: bool) -> None:
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(content) if zipped else content)
    with pytest.raises(UserError) as caught:
        read_idx(path)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("damage", [lambda z: z[:-9], lambda z: z[:-8] + b"12345678", lambda z: z + b"more"])
def test_a_damaged_gzip_stream_is_refused(tmp_path: Path, damage) -> None:
    path = tmp_path / "file.gz"
    path.write_bytes(damage(gzip.compress(WHOLE)))
    with pytest.raises(UserError):
        read_idx(path)


def test_a_header_that_lies_reserves_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes([0, 0, 8, 1]) + struct.pack(">I", 2**32 - 1) + bytes(1000))
    tracemalloc.start()
    with pytest.raises(UserError):
        read_idx(path)
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()


@settings(deadline=None)
@given(st.binary(max_size=64))
def test_any_bytes_give_an_array_or_a_user_error(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("idx") / "file"
    path.write_bytes(content)
    with contextlib.suppress(UserError):
        assert read_idx(path).nbytes < len(content)


def test_a_missing_file_is_a_user_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file"):
        read_idx(tmp_path / "none")


@pytest.mark.parametrize(("shape", "seen"), [((6, 21, 17, 3), (6, 3, 21, 17)), ((6, 3, 21, 17), (6, 3, 21, 17))])
def test_channels_may_stand_last_or_first(tmp_path: Path, shape: tuple[int, ...], seen: tuple[int, ...]) -> None:
    images = np.random.RandomState(0).randint(0, 256, shape).astype(np.uint8)
    (tmp_path / FILES["train"][0]).write_bytes(encoded(images))
    (tmp_path / FILES["train"][1]).write_bytes(encoded(np.zeros(6, np.uint8)))
    found, _ = read_folder(tmp_path, "train")
    assert found.shape == seen and np.array_equal(found if shape == seen else found.transpose(0, 2, 3, 1), images)


def test_a_folder_needs_one_label_for_each_image(tmp_path: Path) -> None:
    images, labels = FILES["train"]
    (tmp_path / images).write_bytes(WHOLE)
    with pytest.raises(UserError, match="without train-labels"):
        read_folder(tmp_path, "train")
    (tmp_path / f"{labels}.gz").write_bytes(gzip.compress(encoded(np.zeros(3, dtype=np.uint8))))
    with pytest.raises(UserError, match="one label for each"):
        read_folder(tmp_path, "train")
    (tmp_path / f"{labels}.gz").write_bytes(gzip.compress(encoded(np.array([1, 2], dtype=np.uint8))))
    pixels, numbers = read_folder(tmp_path, "train")
    assert pixels.shape == (2, 1, 3, 4)
    assert numbers.tolist() == [1, 2]
