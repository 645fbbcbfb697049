"""The pack: one file with the kept weights of a network, or of a set of them, and what is needed to use them.

    write("policy.pack", program, tensors, masks=masks, settings={"task": "control"})
    load("policy.pack").predict(observation)

Lossless unless asked otherwise: `unpack` gives the same bits. Opening a file executes nothing that is in it.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fewer.core.errors import UserError
from fewer.core.files.atomic import write_atomically
from fewer.core.renamed import modern
from fewer.packs import VALUES
from fewer.packs.compiled import warn_once
from fewer.packs.file.container import allowed_numbers, read_sealed, seal
from fewer.packs.file.tensors import Array, Decoder, Encoder
from fewer.packs.program import PackError, Program
from fewer.packs.quantize import Calibration, quantized
from fewer.packs.runtime.runtime import Pack
from fewer.packs.runtime.threads import Threads
from fewer.packs.shapes.demand import Allowance

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Allowance", "Pack", "PackError", "load", "unpack", "write"]

_MOST_KEPT = 0.97  # a mask that keeps more than this costs more than the zeros it saves
_MEMORY = 4 << 30


def write(
    path: str | os.PathLike[str],
    programs: Program | Mapping[str, Program],
    tensors: Mapping[str, Array],
    *,
    masks: Mapping[str, Array] | None = None,
    values: str = "float32",
    settings: Mapping[str, Any] | None = None,
    calibration: Sequence[Array] | Mapping[str, Sequence[Array]] | None = None,
) -> int:
    """Write a pack and return its length in bytes.

    Weights outside a mask are stored as 0. Without a mask, exact zeros count as removed. With "float16" and "int8"
    weights and biases of layers are rounded, and normalisers stay exact; `calibration`, a batch of each input
    (by network where there are several), lets int8 choose its steps and correct the biases.
    """
    networks = {"net": programs} if isinstance(programs, Program) else dict(programs)
    if values not in VALUES:
        raise UserError(f"values={values!r}", "float32, float16 or int8")
    masks = dict(masks or {})
    if unknown := masks.keys() - tensors.keys():
        raise UserError(f"masks of {', '.join(sorted(unknown))}", "masks of tensors that are packed")
    folded = {name: _folded(name, np.asarray(value), masks.get(name)) for name, value in tensors.items()}
    for program in networks.values():
        program.check(set(folded))
    batches = Calibration(networks, calibration) if calibration is not None else None
    chosen = quantized(networks, folded, masks, values=values, calibration=batches)
    encoder = Encoder()
    entries = []
    for name, value in folded.items():
        kind, stored, codes = chosen[name]
        mask = masks.get(name) if kind != "raw" and value.size else None
        entries.append((name, stored, mask if mask is not None else _zeros(value, stored, kind), kind, codes))
    # masks first: the reader needs them before any value
    for _, value, mask, _, _ in entries:
        if mask is not None:
            encoder.mask(np.asarray(mask, dtype=np.bool_).reshape(_rows_of(value), -1))
    table = [encoder.tensor(*entry) for entry in entries]
    header = {
        "settings": dict(settings or {}),
        "networks": {name: program.to_json() for name, program in networks.items()},
        "masks": encoder.masks,
        "tensors": table,
    }
    try:
        data = seal(header, encoder.sections, numbers=encoder.numbers)
    except (TypeError, ValueError, RecursionError) as error:
        raise UserError(
            f"settings that JSON cannot hold ({error})", "numbers, words, lists and dictionaries"
        ) from error
    write_atomically(path, data)
    return len(data)


def _rows_of(value: Array) -> int:
    return value.shape[0] if value.ndim >= 2 else 1


def _folded(name: str, value: Array, mask: Array | None) -> Array:
    """The tensor with its mask applied; a removed weight is +0.0 whatever its sign was."""
    if mask is None:
        return value
    kept = np.asarray(mask)
    if kept.shape != value.shape or value.dtype != np.float32:
        raise UserError(f"mask {kept.shape} of {name}, {value.dtype} {value.shape}", "a float32 tensor of its shape")
    return np.where(kept.astype(np.bool_), value, np.float32(0))


def _zeros(value: Array, stored: Array, kind: str) -> NDArray[np.bool_] | None:
    """Where the bits are not those of +0.0, nor made so by a calibration, if leaving others out is worth a mask."""
    if kind == "raw" or value.size == 0:
        return None
    kept: NDArray[np.bool_] = np.ascontiguousarray(value).view(np.uint32).reshape(value.shape) != 0
    kept |= stored != 0
    return kept if kept.mean() <= _MOST_KEPT else None


def _read(path: str | os.PathLike[str], memory: int) -> tuple[dict[str, Any], Decoder]:
    try:
        length = Path(path).stat().st_size
        if length > memory:
            raise PackError(f"{path} of {length} bytes", f"at most {memory}", "raise `memory`")
        data = Path(path).read_bytes()
    except OSError as error:
        raise PackError(f"{path} ({error.strerror})", "a pack that can be read") from error
    return open_bytes(data, memory=memory)


def open_bytes(data: bytes, *, memory: int = _MEMORY) -> tuple[dict[str, Any], Decoder]:
    """The header and a decoder of everything else, of a pack that lies in memory."""
    header, payload = read_sealed(data)
    return header, Decoder(payload, min(allowed_numbers(len(data)), memory // 4))


def decode(header: dict[str, Any], decoder: Decoder, allowance: Allowance | None = None, *, threads: int = 1) -> Pack:
    """The pack itself; anything that does not fit together is a PackError."""
    try:
        decoder.read_masks(header["masks"])
        tensors, masks, kinds = {}, {}, {}
        for name, kind, value, mask in decoder.tensors(header["tensors"]):
            tensors[name], kinds[name] = value, kind
            if mask is not None:
                masks[name] = mask
        programs = {str(name): Program.from_json(data) for name, data in header["networks"].items()}
        if not programs or not isinstance(header["settings"], dict):
            raise PackError("a pack without networks or settings", "both")
        for program in programs.values():
            program.check(set(tensors))
        return Pack(
            programs, tensors, masks=masks, kinds=kinds, settings=modern(header["settings"]), allowance=allowance,
            threads=threads,
        )  # fmt: skip
    except PackError:
        raise
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, MemoryError, zlib.error) as error:
        raise PackError(f"a pack that contradicts itself ({type(error).__name__})", "an undamaged file") from error


def load(
    path: str | os.PathLike[str], *, memory: int = _MEMORY, allowance: Allowance | None = None, threads: int = 1
) -> Pack:
    """Open a pack for use; `memory` bounds, in bytes, what it may unfold into, `allowance` what predicting may take.

    Batches are shared out among `threads`, which packs that ask for as many have in common.
    """
    warn_once()
    Threads(threads)  # refuses an impossible number before anything is read
    return decode(*_read(path, memory), allowance, threads=threads)


def unpack(
    path: str | os.PathLike[str], *, memory: int = _MEMORY, allowance: Allowance | None = None
) -> dict[str, Array]:
    """Every tensor of a pack by name, dense; of a float32 pack, with the bits that were written."""
    return load(path, memory=memory, allowance=allowance).tensors()
