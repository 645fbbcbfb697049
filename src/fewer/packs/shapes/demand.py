"""What a program asks for before it runs: the shape of every value, the numbers held at once, and the arithmetic.

A file of 200 bytes can name a pool of four million places, or double a value a hundred times. So shapes are worked out
when a pack is opened, for one sample, and again for the batch that it is given; what does not fit together, or asks
for more than `Allowance` allow, is refused before anything is allocated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fewer.packs.program import Node, PackError, Program, settled, varies
from fewer.packs.runtime.layers import COLUMNS
from fewer.packs.runtime.recurrent import GATES
from fewer.packs.shapes.layers import RULES, attention_scores, padded, pooled, transposed_full
from fewer.packs.shapes.rules import Shape

__all__ = ["Allowance", "shapes_of"]

_RANK = 16  # axes of a value
_CALL = 1 << 14  # what a call of Python costs, in multiplications
_EACH, _SLOW = 4, 64  # what a number read or made costs; and where it is sorted, scattered, or put into a series
_SLOW_ONES = {
    "sort", "argsort", "scatter", "scatter_add", "index_add", "index_put", "erf", "gelu", "pow", "sin", "cos", "tan",
    "asin", "acos", "atan", "atan2", "sinh", "cosh", "asinh", "acosh", "atanh", "remainder", "fmod",
}  # fmt: skip


@dataclass(frozen=True)
class Allowance:
    """What a prediction may take: by default, more than any network of the tasks does at the size it is trained at."""

    numbers: int = 1 << 28  # held at once for one sample, 4 or 8 bytes each
    work: int = 1 << 36  # multiplications for one sample
    batch_numbers: int = 1 << 30  # held at once for all samples of a call

    @classmethod
    def unlimited(cls) -> Allowance:
        """None, for a pack whose maker is known."""
        return cls(1 << 62, 1 << 62, 1 << 62)

    def check(self, numbers: int, work: int, batch: int) -> None:
        """Refuse what takes more for so many samples."""
        samples = max(1, batch)
        for asked, most, what in (
            (numbers, min(self.numbers * samples, self.batch_numbers), "numbers at once"),
            (work, self.work * samples, "multiplications"),
        ):
            if asked > most:
                cure = (
                    "give it fewer samples"
                    if batch > 1
                    else "open it with --trust (or `allowance`) if you know its maker"
                )
                raise PackError(f"a prediction that takes {asked:.3g} {what}", f"at most {most:.3g}", cure)


def shapes_of(
    program: Program, tensors: Mapping[str, Shape], batch: int, allowance: Allowance, time: int | None = None
) -> dict[str, Shape]:
    """The shapes of all values; refused where they do not fit together or making them takes more than allowed."""
    time = program.usual if time is None else time
    shapes: dict[str, Shape] = {name: tuple(tensors[name]) for name in program.used() if name in tensors}
    constant = set(shapes)
    shapes |= {item.name: (batch, *program.shape_of(item, time)) for item in program.inputs}
    last = {name: place for place, node in enumerate(program.nodes) for name in node.inputs}
    held, work = sum(math.prod(shapes[item.name]) for item in program.inputs), 0
    for place, node in enumerate(program.nodes):
        shapes[node.output], passing, effort = _made(node, shapes, batch, time)
        held, work = held + math.prod(shapes[node.output]), work + effort
        allowance.check(held + passing, work, batch)
        if not varies(node) and constant.issuperset(node.inputs):
            constant.add(node.output)  # worked out once and kept
        done = {name for name in node.inputs if last[name] == place} - constant - set(program.outputs)
        held -= sum(math.prod(shapes[name]) for name in done)
    if any(not shapes[name] for name in program.outputs):
        raise PackError("an answer without an axis of samples", "samples on axis 0")
    return shapes


def _made(node: Node, shapes: Mapping[str, Shape], batch: int, time: int) -> tuple[Shape, int, int]:
    """The shape of a node's value, the numbers that are held beside it, and the multiplications."""
    given = [shapes[name] for name in node.inputs]
    try:
        options = settled(node.attributes, batch, time)
        shape = RULES[node.op](*given, **options)
        if len(shape) > _RANK or min(shape, default=0) < 0:
            raise ValueError(f"at most {_RANK} axes, of sizes from 0 on")
        count = _SLOW if node.op in _SLOW_ONES else _EACH
        touched = count * (math.prod(shape) + sum(map(math.prod, given)))
        passing, effort = _EFFORTS[node.op](given, shape, options) if node.op in _EFFORTS else (0, 0)
    except PackError:
        raise
    except ValueError as error:
        named = ", ".join(f"{name} {size}" for name, size in zip(node.inputs, given))
        raise PackError(f"{node.op} of {named!s:.120}", str(error)) from error
    return shape, passing, _CALL + touched + effort


