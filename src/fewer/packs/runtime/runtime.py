"""Packs in use: numpy and the C kernels alone, no torch.

A program is run node by node in numpy, except where C is faster: chains of layers become one call, and sparse
convolutions a product that reads the padded image in place. Without the compiled kernels numpy does it all, with
the same answers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fewer.core.errors import UserError
from fewer.packs.images.region import Region, regions
from fewer.packs.program import Input, Node, PackError, Program, dimension
from fewer.packs.runtime.chain import Stage, compiled_chain, stage_of
from fewer.packs.runtime.layers import OPERATIONS
from fewer.packs.runtime.ops import Array, allowed
from fewer.packs.shapes.demand import Allowance, shapes_of
from fewer.packs.shapes.rules import Shape
from fewer.packs.show import pack_shown

__all__ = ["Network", "Pack", "chains", "one_sample", "step_of"]

_WRONG = (ValueError, TypeError, IndexError, KeyError, OverflowError, ZeroDivisionError, MemoryError, AttributeError)


@dataclass
class Budget:
    """How many weights may still be laid out for C: a program that names one tensor a thousand times gets one copy."""

    numbers: int

    @classmethod
    def of(cls, tensors: Mapping[str, Array]) -> Budget:
        """Enough for every tensor to be looked at and laid out in several networks."""
        return cls(8 * sum(value.size for value in tensors.values()))

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
    shape: tuple[int | str, ...] | None = None  # an attribute that depends on the number of samples

    def run(self, values: Mapping[str, Array], batch: int) -> Array:
        """Its value; whatever goes wrong inside is a PackError that names the operation."""
        try:
            inputs = [values[name] for name in self.inputs]
            if self.shape is None:
                return self.call(*inputs)
            return self.call(*inputs, shape=allowed([dimension(size, batch) for size in self.shape]))
        except PackError:
            raise
        except _WRONG as error:
            raise PackError(f"{self.name} failed ({error})", "values that fit the operation") from error


class Network:
    """One network of a pack: its program, compiled for this machine."""

    def __init__(
        self,
        program: Program,
        tensors: Mapping[str, Array],
        *,
        compiled: bool = True,
        budget: Budget | None = None,
        allowance: Allowance | None = None,
    ) -> None:
        self.program, self._allowance = program, allowance or Allowance()
        self._tensors = {name: tensors[name] for name in program.used() if name in tensors}
        self._allowed: set[int] = set()  # numbers of samples that are known to fit
        shapes = self._shapes(1)
        self._constants: dict[str, Array] | None = None
        self._varying: list[tuple[Step, list[str]]] = []
        budget = (budget or Budget.of(self._tensors)) if compiled else Budget(0)
        with np.errstate(all="ignore"):  # weights may be anything, also signalling NaN
            self._whole = _whole_chain(program, self._tensors, budget)
            self._steps = [] if self._whole is not None else list(_steps(program, self._tensors, budget, shapes))

    @property
    def inputs(self) -> tuple[Input, ...]:
        """What it has to be given, without the samples' axis."""
        return self.program.inputs

    def _shapes(self, batch: int) -> Mapping[str, Shape]:
        """The shape of every value; a PackError where they do not fit together or are more than allowed."""
        tensors = {name: value.shape for name, value in self._tensors.items()}
        found = shapes_of(self.program, tensors, batch, self._allowance)
        self._allowed.add(batch)
        return found

    def predict(self, *inputs: ArrayLike, **named: ArrayLike) -> Any:
        """The answer to one sample or to a batch, samples on axis 0; an array, or a tuple where there are several."""
        if self._whole is not None and len(inputs) == 1 and not named:
            answer = self._whole(inputs[0])
            if answer is not None:
                return answer
        arrays, single = self._bound(inputs, named)
        if self._whole is not None:
            answer = self._whole(np.ascontiguousarray(next(iter(arrays.values()))))
            return answer[0] if single else answer
        with np.errstate(all="ignore"):
            outputs = self._run(arrays)
        if single:
            outputs = [output[0] for output in outputs]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _bound(self, inputs: tuple[ArrayLike, ...], named: Mapping[str, ArrayLike]) -> tuple[dict[str, Array], bool]:
        wanted = [item.name for item in self.inputs]
        given: dict[str, ArrayLike] = dict(zip(wanted, inputs))
        if len(inputs) > len(wanted) or (given.keys() & named.keys()) or {*given, *named} != set(wanted):
            names = [f"input {i}" for i in range(len(inputs))] + list(named)
            raise UserError(f"given {', '.join(names) or 'nothing'}", f"one each of {', '.join(wanted)}")
        arrays: dict[str, Array] = {}
        ranks = set()
        for item in self.inputs:
            value = named[item.name] if item.name in named else given[item.name]
            try:
                array = np.asarray(value, dtype=item.dtype)
            except (TypeError, ValueError) as error:
                raise UserError(f"{item.name} that is no array ({error})", f"numbers of shape {item.shape}") from error
            extra = array.ndim - len(item.shape)
            if extra not in (0, 1) or array.shape[extra:] != item.shape:
                expected = f"{item.shape} or (samples, {', '.join(map(str, item.shape))})"
                raise UserError(f"{item.name} of shape {array.shape}", expected)
            ranks.add(extra)
            arrays[item.name] = array if extra else array[None]
        if len(ranks) > 1 or len({len(array) for array in arrays.values()}) > 1:
            shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
            raise UserError(f"inputs of {shapes}", "the same number of samples in each")
        return arrays, ranks == {0}

    def _run(self, arrays: dict[str, Array]) -> list[Array]:
        batch = len(next(iter(arrays.values())))
        if batch not in self._allowed:
            self._shapes(batch)
        if self._constants is None:
            self._settle()
        values = {**(self._constants or {}), **arrays}
        for step, done in self._varying:
            values[step.output] = step.run(values, batch)
            for name in done:
                del values[name]
        return [np.asarray(values[name]) for name in self.program.outputs]

    def _settle(self) -> None:
        """Work out once what depends on tensors alone, and when each other value is last read."""
        constants = dict(self._tensors)
        varying = []
        for step in self._steps:
            if step.shape is None and all(name in constants for name in step.inputs):
                constants[step.output] = step.run(constants, 0)
            else:
                varying.append(step)
        last = {name: place for place, step in enumerate(varying) for name in step.inputs if name not in constants}
        ends: list[list[str]] = [[] for _ in varying]
        for name, place in last.items():
            if name not in self.program.outputs:
                ends[place].append(name)
        needed = {name for step in varying for name in step.inputs} | set(self.program.outputs)
        self._varying = list(zip(varying, ends))
        self._constants = {name: value for name, value in constants.items() if name in needed}


