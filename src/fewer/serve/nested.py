"""JSON requests as arrays, without the lists between: nesting is held against the fields' shapes while it is read.

A number takes two bytes in a body and 32 as Python's object, an empty list three and 64; and Python's own parser lets
no other thread run before its end. So the object and its lists are walked here, and only short runs of numbers, whose
count is known to be right, are handed to that parser.
"""

from __future__ import annotations

import json
import math
import re
from array import array
from collections.abc import Sequence
from itertools import chain
from typing import Any, NoReturn

import numpy as np

from fewer.packs.file.tensors import Array
from fewer.serve.fields import Deadline, RequestField, checked, misnamed, named, shapes, too_many
from fewer.serve.limits import Refusal

__all__ = ["fields_of", "read_json", "read_numbers"]

_PIECE = 1 << 14  # bytes parsed at once: a fraction of a millisecond
_BLANK = re.compile(rb"[ \t\n\r]{0,65536}")
_NAME = re.compile(rb'"(?:[^"\\]|\\.){0,200}"')
_PLAIN = re.compile(rb"[^\s,\]}]{1,5000}")  # a number, if it is one
_CODES = {"float32": "f", "float64": "d"}  # of array.array; whole numbers are read as 64 bits


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON number")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name that is given twice")
    return found


_STRICT = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_once)


def fields_of(body: bytes) -> dict[str, Any]:
    """A short JSON object as Python's objects, strictly: no NaN, no Infinity, no name twice."""
    found = _parsed(body)
    if not isinstance(found, dict):
        raise _no_object()
    return found


def _parsed(text: bytes) -> Any:
    try:
        return _STRICT.decode(text.decode())
    except (ValueError, RecursionError) as error:
        raise _no_json(str(error)[:120]) from None


def _no_json(why: str) -> Refusal:
    return Refusal(400, f"a body that is no JSON ({why}); expected one JSON object")


def _no_object() -> Refusal:
    return Refusal(422, "a body that is no JSON object; expected one")


def read_json(
    body: bytes, fields: Sequence[RequestField], *, most_samples: int, deadline: Deadline
) -> dict[str, Array]:
    """The fields' arrays, each of a sample's shape or with samples in front."""
    if len(body) <= _PIECE and (found := _at_once(body, fields, most_samples)) is not None:
        return found
    return _Reader(body, most_samples, deadline).object({field.name: field for field in fields})


def _at_once(body: bytes, fields: Sequence[RequestField], most_samples: int) -> dict[str, Array] | None:
    """A short body by Python's own parser and a few passes over its lists; None unless it is surely right."""
    try:
        parsed = fields_of(body)
    except Refusal:
        return None
    if not named(parsed, fields):
        return None
    found = {field.name: _array_of(parsed[field.name], field, most_samples) for field in fields if field.name in parsed}
    return None if any(array is None for array in found.values()) else {n: a for n, a in found.items() if a is not None}


def _array_of(value: Any, field: RequestField, most_samples: int) -> Array | None:
    plain, numbers = {float, int, type(None)} if field.gaps else {float, int}, [value]
    if field.dtype not in _CODES:
        plain = {int}
    sizes: list[int] = []
    while numbers and type(numbers[0]) is list and len(sizes) <= len(field.shape):
        if set(map(type, numbers)) != {list} or len(kinds := set(map(len, numbers))) != 1:
            return None
        sizes.append(kinds.pop())
        numbers = list(chain.from_iterable(numbers))
    inner = tuple(sizes[-len(field.shape) :]) if field.shape else ()
    extra = len(sizes) - len(inner)
    if inner != field.shape or extra not in (0, 1) or 0 in sizes or not set(map(type, numbers)) <= plain:
        return None
    if extra and sizes[0] > most_samples:
        return None
    try:
        # None becomes NaN; numbers beyond the type are left to whoever can say so
        with np.errstate(over="ignore"):
            found = np.array(numbers, field.dtype if field.dtype in _CODES else "int64")
        return checked(field, found.reshape(sizes))
    except (Refusal, OverflowError):
        return None


def read_numbers(text: bytes, field: RequestField, shape: tuple[int, ...], deadline: Deadline) -> Array:
    """One list of so many numbers, flat or nested as its shape says."""
    reader = _Reader(text, max(shape, default=1), deadline)
    return reader.numbers(field, shape)


