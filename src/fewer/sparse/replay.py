"""A training step recorded once and repeated: the same operations on the same memory, without Python in between.

A step on small tensors is mostly the cost of getting from one operation to the next: modules, autograd, allocation.
What a loss computes depends on no tensor's value, so one step shows what all steps do. `Recorder` notes the
operations of a step as they reach torch's kernels, backward pass and optimiser included; `Tape` repeats them into
the very tensors of the recorded step, as a captured CUDA graph does. Views need no repeating, nor does what nobody
reads. A step that cannot be repeated (it looks at a value, draws from a global generator, or is too large to keep)
is left as it is, and a tape is trusted only after it has repeated one step to the bit.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from operator import is_
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from fewer.sparse.call_recorder import noting
from fewer.sparse.pattern import kernels
from fewer.sparse.replay_steps import squared_difference, steps_of

__all__ = ["Recorder", "Repeater", "Tape"]

MOST_BYTES = 128 * 2**20  # of results kept for repeating; larger steps spend their time in the operations themselves
_OBSTACLES = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape, torch.Tag.nondeterministic_seeded}
_EMPTY = {"empty", "empty_strided", "empty_like", "new_empty", "new_empty_strided"}
_CONSTANT = {"ones", "ones_like", "zeros", "zeros_like", "full", "full_like", "new_zeros", "new_ones", "new_full",
             "arange", "scalar_tensor"}  # fmt: skip
_BY_COPY = {"aten::mse_loss", "aten::l1_loss", "aten::smooth_l1_loss", "aten::huber_loss"}  # out= resizes on its way


@dataclass
class Record:
    """One operation: what it is called, how to do it again, and the storages it reads and writes."""

    name: str
    run: Callable[[], object]
    reads: frozenset[int]
    writes: frozenset[int]
    steps: list[bytes] | None = None  # the same for C


class Recorder(TorchDispatchMode):
    """Everything that is computed while it is entered, as records."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[Record] = []
        self.alive: list[Any] = []  # storages, so that no two tensors ever share an address
        self.made: set[int] = set()  # storages that the step allocates
        self.changed: dict[int, Tensor] = {}  # other storages that it writes to
        self.bytes = 0
        self.obstacle = ""  # why the step cannot be repeated

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # torch would import its compiler, which takes seconds, only to tell it to look away

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), options: Any = None) -> Any:
        answer = function(*arguments, **(options or {}))
        if not self.obstacle:
            self._see(function, arguments, options or {}, answer)
        return answer

    def _see(self, function: Any, arguments: tuple[Any, ...], options: dict[str, Any], answer: Any) -> None:
        if _OBSTACLES.intersection(function.tags):
            self._give_up(str(function))
            return
        reads, results = _tensors((arguments, options)), _tensors(answer)
        arguments, options, outs = pytree.tree_map_only(Tensor, Tensor.detach, (arguments, options, results))
        written = _written(function, arguments, options)
        name = function._schema.name.removeprefix("aten::")
        if written:
            steps = steps_of(function, arguments, options, written[0]) if len(written) == 1 else None
            self._add(name, partial(function._op, *arguments, **options), reads, written, steps)
            return
        known = {_storage(tensor) for tensor in reads}
        fresh = [tensor for tensor in results if _storage(tensor) not in known]
        self.alive += [tensor.untyped_storage() for tensor in (*reads, *results)]
        self.made.update(map(_storage, fresh))
        self.bytes += sum(tensor.untyped_storage().nbytes() for tensor in fresh)
        if self.bytes > MOST_BYTES:
            self._give_up(f"more than {MOST_BYTES} bytes of results")
        elif fresh and name not in _EMPTY:  # a view, and memory that somebody else fills, need no repeating
            if name == "mse_loss" and arguments[0].shape == arguments[1].shape and (*arguments, 1)[2] == 1:
                self._mean_square(reads, arguments, outs[0])
                return
            steps = steps_of(function, arguments, options, outs[0]) if len(outs) == 1 else None
            self._add(name, _into(function, arguments, options, outs), reads, fresh, steps)

    def _mean_square(self, reads: list[Tensor], arguments: tuple[Any, ...], out: Tensor) -> None:
        """The mean square of a difference in two, of which C does the longer one; out= of torch's own resizes."""
        first, second = arguments[:2]
        squares = torch.empty_like(first)
        self.made.add(_storage(squares))

        def square() -> None:
            torch.sub(first, second, out=squares)
            torch.mul(squares, squares, out=squares)

        self._add("squares", square, reads, [squares], squared_difference(first, second, squares))
        self._add("mean", partial(torch.ops.aten.mean.dtype_out._op, squares, out=out), [squares], [out], None)

    def call(self, name: str, run: Callable[[], object], reads: list[Tensor], writes: list[Tensor]) -> None:
        """A call of the compiled kernels."""
        self._add(name, run, reads, writes, None)

    def _add(
        self, name: str, run: Callable[[], object], reads: list[Tensor], writes: list[Tensor], steps: list[bytes] | None
    ) -> None:
        if self.obstacle:
            return
        self.alive += [tensor.untyped_storage() for tensor in (*reads, *writes)]
        self.changed |= {_storage(tensor): tensor.detach() for tensor in writes if _storage(tensor) not in self.made}
        storages = frozenset(map(_storage, reads)), frozenset(map(_storage, writes))
        self.records.append(Record(name, run, *storages, steps))

    def _give_up(self, why: str) -> None:
        self.obstacle = why
        self.records, self.alive, self.made = [], [], set()

    def tape(self) -> Tape:
        """What has to be done again in each step, in order."""
        rewritten: dict[int, int] = {}
        for record in self.records:
            for storage in record.writes:
                rewritten[storage] = rewritten.get(storage, 0) + 1
        constant: set[int] = set()
        for record in self.records:
            still = record.name in _CONSTANT or (record.reads and record.reads <= constant)
            if still and all(rewritten[storage] == 1 and storage in self.made for storage in record.writes):
                constant |= record.writes
        wanted = set(self.changed)
        runs = []
        for record in reversed(self.records):
            if record.writes & wanted and not record.writes <= constant:
                wanted |= record.reads
                runs.append(record)
        return Tape(runs[::-1], [_whole(tensor) for tensor in self.changed.values()], self.alive)


