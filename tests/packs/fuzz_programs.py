"""Changed programs of shipped packs and of every operation: `python -m tests.packs.fuzz_programs 20000 [seed]`.

`fuzz_pack` changes bytes; here the file is sound and what it says is not: sizes, axes, operations, the order of values
and the shapes of tensors. A mutant must be refused with a PackError or predict, within the numbers it is allowed.
"""

from __future__ import annotations

import copy
import random
import sys
import time
import tracemalloc
import warnings
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from fewer import zoo
from fewer.packs.pack import decode, load
from fewer.packs.program import OPERATIONS, PackError
from fewer.packs.shapes.demand import Allowance
from tests.packs.fuzz_pack import Slowest
from tests.packs.predictions import PREDICTIONS, traced

LIMITS = Allowance(numbers=1 << 22, work=1 << 28, batch_numbers=1 << 23)
# eight bytes a number, and copies that numpy makes within an operation
MOST_BYTES = 3 * 8 * LIMITS.numbers
NUMBERS = (-(2**61), -(2**31), -7, -1, 0, 1, 2, 3, 4, 7, 16, 100, 1000, 2**16, 2**22, 2**31, 2**40, 2**61)

WORDS = (
    "constant", "reflect", "edge", "wrap", "linear", "nearest", "tanh", "relu", "bool", "int64", "states", "cell",
    "set", "amax", "add",
)  # fmt: skip


class Decoded:
    """Stands in for the decoder of a file whose tensors are known."""

    def __init__(self, tensors: dict[str, np.ndarray]) -> None:
        self._tensors = tensors

    def read_masks(self, entries: Any) -> None:
        """There are none."""

    def tensors(self, entries: Any) -> Iterator[tuple[str, str, np.ndarray, None]]:
        """All of them."""
        for name, value in self._tensors.items():
            yield name, "float32", value, None