class _Reader:
    """A place in the body."""

    def __init__(self, body: bytes, most_samples: int, deadline: Deadline) -> None:
        self.body, self.most, self.deadline = body, most_samples, deadline
        self.at = self.runs = 0

    def object(self, fields: dict[str, RequestField]) -> dict[str, Array]:
        """All of the body."""
        found: dict[str, Array] = {}
        start = self._next()
        if start != b"{":
            raise _no_object() if start and start in b'["-0123456789tfn' else _no_json("no object")
        self.at += 1
        going_on = self._next() != b"}"
        while going_on:
            name = self._name()
            if name in found:
                raise _no_json("a name that is given twice")
            if name not in fields:
                raise misnamed([*found, name], tuple(fields.values()))
            found[name] = self._field(fields[name])
            going_on = self._next() == b","
            self.at += going_on
        self._one_of(b"}")
        if self._next():
            raise _no_json("something after its end")
        if not named(found, tuple(fields.values())):
            raise misnamed(list(found), tuple(fields.values()))
        return found

    def numbers(self, field: RequestField, shape: tuple[int, ...]) -> Array:
        """All of the body, one list."""
        found = array(_CODES.get(field.dtype, "q"))
        self._next()
        flat = self._depth(2) < 2
        self._list(field, found, (math.prod(shape),) if flat else shape)
        if self._next():
            raise _no_json("something after its end")
        return checked(field, np.frombuffer(found, dtype=found.typecode).reshape(shape))

    def _next(self) -> bytes:
        """The next byte that is not blank, not yet taken; none at the end."""
        while (end := _BLANK.match(self.body, self.at).end()) > self.at:  # type: ignore[union-attr]
            self.at = end
            self.deadline.check()
        return self.body[self.at : self.at + 1]

    def _one_of(self, wanted: bytes) -> bytes:
        found = self._next()
        if not found or found not in wanted:
            raise _no_json(f"expected one of {wanted.decode()} at byte {self.at}")
        self.at += 1
        return found

    def _name(self) -> str:
        self._next()
        match = _NAME.match(self.body, self.at)
        if match is None:
            raise _no_json(f"expected a short name at byte {self.at}")
        self.at = match.end()
        name: str = _parsed(match[0])
        self._one_of(b":")
        return name

    def _field(self, field: RequestField) -> Array:
        self._next()
        depth = self._depth(len(field.shape) + 2)
        extra = depth - len(field.shape)
        if extra not in (0, 1) or 0 in field.shape:
            raise Refusal(422, f"{field.name} nested {depth} deep; expected {shapes(field)}")
        numbers = array(_CODES.get(field.dtype, "q"))
        if depth == 0:
            self._single(field, numbers)
            shape: tuple[int, ...] = ()
        else:
            samples = self._list(field, numbers, (0, *field.shape) if extra else field.shape)
            shape = (samples, *field.shape) if extra else field.shape
        return checked(field, np.frombuffer(numbers, dtype=numbers.typecode).reshape(shape))

    def _depth(self, most: int) -> int:
        """How many lists begin here, one inside the other."""
        start, depth = self.at, 0
        while depth < most and self._next() == b"[":
            depth += 1
            self.at += 1
        self.at = start
        return depth

    def _list(self, field: RequestField, numbers: array[Any], sizes: tuple[int, ...]) -> int:
        """One list and what it holds; a size of 0 is that of the samples. Says how long it was."""
        if len(sizes) == 1:
            return self._run(field, numbers, sizes[0])
        if self._next() != b"[":
            raise self._unlike(field)
        self.at += 1
        count = 0
        while True:
            self._list(field, numbers, sizes[1:])
            count += 1
            if self._one_of(b",]") == b"]":
                break
            self._room(field, count + 1, sizes[0])
        if sizes[0] and count != sizes[0]:
            raise self._unlike(field, count)
        return count

    def _room(self, field: RequestField, count: int, size: int) -> None:
        if size and count > size:
            raise self._unlike(field, count)
        if not size and count > self.most:
            raise too_many(self.most)

    def _run(self, field: RequestField, numbers: array[Any], size: int) -> int:
        """The innermost list: as many numbers as it should have, counted by their commas before they are parsed."""
        if self._next() != b"[":
            raise self._unlike(field)
        first, end = self.at + 1, self.body.find(b"]", self.at)
        if end < 0:
            raise _no_json("a list without its end")
        if any(self.body.find(mark, first, end) >= 0 for mark in (b"[", b"{", b'"')):
            raise self._unlike(field)
        count, before = self.body.count(b",", first, end) + 1, len(numbers)
        self._room(field, count, size)
        if size and count != size:
            raise self._unlike(field, count)
        while first < end:
            stop = self._piece(first, end)
            self._take(field, numbers, self.body[first:stop])
            first = stop + 1
        if len(numbers) - before != count:
            raise self._unlike(field, 0) if count == 1 else _no_json("a comma too many")
        self.at = end + 1
        return count

    def _piece(self, first: int, end: int) -> int:
        """Where a run of numbers that is short enough to be parsed at once ends: at a comma, or with the list."""
        if end - first <= _PIECE:
            return end
        comma = self.body.rfind(b",", first, first + _PIECE)
        if comma < 0:
            comma = self.body.find(b",", first, end)
        return end if comma < 0 else comma

    def _single(self, field: RequestField, numbers: array[Any]) -> None:
        match = _PLAIN.match(self.body, self.at)
        if match is None or match[0][:1] in b'"{':
            raise self._unlike(field)
        self._take(field, numbers, match[0])
        self.at = match.end()

    def _take(self, field: RequestField, numbers: array[Any], text: bytes) -> None:
        values = _parsed(b"[" + text + b"]")
        kinds = set(map(type, values))
        if type(None) in kinds and field.gaps:
            values = [math.nan if value is None else value for value in values]
            kinds.discard(type(None))
        if not kinds <= ({int, float} if numbers.typecode in "fd" else {int}):
            expected = "numbers" if numbers.typecode in "fd" else "whole numbers"
            raise Refusal(422, f"{field.name}; expected {expected}{', null for what is missing' * field.gaps}")
        try:
            numbers.fromlist(values)
        except OverflowError:
            raise Refusal(422, f"{field.name} beyond {field.dtype}") from None
        self.runs += 1
        if self.runs % 64 == 0:
            self.deadline.check()

    def _unlike(self, field: RequestField, count: int | None = None) -> Refusal:
        told = "" if count is None else f" with a list of {count}"
        return Refusal(422, f"{field.name}{told}; expected {shapes(field)}")
