"""JSON requests as arrays, without the lists between: nesting is held against the fields' shapes while it is read.

A number takes two bytes in a body and 32 as Python's object, an empty list three and 64; and Python's own parser lets
no other thread run before its end. So the object and its lists are walked here, and only short runs of numbers, whose
count is known to be right, are handed to a parser: orjson's, which is six times as fast, and Python's to say what is
wrong.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson

from fewer.packs.file.tensors import Array
from fewer.serve.fields import Deadline, RequestField, checked, misnamed, named, shapes, too_many
from fewer.serve.limits import Refusal
from fewer.serve.reading.short import CODES, at_once, no_json, no_object, parsed

__all__ = ["read_json", "read_numbers"]

_PIECE = 1 << 14  # bytes parsed at once: a fraction of a millisecond
_BLANK = re.compile(rb"[ \t\n\r]{0,65536}")
_NAME = re.compile(rb'"(?:[^"\\]|\\.){0,200}"')
_PLAIN = re.compile(rb"[^\s,\]}]{1,5000}")  # a number, if it is one
_NO_MARK = bytes(set(range(256)) - set(b",[]"))
_BETWEEN = (b"],[", b"], [")  # two lists, as programs write them


def read_json(
    body: bytes, fields: Sequence[RequestField], *, most_samples: int, deadline: Deadline
) -> dict[str, Array]:
    """The fields' arrays, each of a sample's shape or with samples in front."""
    if len(body) <= _PIECE and (found := at_once(body, fields, most_samples)) is not None:
        return found
    return _Reader(body, most_samples, deadline).object({field.name: field for field in fields})


def read_numbers(text: bytes, field: RequestField, shape: tuple[int, ...], deadline: Deadline) -> Array:
    """One list of so many numbers, flat or nested as its shape says."""
    reader = _Reader(text, max(shape, default=1), deadline)
    return reader.numbers(field, shape)


def _joined(rows: bytes) -> bytes:
    """Without the brackets between; whoever writes them otherwise is read the slow way."""
    for between in _BETWEEN:
        rows = rows.replace(between, b",")
    return rows


class _Reader:
    """A place in the body."""

    def __init__(self, body: bytes, most_samples: int, deadline: Deadline) -> None:
        self.body, self.most, self.deadline = body, most_samples, deadline
        self.at = self.runs = 0
        self.steps = 0  # of the field's sequences, once the first of them has been read

    def object(self, fields: dict[str, RequestField]) -> dict[str, Array]:
        """All of the body."""
        found: dict[str, Array] = {}
        start = self._next()
        if start != b"{":
            raise no_object() if start and start in b'["-0123456789tfn' else no_json("no object")
        self.at += 1
        going_on = self._next() != b"}"
        while going_on:
            name = self._name()
            if name in found:
                raise no_json("a name that is given twice")
            if name not in fields:
                raise misnamed([*found, name], tuple(fields.values()))
            found[name] = self._field(fields[name])
            going_on = self._next() == b","
            self.at += going_on
        self._one_of(b"}")
        if self._next():
            raise no_json("something after its end")
        if not named(found, tuple(fields.values())):
            raise misnamed(list(found), tuple(fields.values()))
        return found

    def numbers(self, field: RequestField, shape: tuple[int, ...]) -> Array:
        """All of the body, one list."""
        found = array(CODES.get(field.dtype, "q"))
        self._next()
        flat = self._depth(2) < 2
        self._list(field, found, (math.prod(shape),) if flat else shape)
        if self._next():
            raise no_json("something after its end")
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
            raise no_json(f"expected one of {wanted.decode()} at byte {self.at}")
        self.at += 1
        return found

    def _name(self) -> str:
        self._next()
        match = _NAME.match(self.body, self.at)
        if match is None:
            raise no_json(f"expected a short name at byte {self.at}")
        self.at = match.end()
        name: str = parsed(match[0])
        self._one_of(b":")
        return name

    def _field(self, field: RequestField) -> Array:
        self._next()
        depth = self._depth(len(field.shape) + 2)
        extra = depth - len(field.shape)
        self.steps = 0
        if extra not in (0, 1) or 0 in field.shape:
            raise Refusal(422, f"{field.name} nested {depth} deep; expected {shapes(field)}")
        numbers = array(CODES.get(field.dtype, "q"))
        if depth == 0:
            self._single(field, numbers)
            shape: tuple[int, ...] = ()
        else:
            sizes = (-field.longest, *field.shape[1:]) if field.longest else field.shape
            samples = self._list(field, numbers, (0, *sizes) if extra else sizes)
            inner = (self.steps, *field.shape[1:]) if field.longest else field.shape
            shape = (samples, *inner) if extra else inner
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
        """One list and what it holds; a size of 0 is that of the samples, one below 0 the most steps of sequences,
        which are all of one length. Says how long it was."""
        if len(sizes) == 1:
            return self._run(field, numbers, sizes[0])
        if len(sizes) == 2 and (count := self._rows(field, numbers, sizes)):
            return count
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
        return self._as_long(field, count, sizes[0])

    def _as_long(self, field: RequestField, count: int, size: int) -> int:
        """The count, if a list of this size may have it."""
        if size < 0:
            self.steps = self.steps or count
            size = self.steps
        if not count or (size and count != size):
            raise self._unlike(field, count)
        return count

    def _rows(self, field: RequestField, numbers: array[Any], sizes: tuple[int, ...]) -> int:
        """A list of lists of numbers, many at once, if all is as it should be; 0, and nothing taken, if it is not."""
        end, before, count = self.body.find(b"]]", self.at), len(numbers), 0
        first = self.at + 2
        if end < 0 or self.body[self.at : first] != b"[[" or min(sizes) < 0:
            return 0
        row = b"," * (sizes[1] - 1)
        while first < end:
            last = max(self.body.rfind(between, first, first + _PIECE) for between in _BETWEEN)
            stop = end if end - first <= _PIECE else last
            text = self.body[first : max(stop, first)]
            rows = text.count(b"[") + 1
            count += rows
            # by their marks alone: as many lists as brackets say, and in each as many numbers as it should have
            fits = count <= (sizes[0] or self.most) and text.translate(None, _NO_MARK) == b"],[".join([row] * rows)
            try:
                values = orjson.loads(b"[%b]" % _joined(text)) if fits else []
            except ValueError:
                values = []
            if len(values) != rows * sizes[1]:
                break
            self._append(field, numbers, values)
            first = self.body.find(b"[", stop, end) + 1 or end
        else:
            if count == (sizes[0] or count):
                self.at = end + 2
                return count
        del numbers[before:]
        return 0

    def _room(self, field: RequestField, count: int, size: int) -> None:
        if size and count > (size if size > 0 else self.steps or -size):
            raise self._unlike(field, count)
        if not size and count > self.most:
            raise too_many(self.most)

    def _run(self, field: RequestField, numbers: array[Any], size: int) -> int:
        """The innermost list: as many numbers as it should have, counted by their commas before they are parsed."""
        if self._next() != b"[":
            raise self._unlike(field)
        first, end = self.at + 1, self.body.find(b"]", self.at)
        if end < 0:
            raise no_json("a list without its end")
        if any(self.body.find(mark, first, end) >= 0 for mark in (b"[", b"{", b'"')):
            raise self._unlike(field)
        count, before = self.body.count(b",", first, end) + 1, len(numbers)
        self._room(field, count, size)
        self._as_long(field, count, size)
        while first < end:
            stop = self._piece(first, end)
            self._take(field, numbers, self.body[first:stop])
            first = stop + 1
        if len(numbers) - before != count:
            raise self._unlike(field, 0) if count == 1 else no_json("a comma too many")
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
        try:
            values = orjson.loads(b"[%b]" % text)
        except ValueError:  # Python's knows more numbers, and why this is none
            values = parsed(b"[%b]" % text)
        self._append(field, numbers, values)

    def _append(self, field: RequestField, numbers: array[Any], values: list[Any]) -> None:
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