@cache
def _original(name: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    if name in PREDICTIONS:
        _, program, tensors = traced(name)
        return {"net": program.to_json()}, tensors
    pack = load(zoo.path(name))
    networks = {key: network.program.to_json() for key, network in pack.networks.items()}
    return networks, pack.tensors()


def warm() -> None:
    """Read and trace all that is changed later."""
    for name in (*zoo.names(), *PREDICTIONS):
        _original(name)


def _attribute(kind: str, chance: random.Random) -> Any:
    """A value of the right kind that may be anything else."""
    match kind.rstrip("?"):
        case "int":
            return chance.choice(NUMBERS)
        case "number":
            return chance.choice((*NUMBERS, 0.5, -1.5, float("nan"), float("inf"), 1e-40))
        case "bool":
            return chance.random() < 0.5
        case "text":
            return chance.choice(WORDS)
        case "shape":
            return [chance.choice((*NUMBERS, "batch", "3*batch")) for _ in range(chance.randrange(6))]
    small = chance.random() < 0.5
    return [chance.choice((0, 1, 2, 3) if small else NUMBERS) for _ in range(chance.randrange(5))]


def _changed_number(value: Any, chance: random.Random) -> Any:
    """One number in an attribute changed, or its kind."""
    if isinstance(value, list) and value and chance.random() < 0.8:
        place = chance.randrange(len(value))
        return [*value[:place], _changed_number(value[place], chance), *value[place + 1 :]]
    if isinstance(value, list):
        return value + value if chance.random() < 0.5 else value[1:]
    if isinstance(value, bool):
        return not value
    return chance.choice((*NUMBERS, "batch", "49*batch")) if isinstance(value, int | str) else chance.choice(NUMBERS)


def _random_node(values: list[str], name: str, chance: random.Random) -> list[Any]:
    op = chance.choice(list(OPERATIONS))
    signature = OPERATIONS[op]
    count = chance.randint(signature.fewest, max(signature.fewest, min(signature.most, 4)))
    options = {key: _attribute(kind, chance) for key, kind in signature.attributes.items() if chance.random() < 0.95}
    return [op, [chance.choice(values) for _ in range(count)], name, options]


def _change_program(program: dict[str, Any], tensors: dict[str, np.ndarray], chance: random.Random) -> None:
    nodes = program["nodes"]
    place = chance.randrange(len(nodes))
    node = nodes[place]
    known = [item[0] for item in program["inputs"]] + [other[2] for other in nodes[:place]] + list(tensors)
    match chance.randrange(8):
        case 0 | 1 if node[3]:
            key = chance.choice(list(node[3]))
            node[3][key] = _changed_number(node[3][key], chance)
        case 2 if node[1]:
            node[1][chance.randrange(len(node[1]))] = chance.choice(known)
        case 3:
            node[0] = chance.choice([op for op in OPERATIONS if {*OPERATIONS[op].attributes} >= {*node[3]}])
        case 4:
            name = f"new{chance.randrange(10**9)}"
            nodes.insert(place, _random_node(known, name, chance))
            node[1] = [name if chance.random() < 0.5 else other for other in node[1]]
        case 5:
            several = [
                ["concat", [node[2]] * 2 if i == 0 else [f"c{i - 1}"] * 2, f"c{i}", {"axis": 1}] for i in range(40)
            ]
            nodes[place + 1 : place + 1] = several[: chance.choice((1, 3, 40))]
            program["outputs"] = [nodes[-1][2]]
        case 6:
            del nodes[place]
        case _:
            item = chance.choice(program["inputs"])
            item[1] = _changed_number(item[1], chance)


def _change_tensor(tensors: dict[str, np.ndarray], chance: random.Random) -> None:
    name = chance.choice(list(tensors))
    value = tensors[name]
    shapes = [(1, *value.shape), (*value.shape, 1), (-1,), (1, -1), value.shape[::-1], (value.size, 1)]
    match chance.randrange(4):
        case 0:
            tensors[name] = value[:-1] if value.ndim else value
        case 1:
            tensors[name] = value.astype(chance.choice(("float64", "int64", "bool")))
        case 2:
            tensors[name] = np.zeros([chance.choice((0, 1, 2, 5)) for _ in range(chance.randrange(5))], np.float32)
        case _:
            tensors[name] = value.reshape(chance.choice(shapes) if value.size else (0,))


def mutant(name: str, chance: random.Random) -> tuple[dict[str, Any], Decoded]:
    """The header and the tensors of a pack with one to three things changed."""
    networks, tensors = copy.deepcopy(_original(name)[0]), dict(_original(name)[1])
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        program = chance.choice(list(networks.values()))
        if tensors and chance.random() < 0.2:
            _change_tensor(tensors, chance)
        elif program["nodes"]:
            _change_program(program, tensors, chance)
    return {"settings": {}, "masks": [], "tensors": [], "networks": networks}, Decoded(tensors)


def run(count: int, seed: int = 0, *, slowest: Slowest | None = None, traced: bool = True) -> Counter[str]:
    """Try so many mutants and count what became of them; raises at the first that misbehaves.

    `traced` follows the memory of each, which takes three times as long.
    """
    chance, outcomes, names = random.Random(seed), Counter[str](), [*zoo.names(), *PREDICTIONS]
    watched = slowest or Slowest()
    if traced:
        tracemalloc.start()
    for number in range(count):
        header, decoder = mutant(names[number % len(names)], chance)
        before = tracemalloc.get_traced_memory()[0]
        if traced:
            tracemalloc.reset_peak()
        opened = False
        try:
            with watched:
                pack = decode(header, decoder, LIMITS)  # type: ignore[arg-type]
                opened = True
                inputs = next(iter(pack.networks.values())).inputs
                samples = chance.choice((0, 1, 2, 17))  # from some number on images pass side by side
                pack.predict(*[np.ones((samples, *item.shape), item.dtype) for item in inputs])
            outcomes["predicted"] += 1
        except PackError:
            outcomes["refused to predict" if opened else "refused"] += 1
        except Exception as error:
            raise AssertionError(f"mutant {number} of seed {seed}: {type(error).__name__}, {error}") from error
        grown = tracemalloc.get_traced_memory()[1] - before
        if grown > MOST_BYTES + 64 * sum(value.nbytes for value in decoder._tensors.values()):
            raise AssertionError(f"mutant {number} of seed {seed}: {grown >> 20} MB")
    tracemalloc.stop()
    return outcomes


def main() -> None:
    """Count from the command line."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    warnings.simplefilter("error")
    start = time.perf_counter()
    outcomes = run(count, seed)
    print(f"{count} mutants, {dict(outcomes)}, {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