Effort = Callable[[list[Shape], Shape, Mapping[str, Any]], tuple[int, int]]


def _linear(given: list[Shape], made: Shape, options: Mapping[str, Any]) -> tuple[int, int]:
    return 0, math.prod(made) * given[0][-1]


def _attention(given: list[Shape], made: Shape, options: Mapping[str, Any]) -> tuple[int, int]:
    q, k, v, *mask = given
    scores = math.prod(attention_scores(q, k, None if options["causal"] or not mask else mask[0]))
    return 3 * scores + math.prod(q), scores * (q[-1] + v[-1] + _EACH)


def _recurrent(given: list[Shape], made: Shape, options: Mapping[str, Any]) -> tuple[int, int]:
    (steps, samples, features), (rows, state) = given[0], given[2]
    held = steps * samples * (rows + state + features) + 8 * samples * rows
    # a dozen calls and four curves for every step
    return held, steps * (16 * _CALL + samples * rows * (features + 2 * state + _SLOW))


def _conv(given: list[Shape], made: Shape, options: Mapping[str, Any]) -> tuple[int, int]:
    x, weight = given[:2]
    kernel, samples = math.prod(weight[2:]), max(1, x[0])
    if options["transposed"]:
        full = transposed_full(x, weight, options["stride"], options["dilation"], options["output_padding"])
        filled = x[0] * options["groups"] * weight[1] * math.prod(full)
        return 2 * filled, math.prod(x) * weight[1] * kernel + filled * _EACH + kernel * _CALL
    # numpy copies windows, some at a time; C pads an image and makes the places that a stride leaves out
    window, image = x[1] * kernel, math.prod(padded(x, options["padding"]))
    columns, sparse = x[0] * math.prod(made[2:]) * window, image * (x[1] + weight[0])
    return (
        x[0] * image * x[1] + math.prod(made) + max(min(columns, max(COLUMNS, window)), sparse),
        math.prod(made) * weight[1] * kernel + samples * (sparse * _EACH + _CALL),
    )


def _pool(given: list[Shape], made: Shape, options: Mapping[str, Any]) -> tuple[int, int]:
    x, (places, _) = given[0], pooled(given[0], **options)
    image = x[0] * x[1] * math.prod(places)
    return image, image + math.prod(made) * math.prod(options["kernel"]) * _EACH


def _resized(given: list[Shape], made: Shape, options: Mapping[str, Any]) -> tuple[int, int]:
    """An axis at a time: sizes between the two may be larger than either."""
    x, first = given[0], len(made) - len(options["size"])
    between = max(math.prod(made[:axis]) * math.prod(x[axis:]) for axis in range(first, len(made) + 1))
    return 4 * between, between * _EACH * len(options["size"])


_EFFORTS: dict[str, Effort] = {
    "linear": _linear, "matmul": _linear, "attention": _attention, "conv": _conv,
    **dict.fromkeys(GATES, _recurrent), "max_pool": _pool, "avg_pool": _pool,
    "adaptive_avg_pool": _resized, "adaptive_max_pool": _resized, "interpolate": _resized,
}  # fmt: skip