def step_of(node: Node) -> Step:
    """A node as numpy does it."""
    function, attributes = OPERATIONS[node.op], dict(node.attributes)
    shape = attributes.pop("shape", None)

    def call(*inputs: Array, **rest: Any) -> Array:
        return function(*inputs, **attributes, **rest)

    return Step(node.op, node.inputs, node.output, call, None if shape is None else tuple(shape))


def one_sample(program: Program, tensors: Mapping[str, Array]) -> dict[str, Array]:
    """Every value of a program for one sample of zeros: what an exporter learns shapes and types from."""
    values: dict[str, Array] = {name: tensors[name] for name in program.used() if name in tensors}
    for item in program.inputs:
        values[item.name] = np.zeros((1, *item.shape), dtype=item.dtype)
    with np.errstate(all="ignore"):
        for node in program.nodes:
            values[node.output] = step_of(node).run(values, 1)
    return values


def chains(
    program: Program, tensors: Mapping[str, Array], budget: Budget | None = None, begin: int = 0, end: int | None = None
) -> Iterator[list[tuple[Node, Stage | None]]]:
    """The nodes in order, those of a chain together: each is the only reader of the one before it."""
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


def _steps(
    program: Program, tensors: Mapping[str, Array], budget: Budget, shapes: Mapping[str, Shape]
) -> Iterator[Step]:
    if not budget.numbers:
        yield from map(step_of, program.nodes)
        return
    begin = 0
    for region in regions(program, tensors, shapes):
        if not all(budget.takes(node, tensors) for node in program.nodes[region.begin : region.end]):
            continue
        yield from _chained(program, begin, region.begin, tensors, budget, shapes)
        yield from _together(region)
        begin = region.end
    yield from _chained(program, begin, len(program.nodes), tensors, budget, shapes)


def _together(region: Region) -> Iterator[Step]:
    """One step that makes all outputs of a region, and one more for each to pick it."""
    if len(region.outputs) == 1:
        yield Step("images", region.inputs, region.outputs[0], lambda *values: region(*values)[0])
        return
    whole = f"{region.outputs[0]} and others"
    yield Step("images", region.inputs, whole, region)  # type: ignore[arg-type]
    for place, name in enumerate(region.outputs):
        yield Step("images", (whole,), name, operator.itemgetter(place))


def _chained(
    program: Program, begin: int, end: int, tensors: Mapping[str, Array], budget: Budget, shapes: Mapping[str, Shape]
) -> Iterator[Step]:
    for run in chains(program, tensors, budget, begin, end):
        stages = [stage for _, stage in run if stage is not None]
        chain = _rows(stages, shapes[run[0][0].inputs[0]]) if stages else None
        if chain is not None:
            yield Step("a chain of layers", (run[0][0].inputs[0],), run[-1][0].output, chain)
            continue
        for node, _ in run:
            yield step_of(node)


def _rows(stages: list[Stage], shape: Shape) -> Callable[[Array], Array] | None:
    """A chain over the last axis of a value of a shape like this one."""
    chain = compiled_chain(stages, shape[-1:]) if len(shape) > 1 else None
    if chain is None:
        return None
    width = shape[-1]

    def call(x: Array) -> Array:
        if x.shape[-1] != width:
            raise ValueError(f"{x.shape[-1]} features, expected {width}")
        answer: Array = chain(np.ascontiguousarray(x.reshape(-1, width), dtype=np.float32))
        return answer.reshape(*x.shape[:-1], answer.shape[-1])

    return call


def _whole_chain(program: Program, tensors: Mapping[str, Array], budget: Budget) -> Callable[[ArrayLike], Any] | None:
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
    return compiled_chain(stages, source.shape)


class Pack:
    """What a file held: networks that predict, the settings that were stored with them, and all tensors."""

    def __init__(
        self,
        programs: Mapping[str, Program],
        tensors: Mapping[str, Array],
        *,
        masks: Mapping[str, Array] | None = None,
        kinds: Mapping[str, str] | None = None,
        settings: Mapping[str, Any] | None = None,
        allowance: Allowance | None = None,
    ) -> None:
        budget = Budget.of(tensors)
        self.networks = {
            name: Network(program, tensors, budget=budget, allowance=allowance) for name, program in programs.items()
        }
        self.settings = dict(settings or {})
        self.masks, self.kinds = dict(masks or {}), dict(kinds or {})
        self._tensors, self._first = dict(tensors), next(iter(self.networks.values()))

    def predict(self, *inputs: ArrayLike, **named: ArrayLike) -> Any:
        """The first network's answer to one sample or to a batch, samples on axis 0."""
        return self._first.predict(*inputs, **named)

    def tensors(self) -> dict[str, Array]:
        """Every tensor by name, dense."""
        return dict(self._tensors)

    _repr_html_ = pack_shown  # for Jupyter
