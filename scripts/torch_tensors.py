"""Tensors of a state_dict that torch saved, without unpickling: the file's own list of them is read as data.

Of the pickle's instructions those that make numbers, texts, tuples and dictionaries are followed, and a call is kept as
what would be called with what; nothing is imported and nothing is called. Storages are read from the archive itself.
"""

from __future__ import annotations

import io
import pickletools
import zipfile
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["read_tensors"]

_PUSHED = ("BININT", "BININT1", "BININT2", "LONG1", "BINUNICODE", "SHORT_BINUNICODE", "BINFLOAT", "GLOBAL")
_PUT, _GET, _NOTHING = ("BINPUT", "LONG_BINPUT"), ("BINGET", "LONG_BINGET"), ("PROTO", "STOP")
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_EMPTY: dict[str, type] = {"EMPTY_TUPLE": tuple, "EMPTY_DICT": dict, "EMPTY_LIST": list}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_TENSOR = "torch._utils _rebuild_tensor_v2"
_TYPES = {"torch FloatStorage": "<f4", "torch DoubleStorage": "<f8", "torch LongStorage": "<i8"}
_MARK = object()


class Call(NamedTuple):
    """What would be called, and with what."""

    name: str
    arguments: tuple[Any, ...]


class Storage(NamedTuple):
    """What a persistent id stands for."""

    words: tuple[Any, ...]  # "storage", its type, its name, where it was, how many numbers


def read_tensors(file: bytes) -> dict[str, NDArray[Any]]:
    """By name; entries that are no plain tensors are left out."""
    with zipfile.ZipFile(io.BytesIO(file)) as archive:
        (index,) = [name for name in archive.namelist() if name.endswith("/data.pkl")]
        root = index.removesuffix("data.pkl")
        entries = _followed(archive.read(index))
        return {
            name: _tensor(archive, root, one.arguments)
            for name, one in entries.items()
            if isinstance(one, Call) and one.name == _TENSOR
        }


def _tensor(archive: zipfile.ZipFile, root: str, arguments: tuple[Any, ...]) -> NDArray[Any]:
    storage, offset, size, stride = arguments[:4]
    _, kind, name, _, count = storage.words
    numbers = np.frombuffer(archive.read(f"{root}data/{name}"), _TYPES[kind])
    last = offset + sum((n - 1) * step for n, step in zip(size, stride))
    if len(numbers) != count or offset < 0 or any(step < 0 for step in stride) or last >= count:
        raise ValueError(f"a tensor that lies outside its storage {name}")
    bytes_each = numbers.itemsize
    seen = np.lib.stride_tricks.as_strided(numbers[offset:], size, [step * bytes_each for step in stride])
    return seen.copy()


class _Reader:
    """The stack and the memory that the instructions speak of."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self._memory: dict[int, Any] = {}
        self._acts: dict[str, Callable[[], None]] = {
            "MARK": self._mark, "TUPLE": self._tuple, "BINPERSID": self._storage, "REDUCE": self._call,
            "SETITEM": self._item, "SETITEMS": self._items, "BUILD": self._attributes,
        }  # fmt: skip

    def follow(self, name: str, argument: Any) -> None:
        """One instruction."""
        if name in _PUSHED:
            self.stack.append(argument)
        elif name in _CONSTANTS:
            self.stack.append(_CONSTANTS[name])
        elif name in _EMPTY:
            self.stack.append(_EMPTY[name]())
        elif name in _TUPLES:
            self.stack[-_TUPLES[name] :] = [tuple(self.stack[-_TUPLES[name] :])]
        elif name in _PUT:
            self._memory[argument] = self.stack[-1]
        elif name in _GET:
            self.stack.append(self._memory[argument])
        elif name in self._acts:
            self._acts[name]()
        elif name not in _NOTHING:
            raise ValueError(f"a pickle with the instruction {name}, which no state_dict has")

    def _since_mark(self) -> list[Any]:
        place = len(self.stack) - 1 - next(i for i, value in enumerate(reversed(self.stack)) if value is _MARK)
        found = self.stack[place + 1 :]
        del self.stack[place:]
        return found

    def _mark(self) -> None:
        self.stack.append(_MARK)

    def _tuple(self) -> None:
        self.stack.append(tuple(self._since_mark()))

    def _storage(self) -> None:
        self.stack.append(Storage(self.stack.pop()))

    def _call(self) -> None:
        arguments, called = self.stack.pop(), self.stack.pop()
        self.stack.append({} if called == "collections OrderedDict" else Call(called, arguments))

    def _item(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self.stack[-1][key] = value

    def _items(self) -> None:
        pairs = self._since_mark()
        self.stack[-1].update(zip(pairs[::2], pairs[1::2]))

    def _attributes(self) -> None:
        self.stack.pop()  # attributes, of which a state_dict has its versions


def _followed(pickled: bytes) -> dict[str, Any]:
    """The dictionary that the instructions describe."""
    reader = _Reader()
    for code, argument, _ in pickletools.genops(pickled):
        reader.follow(code.name, argument)
    (found,) = reader.stack
    if not isinstance(found, dict):
        raise ValueError("a pickle of something else than a state_dict")
    return found
