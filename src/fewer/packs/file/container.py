"""The bytes of a pack: magic, version, a JSON header, sections, and a checksum over all of it.

A reader trusts nothing: sizes are claims, and claims are bounded by the length of the file itself before anything
is allocated. A file of n bytes may unfold into at most 2^20 + 64 n numbers; a writer whose network is sparser than
that pads the file with zeros, so that honest files always open.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from typing import Any

from fewer.packs.program import PackError

__all__ = ["VERSION", "read_sealed", "seal"]

MAGIC = b"\x89fewer\r\n"
VERSION = 1
DIGEST = 16
FREE_NUMBERS, NUMBERS_PER_BYTE = 1 << 20, 64
FREE_HEADER, HEADER_PER_BYTE = 1 << 16, 64
_FIXED = struct.Struct("<8sHHII")  # magic, version, zero, header bytes packed, header bytes unpacked


def allowed_numbers(length: int) -> int:
    """How many numbers a file of that length may unfold into."""
    return FREE_NUMBERS + NUMBERS_PER_BYTE * length


def digest(data: bytes) -> bytes:
    """The checksum: finds damage; it is no signature."""
    return hashlib.blake2b(data, digest_size=DIGEST).digest()


def seal(header: dict[str, Any], sections: list[bytes], *, numbers: int) -> bytes:
    """The whole file; `numbers` is what it unfolds into, masks and tensors together."""
    text = json.dumps(header, separators=(",", ":")).encode()
    packed = zlib.compress(text, 9)
    body = _FIXED.pack(MAGIC, VERSION, 0, len(packed), len(text)) + packed + b"".join(sections)
    longest = max(-(-(numbers - FREE_NUMBERS) // NUMBERS_PER_BYTE), -(-(len(text) - FREE_HEADER) // HEADER_PER_BYTE))
    body += bytes(max(0, longest - len(body) - DIGEST))
    return body + digest(body)


def read_sealed(data: bytes) -> tuple[dict[str, Any], bytes]:
    """The header and the bytes of all sections, after magic, version, checksum and lengths were found right."""
    if len(data) < _FIXED.size + DIGEST:
        raise PackError(f"a file of {len(data)} bytes", "a pack", "is it complete?")
    magic, version, zero, packed, unpacked = _FIXED.unpack_from(data)
    if magic != MAGIC:
        raise PackError(f"a file that starts with {magic!r}", f"a pack, which starts with {MAGIC!r}")
    if version != VERSION or zero:
        raise PackError(f"a pack of version {version}", f"version {VERSION}", "update the package")
    if digest(data[:-DIGEST]) != data[-DIGEST:]:
        raise PackError("a pack whose checksum is wrong", "an undamaged file", "copy it again")
    if _FIXED.size + packed + DIGEST > len(data) or unpacked > FREE_HEADER + HEADER_PER_BYTE * len(data):
        raise PackError(f"a header of {packed} bytes for {unpacked}", "what a file of this length can hold")
    start = _FIXED.size + packed
    return _header(data[_FIXED.size : start], unpacked), data[start:-DIGEST]


def _header(packed: bytes, unpacked: int) -> dict[str, Any]:
    try:
        unzip = zlib.decompressobj()
        text = unzip.decompress(packed, unpacked + 1)
        header = json.loads(text.decode())
        if b"\\ud" in text.lower():  # half a character, which no terminal can show
            json.dumps(header, ensure_ascii=False).encode()
    except (zlib.error, ValueError, RecursionError) as error:
        raise PackError("a pack with an unreadable header", "JSON") from error
    if len(text) != unpacked or not isinstance(header, dict):
        raise PackError(f"a header of {len(text)} bytes", f"{unpacked} bytes of a JSON object")
    return header
