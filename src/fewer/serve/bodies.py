"""Request bodies as arrays, checked before anything is allocated or believed: JSON, and npz without pickles."""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from fewer.serve.limits import Refusal
from fewer.sparse.program import Input
from fewer.sparse.tensors import Array

__all__ = ["checked", "fields_of", "finite_json", "numbers", "read_npz", "samples_of", "write_npz"]


def fields_of(body: bytes) -> dict[str, Any]:
    """A JSON object, strictly: no NaN, no Infinity, no name twice."""
    try:
        found = _STRICT.decode(body.decode())
    except (ValueError, RecursionError) as error:
        raise Refusal(400, f"a body that is no JSON ({str(error)[:120]}); expected one JSON object") from None
    if not isinstance(found, dict):
        raise Refusal(422, f"a {type(found).__name__}; expected a JSON object")
    return found


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON number")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name that is given twice")
    return found


_STRICT = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_once)


def numbers(name: str, value: Any, item: Input) -> Array:
    """Nested lists as an array of the input's type, of a sample's shape or with samples in front; finite."""
    if _holds_truth(value):
        raise Refusal(422, f"{name} holds true or false; expected numbers")
    try:
        array = np.asarray(value)
    except (ValueError, OverflowError, RecursionError):
        raise Refusal(422, f"{name} is ragged; expected {_shapes(item)}") from None
    return checked(name, array, item)


def checked(name: str, array: Array, item: Input) -> Array:
    """The array in the input's type if its numbers and its shape allow it."""
    extra = array.ndim - len(item.shape)
    if extra not in (0, 1) or array.shape[extra:] != item.shape or array.size == 0:
        raise Refusal(422, f"{name} of shape {list(array.shape)}; expected {_shapes(item)}")
    wanted = np.dtype(item.dtype)
    kinds = "iuf" if wanted.kind == "f" else "iub"
    if array.dtype.kind not in kinds:
        raise Refusal(422, f"{name} of {array.dtype.name}; expected {'numbers' if wanted.kind == 'f' else 'integers'}")
    if wanted.kind in "iu":
        bounds = np.iinfo(wanted)
        if array.min() < bounds.min or array.max() > bounds.max:
            raise Refusal(422, f"{name} beyond {wanted.name}")
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.asarray(array, dtype=wanted, order="C")  # keeps a single number a number
    if wanted.kind == "f" and not np.isfinite(found).all():
        raise Refusal(422, f"{name} holds NaN or numbers beyond {wanted.name}; expected finite numbers")
    return found


def _holds_truth(value: Any) -> bool:
    # numpy would take true for 1
    if not isinstance(value, list):
        return isinstance(value, bool)
    deeper = bool(value) and isinstance(value[0], list)
    return any(map(_holds_truth, value)) if deeper else bool in map(type, value)


def _shapes(item: Input) -> str:
    inner = ", ".join(map(str, item.shape))
    return f"shape [{inner}], or [samples{', ' if inner else ''}{inner}]"


def samples_of(arrays: Mapping[str, Array], inputs: tuple[Input, ...]) -> tuple[list[Array], bool]:
    """The arrays in the model's order with samples in front, and whether they were a single sample."""
    ranks = {arrays[item.name].ndim - len(item.shape) for item in inputs}
    single = ranks == {0}
    batched = [arrays[item.name][None] if single else arrays[item.name] for item in inputs]
    if len(ranks) > 1 or len({len(array) for array in batched}) > 1:
        shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in arrays.items())
        raise Refusal(422, f"{shapes}; expected the same number of samples in each")
    return batched, single


def read_npz(body: bytes, most_bytes: int) -> dict[str, Array]:
    """The arrays of an npz: plain numbers only, and together no larger than `most_bytes` when unfolded."""
    found: dict[str, Array] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            parts = archive.infolist()
            if len(parts) > 32:
                raise Refusal(422, f"{len(parts)} arrays; expected at most 32")
            if sum(part.file_size for part in parts) > most_bytes:
                raise Refusal(413, f"arrays that unfold beyond {most_bytes} bytes")
            for part in parts:
                with archive.open(part) as file:
                    found[part.filename.removesuffix(".npy")] = _read_npy(file.read(part.file_size))
    except Refusal:
        raise
    except Exception as error:  # a damaged zip can raise nearly anything
        raise Refusal(400, f"a body that is no npz ({type(error).__name__}: {str(error)[:80]})") from None
    return found


def _read_npy(data: bytes) -> Array:
    file = io.BytesIO(data)
    version = np.lib.format.read_magic(file)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in read:
        raise Refusal(422, f"an npy of version {version}; expected 1 or 2")
    shape, fortran, dtype = read[version](file)
    if dtype.kind not in "iufb" or dtype.itemsize > 8:
        raise Refusal(422, f"an array of {dtype}; expected plain numbers")
    # believed only if the bytes are there
    if math.prod(shape) * dtype.itemsize != len(data) - file.tell() or min(shape, default=0) < 0:
        raise Refusal(400, "an npy whose length contradicts its shape")
    flat = np.frombuffer(data, dtype=dtype, offset=file.tell())
    return flat.reshape(shape, order="F" if fortran else "C").astype(dtype.newbyteorder("="))


def write_npz(arrays: Mapping[str, Array]) -> bytes:
    """An uncompressed npz."""
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **arrays)
    return file.getvalue()


def finite_json(array: Array) -> Any:
    """Nested lists with null for what JSON has no number for."""
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        return np.where(np.isfinite(array), array.astype(object), None).tolist()  # type: ignore[call-overload]
    return array.tolist()