@dataclass
class Tape:
    """Operations to repeat, what they change for good, and all the memory they work in."""

    records: list[Record]
    changed: list[Tensor]
    alive: list[Any]

    compiled: bool = kernels is not None

    def __post_init__(self) -> None:
        self.runs: list[Callable[[], object]] = []
        for compiled, group in groupby(self.records, lambda record: self.compiled and record.steps is not None):
            if compiled:
                steps = [step for record in group for step in record.steps or ()]
                self.runs.append(partial(kernels.play, kernels.program(b"".join(steps))))
            else:
                self.runs += [record.run for record in group]

    @torch.inference_mode()
    def repeat(self) -> None:
        """The step once more."""
        for run in self.runs:
            run()

    def repeats(self, step: Callable[[], None], state: Sequence[Tensor]) -> bool:
        """Takes the ordinary step; whether a repetition would have changed everything to the same bits.

        `state` is looked at as well: a batch norm does not declare that it writes to its running mean.
        """
        watched = [*self.changed, *map(_whole, state)]
        before = [tensor.clone() for tensor in watched]
        self.repeat()
        repeated = [tensor.clone() for tensor in watched]
        for tensor, value in zip(watched, before):
            tensor.copy_(value)
        step()
        return all(
            torch.equal(tensor.view(torch.uint8), value.view(torch.uint8)) for tensor, value in zip(watched, repeated)
        )


class Repeater:
    """Takes ordinary steps until it knows how to repeat them; one tape for each kind of step."""

    def __init__(self, step: Callable[[], None], state: Sequence[Tensor]) -> None:
        self.step, self.state = step, state
        self.seen: dict[Any, Tape | bool | None] = {}  # a tape to be tried; True: met once; None: not repeatable
        self.trusted: dict[Any, Tape] = {}

    def holds(self, state: Sequence[Tensor]) -> bool:
        """Whether these are the very tensors that its tapes work on."""
        return len(state) == len(self.state) and all(map(is_, state, self.state))

    def __call__(self, kind: Any) -> bool:
        """One step; whether it was a repetition, which Python saw nothing of."""
        tape = self.trusted.get(kind)
        if tape is not None:
            tape.repeat()
            return True
        found = self.seen.get(kind, False)
        if isinstance(found, Tape):
            self.seen[kind] = None
            if found.repeats(self.step, self.state):
                self.trusted[kind] = found
            elif found.compiled:  # torch's own operations may still do
                self.seen[kind] = replace(found, compiled=False)
        elif found:
            recorder = Recorder()
            with noting(recorder), recorder:
                self.step()
            self.seen[kind] = None if recorder.obstacle else recorder.tape()
        else:
            self.step()
            self.seen.setdefault(kind, True)
        return False


def _tensors(nest: Any) -> list[Tensor]:
    return [leaf for leaf in pytree.tree_leaves(nest) if isinstance(leaf, Tensor)]


def _storage(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _whole(tensor: Tensor) -> Tensor:
    """All numbers of the storage behind a tensor."""
    return torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(tensor.untyped_storage())


def _written(function: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> list[Tensor]:
    """The arguments that an operation writes to, by its own declaration."""
    found: list[Tensor] = []
    for place, argument in enumerate(function._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            given = arguments[place] if place < len(arguments) else options.get(argument.name)
            found += _tensors(given)
    return found


@functools.cache
def _out_variant(function: Any) -> tuple[Any, tuple[str, ...]] | None:
    """The same operation into given tensors, and what it calls them."""
    wanted = [(argument.name, str(argument.type)) for argument in function._schema.arguments]
    for overload in function.overloadpacket.overloads():
        other = getattr(function.overloadpacket, overload)
        given = other._schema.arguments
        outs = [a.name for a in given if a.alias_info is not None and a.alias_info.is_write]
        rest = [(a.name, str(a.type)) for a in given if a.name not in outs]
        if rest == wanted and len(outs) == len(function._schema.returns):
            return other._op, tuple(outs)
    return None


def _into(
    function: Any, arguments: tuple[Any, ...], options: dict[str, Any], results: list[Tensor]
) -> Callable[[], object]:
    """A call that puts the results of an operation where its first results are."""
    if function._schema.name == "aten::_to_copy":
        return partial(results[0].copy_, arguments[0])
    variant = None if function._schema.name in _BY_COPY else _out_variant(function)
    if variant is not None and len(results) == len(variant[1]):
        return partial(variant[0], *arguments, **options, **dict(zip(variant[1], results)))

    def copied() -> None:
        for result, again in zip(results, _tensors(function(*arguments, **options))):
            result.copy_(again)

    return copied
