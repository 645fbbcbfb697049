"""Mutated packs through the reader: `python tests/packs/fuzz_pack.py 200000 [seed]`.

Half of the mutants get a right checksum, so that the decoder itself is tried. A mutant must open or be refused with
a PackError: no other exception, no more than a few seconds, no more memory than the reader's own limit; one whose
checksum is wrong must be refused. Mutants that open are asked to predict, which must answer or raise a UserError.
"""

from __future__ import annotations

import json
import random
import resource
import signal
import struct
import sys
import tempfile
import time
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from fewer.core.errors import UserError
from fewer.packs.file import container
from fewer.packs.pack import decode, open_bytes, write
from fewer.packs.program import Input, Node, PackError, Program

SECONDS = 10


def _program() -> Program:
    conv = {
        "stride": [1, 1], "padding": [1, 1], "dilation": [1, 1], "groups": 1, "transposed": False,
        "output_padding": [0, 0],
    }  # fmt: skip
    pool = {"kernel": [2, 2], "stride": [2, 2], "padding": [0, 0], "dilation": [1, 1], "ceil": False}
    return Program(
        (Input("x", (1, 8, 8)),),
        (
            Node("conv", ("x", "conv.weight", "conv.bias"), "a", conv),
            Node("relu", ("a",), "b"),
            Node("max_pool", ("b",), "c", pool),
            Node("reshape", ("c",), "d", {"shape": ["batch", 64]}),
            Node("sub", ("d", "mean"), "e"),
            Node("linear", ("e", "first.weight", "first.bias"), "f"),
            Node("tanh", ("f",), "g"),
            Node("linear", ("g", "second.weight", "second.bias"), "h"),
            Node("gather", ("h", "table"), "i", {"axis": 1}),
            Node("softmax", ("h",), "j", {"axis": -1}),
        ),
        ("j",),
    )


def seeds(folder: Path) -> list[bytes]:
    """Small packs of every kind of value."""
    generator = np.random.default_rng(0)
    shapes = {"conv.weight": (4, 1, 3, 3), "first.weight": (24, 64), "second.weight": (10, 24)}
    tensors: dict[str, Any] = {n: generator.standard_normal(s).astype(np.float32) for n, s in shapes.items()}
    masks = {name: generator.random(shape) < 0.2 for name, shape in shapes.items()}
    for name, size in {"conv.bias": 4, "first.bias": 24, "second.bias": 10, "mean": 64}.items():
        tensors[name] = generator.standard_normal(size).astype(np.float32)
    tensors["table"] = np.zeros((1, 3), dtype=np.int64)
    packs = []
    for values in ("float32", "float16", "int8"):
        write(folder / "seed.pack", _program(), tensors, masks=masks, values=values, settings={"task": "fuzz"})
        packs.append((folder / "seed.pack").read_bytes())
    return packs


def _resealed(data: bytes) -> bytes:
    return data[: -container.DIGEST] + container.digest(data[: -container.DIGEST])


def _flipped(data: bytes, chance: random.Random) -> bytes:
    mutant = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 8, 64))):
        mutant[chance.randrange(len(mutant))] ^= 1 << chance.randrange(8)
    return bytes(mutant)


def _cut(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data))
    length = chance.choice((1, 2, 16, 256, len(data)))
    middle = chance.choice((b"", bytes(length), chance.randbytes(length), data[start : start + length] * 2))
    return data[:start] + middle + data[start + length :]


def _edited(value: Any, chance: random.Random) -> Any:
    """A header with one thing changed, somewhere."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(list(value))
        changed = {**value, key: _edited(value[key], chance)}
        if chance.random() < 0.1:
            del changed[key]
        return changed
    if isinstance(value, list) and value and chance.random() < 0.9:
        place = chance.randrange(len(value))
        rest = [_edited(value[place], chance)] * chance.choice((0, 1, 1, 1, 1, 2))
        return value[:place] + rest + value[place + 1 :]
    strange = (0, -1, 1, 2, 3, 7, 64, 255, 65536, 2**31, 2**32, 2**63, 10**30, 0.5, float("nan"), float("inf"), "", "x")
    return chance.choice(
        (*strange, "batch", "9*batch", "float32", "int8", "relu", "conv", None, True, [], {}, [[1]], "h")
    )


def _with_header(data: bytes, chance: random.Random) -> bytes:
    size = container._FIXED.size
    magic, version, zero, packed, _ = container._FIXED.unpack_from(data)
    header = json.loads(zlib.decompress(data[size : size + packed]))
    for _ in range(chance.choice((1, 1, 1, 3))):
        header = _edited(header, chance)
    text = json.dumps(header).encode()
    fresh = zlib.compress(text)
    fixed = struct.pack("<8sHHII", magic, version, zero, len(fresh), len(text))
    return fixed + fresh + data[size + packed :]


def mutant(originals: list[bytes], chance: random.Random) -> tuple[bytes, bool]:
    """A changed pack, and whether its checksum was made right again."""
    data = chance.choice(originals)
    change = chance.choice((_flipped, _cut, _with_header))
    changed = change(data, chance)
    repaired = chance.random() < 0.5 and len(changed) > container.DIGEST
    return (_resealed(changed) if repaired else changed), repaired


class Slowest:
    """The most processor time that one mutant took; more than `SECONDS` is an error."""

    def __init__(self) -> None:
        self.seconds = 0.0
        signal.signal(signal.SIGPROF, _late)

    def __enter__(self) -> None:
        self._began = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, SECONDS)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        self.seconds = max(self.seconds, time.process_time() - self._began)


def _late(*_: Any) -> None:
    raise TimeoutError(f"more than {SECONDS} seconds")


def run(count: int, seed: int = 0, *, slowest: Slowest | None = None) -> Counter[str]:
    """Try so many mutants and count what became of them; raises at the first that misbehaves."""
    chance, outcomes, watched = random.Random(seed), Counter[str](), slowest or Slowest()
    with tempfile.TemporaryDirectory() as folder:
        originals = seeds(Path(folder))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(count):
        data, repaired = mutant(originals, chance)
        try:
            with watched:
                pack = decode(*open_bytes(data))
            if not repaired and data not in originals:
                raise AssertionError(f"mutant {number} of seed {seed}: accepted although its checksum is wrong")
            outcomes["opened"] += 1
        except PackError:
            outcomes["refused"] += 1
            continue
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        if grown > 256:
            raise AssertionError(f"mutant {number} of seed {seed}: {grown:.0f} MB to open {len(data)} bytes")
        try:
            with watched:
                inputs = next(iter(pack.networks.values())).inputs
                pack.predict(*[np.zeros((1, *item.shape), item.dtype) for item in inputs])
            outcomes["predicted"] += 1
        except UserError:
            outcomes["refused to predict"] += 1
    return outcomes


def main() -> None:
    """Count from the command line."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    start = time.perf_counter()
    outcomes = run(count, seed)
    print(f"{count} mutants, {dict(outcomes)}, {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
