"""A program as steps, each a call: chains of layers and sparse ones in C, the rest in numpy."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fewer.packs.images.region import Region, gathered, regions
from fewer.packs.program import Node, PackError, Program, settled, varies
from fewer.packs.runtime.chain import Layer, Stage, compiled_chain, stage_of
from fewer.packs.runtime.convolution import sparse_convolution
from fewer.packs.runtime.layers import OPERATIONS
from fewer.packs.runtime.ops import Array, allowed
from fewer.packs.runtime.quick import quick
from fewer.packs.runtime.recurrent import GATES, sparse_recurrence
from fewer.packs.runtime.rows import row_operation
from fewer.packs.runtime.threads import ALONE, Threads
from fewer.packs.shapes.rules import Shape

__all__ = ["WRONG", "Budget", "Step", "chains", "failed", "one_sample", "step_of", "steps", "whole_chain"]

WRONG = (ValueError, TypeError, IndexError, KeyError, OverflowError, ZeroDivisionError, MemoryError, AttributeError)


@dataclass
class Budget:
    """How many weights may still be laid out for C: a program that names one tensor a thousand times gets one copy."""

    numbers: int

    @classmethod
    def of(cls, tensors: Mapping[str, Array]) -> Budget:
        """Enough for every tensor to be looked at and laid out in several networks; something also without any."""
        return cls(1 + 8 * sum(value.size for value in tensors.values()))

    def takes(self, node: Node, tensors: Mapping[str, Array]) -> bool:
        """Whether a node's tensors are within it, and if so, what is left afterwards."""
        wanted = sum(tensors[name].size for name in node.inputs if name in tensors)
        if wanted > self.numbers:
            return False
        self.numbers -= wanted
        return True


@dataclass(frozen=True)
class Step:
    """A piece of a program: the values it reads, the one it makes, and how."""

    name: str
    inputs: tuple[str, ...]
    output: str
    call: Callable[..., Array]
    varying: Mapping[str, Any] | None = None  # attributes that depend on the number of samples or on their length
    silent: bool = False  # whether numpy has nothing to warn of

    def run(self, values: Mapping[str, Array], batch: int, time: int = 0) -> Array:
        """Its value; whatever goes wrong inside is a PackError that names the operation."""
        try:
            inputs = [values[name] for name in self.inputs]
            if self.varying is None:
                return self.call(*inputs)
            options = settled(self.varying, batch, time)
            if "shape" in options:
                allowed(options["shape"])
            return self.call(*inputs, **options)
        except PackError:
            raise
        except WRONG as error:
            raise failed(self.name, error) from error


def failed(operation: str, error: Exception) -> PackError:
    """What is said of a step in which something went wrong."""
    return PackError(f"{operation} failed ({error})", "values that fit the operation")


# by operation: how it is made sparse, and how many inputs after the first are then within it
_SPARSE: dict[str, tuple[Callable[[Node, Mapping[str, Array]], Callable[..., Array] | None], int]] = {
    "conv": (sparse_convolution, 2),
    **dict.fromkeys(GATES, (sparse_recurrence, 4)),
}


def step_of(node: Node) -> Step:
    """A node as numpy does it."""
    if node.op == "reshape" and (rest := _samples_apart(node.attributes["shape"])):
        return Step(node.op, node.inputs, node.output, partial(_reshaped, (-1, *rest)), silent=True)
    if (call := quick(node)) is not None:
        return Step(node.op, node.inputs, node.output, call)
    function = OPERATIONS[node.op]
    attributes = {name: value for name, value in node.attributes.items() if not varies(node, name)}

    def called(*inputs: Array, **rest: Any) -> Array:
        return function(*inputs, **attributes, **rest)

    varying = {name: value for name, value in node.attributes.items() if name not in attributes}
    return Step(node.op, node.inputs, node.output, called, varying or None)


def _reshaped(shape: tuple[int, ...], x: Array) -> Array:
    return x.reshape(shape)


def _samples_apart(shape: Sequence[Any]) -> tuple[int, ...]:
    """The rest of a shape that begins with the samples and says nothing else that varies; nothing for others."""
    rest = tuple(shape[1:])
    return rest if shape[:1] == ["batch"] and all(isinstance(size, int) and size > 0 for size in rest) else ()


def one_sample(program: Program, tensors: Mapping[str, Array], time: int | None = None) -> dict[str, Array]:
    """Every value of a program for one sample of zeros: what an exporter learns shapes and types from."""
    time = program.usual if time is None else time
    values: dict[str, Array] = {name: tensors[name] for name in program.used() if name in tensors}
    for item in program.inputs:
        values[item.name] = np.zeros((1, *program.shape_of(item, time)), dtype=item.dtype)
    with np.errstate(all="ignore"):
        for node in program.nodes:
            values[node.output] = step_of(node).run(values, 1, time)
    return values


def chains(
    program: Program, tensors: Mapping[str, Array], budget: Budget | None = None, begin: int = 0, end: int | None = None
) -> Iterator[list[tuple[Node, Stage | None]]]:
    """The nodes in order (some, if asked for), those of a chain together: each is the only reader of the one before."""
    budget = budget or Budget.of(tensors)
    readers: dict[str, int] = {}
    for name in [name for node in program.nodes for name in node.inputs] + list(program.outputs):
        readers[name] = readers.get(name, 0) + 1
    run: list[tuple[Node, Stage | None]] = []
    for node in program.nodes[begin:end]:
        able = node.inputs and node.inputs[0] not in tensors and budget.takes(node, tensors)
        stage = stage_of(node, tensors) if able else None
        follows = run and run[-1][1] is not None and node.inputs and run[-1][0].output == node.inputs[0]
        if run and (stage is None or not follows or readers[node.inputs[0]] > 1):
            yield run
            run = []
        run.append((node, stage))
    if run:
        yield run


