"""Requests and answers as npz, without pickles: what a file claims is held against the fields before it is unfolded."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO

import numpy as np

from fewer.packs.file.tensors import Array
from fewer.serve.fields import Deadline, RequestField, checked, fitting
from fewer.serve.limits import Refusal

__all__ = ["Archive", "write_npz"]

_MOST_ARRAYS = 32
_ENTRY = b"PK\x01\x02"  # begins every entry of a zip's directory
_FOLDED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # others take memory that the file names
_CHUNK = 1 << 20  # bytes unfolded at once
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


@dataclass(frozen=True)
class _Claim:
    """An npy's own word on what follows."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[np.generic]
    start: int  # bytes before the numbers


class Archive:
    """An npz that has been opened but not read: `names` first, then `read` with the fields they should be."""

    def __init__(self, body: bytes) -> None:
        entries = body.count(_ENTRY)  # before zipfile makes objects of them
        if entries > _MOST_ARRAYS:
            raise Refusal(422, f"a zip of {entries} files; expected at most {_MOST_ARRAYS} arrays")
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(body))
        except Exception as error:  # a damaged zip can raise nearly anything
            raise _damaged(error) from None
        self._parts = {part.filename.removesuffix(".npy"): part for part in self._zip.infolist()}
        if len(self._parts) < len(self._zip.infolist()):
            raise Refusal(422, "an npz with a name that is given twice; expected every array once")

    @property
    def names(self) -> list[str]:
        """Of its arrays."""
        return list(self._parts)

    def read(
        self, fields: Sequence[RequestField], *, most_samples: int, most_bytes: int, deadline: Deadline
    ) -> dict[str, Array]:
        """The fields that are there: plain numbers, of a shape that fits, together no larger than `most_bytes`."""
        wanted = {field.name: field for field in fields if field.name in self._parts}
        too_large = Refusal(413, f"arrays that unfold beyond {most_bytes} bytes")
        if sum(self._parts[name].file_size for name in wanted) > most_bytes:
            raise too_large
        try:
            claims = {name: self._claim(name, field, most_samples) for name, field in wanted.items()}
            if (
                sum(math.prod(c.shape) * np.dtype(wanted[name].dtype).itemsize for name, c in claims.items())
                > most_bytes
            ):
                raise too_large  # bytes may have been sent where floats are wanted
            return {name: checked(wanted[name], self._array(name, claims[name], deadline)) for name in wanted}
        except Refusal:
            raise
        except Exception as error:
            raise _damaged(error) from None

    def _claim(self, name: str, field: RequestField, most_samples: int) -> _Claim:
        if self._parts[name].compress_type not in _FOLDED:
            raise Refusal(422, "a zip of an unusual kind; expected what numpy.savez or savez_compressed writes")
        with self._zip.open(self._parts[name]) as file:
            version = np.lib.format.read_magic(file)
            if version not in _HEADERS:
                raise Refusal(422, f"an npy of version {version}; expected 1 or 2")
            shape, fortran, dtype = _HEADERS[version](file)
            start = file.tell()
        if dtype.kind not in "iufb" or dtype.itemsize > 8:
            raise Refusal(422, f"an array of {str(dtype)[:80]}; expected plain numbers")
        if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != self._parts[name].file_size - start:
            raise Refusal(400, "an npy whose length contradicts its shape")
        fitting(field, shape, most_samples)
        return _Claim(shape, fortran, dtype, start)

    def _array(self, name: str, claim: _Claim, deadline: Deadline) -> Array:
        found = np.empty(math.prod(claim.shape), dtype=claim.dtype)
        with self._zip.open(self._parts[name]) as file:
            file.read(claim.start)
            _fill(file, found.view(np.uint8).data, deadline)
        return found.reshape(claim.shape, order="F" if claim.fortran else "C")


def _fill(file: IO[bytes], room: memoryview, deadline: Deadline) -> None:
    done = 0
    while done < len(room):
        deadline.check()
        data = file.read(min(_CHUNK, len(room) - done))
        if not data:
            raise EOFError("fewer bytes than it claims")
        room[done : done + len(data)] = data
        done += len(data)
    if file.read(1):
        raise ValueError("more bytes than it claims")


def _damaged(error: Exception) -> Refusal:
    return Refusal(400, f"a body that is no npz ({type(error).__name__}: {str(error)[:80]})")


def write_npz(arrays: Mapping[str, Array]) -> bytes:
    """An uncompressed npz."""
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **arrays)
    return file.getvalue()
