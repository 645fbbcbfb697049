"""Steps one after the other: what depends on tensors alone is worked out once, a value goes when it was read last."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fewer.packs.program import PackError
from fewer.packs.runtime.ops import Array
from fewer.packs.runtime.steps import WRONG, Step, failed

__all__ = ["StepSequence"]


class _Turn(NamedTuple):
    """A step as it is run; small networks spend more time between steps than in them."""

    step: Step
    output: str
    single: bool  # whether `read` finds one value, or a tuple of them
    read: Callable[[Mapping[str, Array]], Any]
    call: Callable[..., Array] | None  # none where attributes vary
    ended: tuple[str, ...]  # values that nobody reads afterwards


class StepSequence:
    """A function from inputs by name to outputs."""

    def __init__(self, steps: Iterable[Step], tensors: Mapping[str, Array], outputs: Sequence[str]) -> None:
        self.outputs, constants, varying = tuple(outputs), dict(tensors), list[Step]()
        with np.errstate(all="ignore"):
            for step in steps:
                if step.varying is None and all(name in constants for name in step.inputs):
                    constants[step.output] = step.run(constants, 0)
                else:
                    varying.append(step)
        last = {name: place for place, step in enumerate(varying) for name in step.inputs if name not in constants}
        ends: list[list[str]] = [[] for _ in varying]
        for name, place in last.items():
            if name not in self.outputs:
                ends[place].append(name)
        needed = {name for step in varying for name in step.inputs} | set(self.outputs)
        self._constants = {name: value for name, value in constants.items() if name in needed}
        self._turns = [_turn(step, tuple(ended)) for step, ended in zip(varying, ends)]
        self._line = tuple(varying) if _in_line(self._turns, self.outputs) else ()

    def __call__(self, arrays: Mapping[str, Array], batch: int, time: int) -> tuple[Array, ...]:
        """The outputs; whatever goes wrong inside a step is a PackError that names the operation."""
        if self._line and len(arrays) == 1:
            return self._along(arrays)
        values = {**self._constants, **arrays}
        with np.errstate(all="ignore"):
            for step, output, single, read, call, ended in self._turns:
                try:
                    if call is None:
                        values[output] = step.run(values, batch, time)
                    else:
                        values[output] = call(read(values)) if single else call(*read(values))
                except PackError:
                    raise
                except WRONG as error:
                    raise failed(step.name, error) from error
                for name in ended:
                    del values[name]
        return tuple([np.asarray(values[name]) for name in self.outputs])

    def _along(self, arrays: Mapping[str, Array]) -> tuple[Array, ...]:
        """The only output of steps of which each reads what the one before has made, and nothing else."""
        step, value = self._line[0], arrays.get(self._line[0].inputs[0])
        try:
            for step in self._line:
                value = step.call(value)
        except PackError:
            raise
        except WRONG as error:
            raise failed(step.name, error) from error
        return (np.asarray(value),)


def _in_line(turns: Sequence[_Turn], outputs: tuple[str, ...]) -> bool:
    """Whether nothing but the last value has to be remembered, nor any warning silenced."""
    steps = [one.step for one in turns]
    follow = all(later.inputs == (one.output,) for one, later in itertools.pairwise(steps))
    plain = all(one.call is not None and one.single and one.step.silent for one in turns)
    return bool(steps) and follow and plain and outputs == (steps[-1].output,)


def _turn(step: Step, ended: tuple[str, ...]) -> _Turn:
    plain = step.varying is None and bool(step.inputs)
    read = operator.itemgetter(*step.inputs) if step.inputs else dict
    return _Turn(step, step.output, len(step.inputs) == 1, read, step.call if plain else None, ended)