def steps(
    program: Program,
    tensors: Mapping[str, Array],
    budget: Budget,
    shapes: Mapping[str, Shape],
    threads: Threads = ALONE,
) -> Iterator[Step]:
    """The steps of a program; without a budget, in numpy alone."""
    if not budget.numbers:
        yield from map(step_of, program.nodes)
        return
    begin, fixed = 0, program.time is None  # images are laid out for one size
    program = gathered(program, tensors, shapes) if fixed else program
    for region in regions(program, tensors, shapes) if fixed else ():
        if not all(budget.takes(node, tensors) for node in program.nodes[region.begin : region.end]):
            continue
        yield from _chained(program, (begin, region.begin), tensors, budget, shapes, threads)
        yield from _together(replace(region, threads=threads))
        begin = region.end
    yield from _chained(program, (begin, len(program.nodes)), tensors, budget, shapes, threads)


def _together(region: Region) -> Iterator[Step]:
    """One step that makes all outputs of a region, and one more for each to pick it."""
    if len(region.outputs) == 1:
        call = region.only if len(region.inputs) == 1 else lambda *values: region(*values)[0]
        yield Step("images", region.inputs, region.outputs[0], call, silent=True)
        return
    whole = f"{region.outputs[0]} and others"
    yield Step("images", region.inputs, whole, region)  # type: ignore[arg-type]
    for place, name in enumerate(region.outputs):
        yield Step("images", (whole,), name, operator.itemgetter(place))


def _chained(
    program: Program, part: tuple[int, int], tensors: Mapping[str, Array], budget: Budget, shapes: Mapping[str, Shape],
    threads: Threads,
) -> Iterator[Step]:  # fmt: skip
    for run in chains(program, tensors, budget, *part):
        stages = [stage for _, stage in run if stage is not None]
        chain = _rows(stages, shapes[run[0][0].inputs[0]], threads) if stages else None
        if chain is not None:
            yield Step("a chain of layers", (run[0][0].inputs[0],), run[-1][0].output, chain, silent=True)
            continue
        for node, _ in run:
            yield _sparse_step(node, tensors, budget) or _row_step(node, tensors) or step_of(node)


def _sparse_step(node: Node, tensors: Mapping[str, Array], budget: Budget) -> Step | None:
    """A convolution or a recurrent layer of kept weights alone, where that is faster."""
    make, weights = _SPARSE.get(node.op, (None, 0))
    call = make(node, tensors) if make is not None and budget.takes(node, tensors) else None
    inputs = node.inputs[:1] + node.inputs[1 + weights :]
    return None if call is None else Step(node.op, inputs, node.output, call)


def _row_step(node: Node, tensors: Mapping[str, Array]) -> Step | None:
    call = row_operation(node, tensors)
    silent = node.op in ("softmax", "log_softmax")
    return None if call is None else Step(node.op, node.inputs, node.output, call, silent=silent)


def _work(stages: Sequence[Stage]) -> float:
    return float(sum(np.count_nonzero(stage.weight) for stage in stages if isinstance(stage, Layer)))


def _rows(stages: list[Stage], shape: Shape, threads: Threads) -> Callable[[Array], Array] | None:
    """A chain over the last axis of a value of a shape like this one."""
    chain = compiled_chain(stages, shape[-1:]) if len(shape) > 1 else None
    if chain is None:
        return None
    width, work = shape[-1], _work(stages)

    def call(x: Array) -> Array:
        if x.ndim == 2 and threads.count == 1 and (found := chain(x)) is not None:
            return np.asarray(found)
        if x.shape[-1] != width:
            raise ValueError(f"{x.shape[-1]} features, expected {width}")
        rows = np.ascontiguousarray(x.reshape(-1, width), dtype=np.float32)
        answer = chain(rows) if threads.count == 1 else threads.shared(lambda part: (chain(part),), (rows,), work)[0]
        return answer.reshape(*x.shape[:-1], answer.shape[-1])

    return call


def whole_chain(
    program: Program, tensors: Mapping[str, Array], budget: Budget, threads: Threads = ALONE
) -> Callable[[ArrayLike], Any] | None:
    """The whole program as one call, if it is a chain from its only input (perhaps flattened) to its only output."""
    if len(program.inputs) != 1 or len(program.outputs) != 1 or program.inputs[0].dtype != "float32":
        return None
    source, name = program.inputs[0], program.inputs[0].name
    nodes = list(program.nodes)
    flat = len(source.shape) == 1
    if nodes and nodes[0].op == "reshape" and nodes[0].inputs == (name,):
        flat = nodes[0].attributes["shape"] == ["batch", int(np.prod(source.shape))]
        name = nodes.pop(0).output
    stages = []
    for node in nodes:
        able = node.inputs[:1] == (name,) and budget.takes(node, tensors)
        stage = stage_of(node, tensors) if able else None
        if stage is None or name in node.inputs[1:]:
            return None
        stages.append(stage)
        name = node.output
    if not flat or name != program.outputs[0]:
        return None
    chain = compiled_chain(stages, source.shape)
    if chain is None or threads.count == 1:
        return chain
    work = _work(stages)

    def call(x: ArrayLike) -> Any:
        ready = isinstance(x, np.ndarray) and x.dtype == np.float32 and x.flags.c_contiguous
        if not ready or x.ndim != len(source.shape) + 1 or x.shape[1:] != source.shape:  # type: ignore[union-attr]
            return chain(x)
        return threads.shared(lambda part: (chain(part),), (np.asarray(x),), work)[0]

    return call
