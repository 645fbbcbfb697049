"""docs/pack-format.md is true of every shipped pack: its outline is read here as the page tells it, byte by byte."""

from __future__ import annotations

import hashlib
import json
import math
import struct
import zlib
from typing import Any

import pytest

from fewer.packs.file.codec import decode_mask
from fewer.packs.file.container import seal
from fewer.packs.pack import decode, open_bytes
from fewer.packs.program import PackError
from fewer.zoo import names, path

BITS = {"float32": (32, 10), "float16": (16, 8), "int8": (8, 7)}  # of a word, and of what is coded of it


def outline(data: bytes) -> tuple[dict[str, Any], bytes]:
    """The header and the sections."""
    magic, version, zero, packed, unpacked = struct.unpack("<8sHHII", data[:20])
    assert (magic, version, zero) == (bytes.fromhex("8966657765720D0A"), 1, 0)
    assert unpacked <= 2**16 + 64 * len(data) and data[-16:] == hashlib.blake2b(data[:-16], digest_size=16).digest()
    text = zlib.decompress(data[20 : 20 + packed])
    assert len(text) == unpacked
    return json.loads(text), data[20 + packed : -16]


def test_a_mask_that_no_entry_names_is_refused_below_none_as_well_as_beyond_the_last() -> None:
    header, sections = outline(path("control-hopper-99").read_bytes())
    first = next(entry for entry in header["tensors"] if entry[3] >= 0)
    for wrong in (-2, len(header["masks"])):
        first[3] = wrong
        with pytest.raises(PackError, match=f"mask {wrong}"):
            decode(*open_bytes(seal(header, [sections], numbers=0)))


@pytest.mark.parametrize("name", names())
def test_a_shipped_pack_is_what_the_specification_says(name: str) -> None:
    data = path(name).read_bytes()
    header, sections = outline(data)
    assert header.keys() == {"settings", "networks", "masks", "tensors"} and isinstance(header["settings"], dict)
    place, masks, numbers = 0, [], 0
    for rows, columns, length in header["masks"]:
        masks.append(decode_mask(sections[place : place + length], (rows, columns)))
        place, numbers = place + length, numbers + rows * columns
    known = set()
    for tensor, shape, kind, number, length, *more in header["tensors"]:
        mask = None if number == -1 else masks[number]
        count = math.prod(shape)
        known.add(tensor)
        numbers += count
        place += length + sum(more)
        if kind.startswith("raw "):
            continue
        rows = shape[0] if len(shape) > 1 else 1
        assert mask is None or mask.shape == (rows, count // rows)
        bits, coded = BITS[kind]
        kept = count if mask is None else int(mask.sum())
        place += math.ceil(kept * (bits - coded) / 8)
        assert len(more) == (kind == "int8")
    assert not any(sections[place:]) and numbers <= 2**20 + 64 * len(data)
    for program in header["networks"].values():
        assert program.keys() - {"time"} == {"inputs", "nodes", "outputs"}
        seen = known | {name for name, _, _ in program["inputs"]}
        for _, inputs, output, _ in program["nodes"]:
            assert seen.issuperset(inputs)
            seen.add(output)
        assert seen.issuperset(program["outputs"])
