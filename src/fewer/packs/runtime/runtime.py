"""Packs in use: numpy and the C kernels alone, no torch.

A program is run node by node in numpy, except where C is faster: chains of layers become one call, and sparse
convolutions a product that reads the padded image in place. Without the compiled kernels numpy does it all, with
the same answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fewer.core.errors import UserError
from fewer.packs.program import Input, PackError, Program
from fewer.packs.runtime.apart import apart, samples_at_once, work
from fewer.packs.runtime.ops import Array
from fewer.packs.runtime.sequence import StepSequence
from fewer.packs.runtime.steps import Budget, steps, whole_chain
from fewer.packs.runtime.threads import Threads
from fewer.packs.shapes.demand import Allowance, shapes_of
from fewer.packs.shapes.rules import Shape
from fewer.packs.show import pack_shown

__all__ = ["Network", "Pack"]

_MOST_KNOWN = 4096  # numbers of samples and lengths that are remembered


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
        threads: int = 1,
    ) -> None:
        self.program, self._allowance = program, allowance or Allowance()
        self._wanted = tuple((item.name, item.shape, np.dtype(item.dtype)) for item in program.inputs)
        self._tensors = {name: tensors[name] for name in program.used() if name in tensors}
        self._allowed: set[tuple[int, int]] = set()  # numbers of samples, and lengths, that are known to fit
        shapes = self._shapes(1, program.usual)
        self._sequence: StepSequence | None = None  # made when it is first needed
        budget = (budget or Budget.of(self._tensors)) if compiled else Budget(0)
        with np.errstate(all="ignore"):  # weights may be anything, also signalling NaN
            several = Threads(threads)
            self._whole = whole_chain(program, self._tensors, budget, several)
            found = () if self._whole is not None else steps(program, self._tensors, budget, shapes, several)
            self._steps = list(found)
        self._threads, self._at_once, self._work = several, 0, 0.0
        if budget.numbers and len(self._steps) > 1 and apart(program, shapes):
            made = [step.output for step in self._steps if step.output in shapes]
            self._at_once, self._work = samples_at_once(made, shapes), work(program, self._tensors, shapes)

    @property
    def inputs(self) -> tuple[Input, ...]:
        """What it has to be given, without the samples' axis."""
        return self.program.inputs

    def _shapes(self, batch: int, time: int) -> Mapping[str, Shape]:
        """The shape of every value; a PackError where they do not fit together or are more than allowed."""
        tensors = {name: value.shape for name, value in self._tensors.items()}
        found = shapes_of(self.program, tensors, batch, self._allowance, time)
        if len(self._allowed) >= _MOST_KNOWN:  # whoever sends every length is not to fill the memory with them
            self._allowed.clear()
        self._allowed.add((batch, time))
        return found

    def samples_within(self, time: int, numbers: int, most: int) -> int:
        """How many samples of this length, at most so many, a prediction holds in so many numbers; 0: not even one."""
        tensors = {name: value.shape for name, value in self._tensors.items()}
        within = Allowance(numbers, self._allowance.work, numbers)
        while most:
            try:
                shapes_of(self.program, tensors, most, within, time)
                return most
            except PackError:
                most //= 2
        return 0

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
        outputs = self._run(arrays)
        if single:
            outputs = tuple(output[0] for output in outputs)
        return outputs[0] if len(outputs) == 1 else outputs

    def _bound(self, inputs: tuple[ArrayLike, ...], named: Mapping[str, ArrayLike]) -> tuple[dict[str, Array], bool]:
        if (ready := self._ready(inputs, named)) is not None:
            return ready, False
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
            if extra not in (0, 1) or not self._fits(item, array.shape[extra:]):
                raise UserError(f"{item.name} of shape {array.shape}", self._expected(item))
            ranks.add(extra)
            arrays[item.name] = array if extra else array[None]
        if len(ranks) > 1 or len({len(array) for array in arrays.values()}) > 1:
            shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
            raise UserError(f"inputs of {shapes}", "the same number of samples in each")
        return arrays, ranks == {0}

    def _ready(self, inputs: tuple[ArrayLike, ...], named: Mapping[str, ArrayLike]) -> dict[str, Array] | None:
        """By name, if all are arrays of the right type and as many samples: as most are called, nothing to convert."""
        if len(inputs) + len(named) != len(self._wanted):
            return None
        values = (*inputs, *[named.get(one[0]) for one in self._wanted[len(inputs) :]]) if named else inputs
        found: dict[str, Array] = {}
        samples = -1
        for (name, shape, dtype), value in zip(self._wanted, values):
            if not isinstance(value, np.ndarray) or value.dtype != dtype:
                return None
            given = value.shape
            if given[1:] != shape or not given or samples not in (-1, given[0]):
                return None
            samples = given[0]
            found[name] = value
        return found

    def _fits(self, item: Input, shape: tuple[int, ...]) -> bool:
        time = self.program.time
        if time is None or item.name not in time.inputs or shape == item.shape:
            return shape == item.shape
        return shape[1:] == item.shape[1:] and 0 < shape[0] <= (time.most or shape[0])

    def _expected(self, item: Input) -> str:
        time, sizes = self.program.time, list(map(str, item.shape))
        if time is not None and item.name in time.inputs:
            sizes[0] = "time"
        one = ", ".join(sizes) + ("," if len(sizes) == 1 else "")
        most = f" of at most {time.most} steps" if time is not None and time.most and "time" in sizes else ""
        return f"({one}) or (samples, {', '.join(sizes)}){most}"

    def _length(self, arrays: Mapping[str, Array]) -> int:
        """The one length of all sequences; 0 where lengths do not vary."""
        if self.program.time is None:
            return 0
        lengths = {name: arrays[name].shape[1] for name in self.program.time.inputs}
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"{name} of {length}" for name, length in lengths.items())
            raise UserError(f"sequences of different lengths, {told} steps", "one length for all inputs")
        return next(iter(lengths.values()), 0)

    def _run(self, arrays: dict[str, Array]) -> tuple[Array, ...]:
        batch, time = len(next(iter(arrays.values()))), self._length(arrays)
        if (batch, time) not in self._allowed:
            self._shapes(batch, time)
        if self._sequence is None:
            self._sequence = StepSequence(self._steps, self._tensors, self.program.outputs)
        sequence = self._sequence
        if not self._at_once or batch < 2:
            return sequence(arrays, batch, time)
        names, given = tuple(arrays), tuple(arrays.values())
        return self._threads.shared(lambda *x: self._in_parts(sequence, dict(zip(names, x))), given, self._work)

    def _in_parts(self, sequence: StepSequence, arrays: Mapping[str, Array]) -> tuple[Array, ...]:
        """Samples that are computed each by itself, so many at once as stay near the processor."""
        batch, some = len(next(iter(arrays.values()))), self._at_once
        if batch <= some:
            return sequence(arrays, batch, 0)
        parts = [{name: x[i : i + some] for name, x in arrays.items()} for i in range(0, batch, some)]
        answers = [sequence(part, min(some, batch - i * some), 0) for i, part in enumerate(parts)]
        return tuple(np.concatenate(same) for same in zip(*answers))


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
        threads: int = 1,
    ) -> None:
        budget = Budget.of(tensors)
        self.networks = {
            name: Network(program, tensors, budget=budget, allowance=allowance, threads=threads)
            for name, program in programs.items()
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
