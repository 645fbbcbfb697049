"""Short JSON requests: one parser for all of them, strictly, and a few passes over its lists."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import chain
from typing import Any, NoReturn

import numpy as np
import orjson

from fewer.packs.file.tensors import Array
from fewer.serve.fields import RequestField, checked, named
from fewer.serve.limits import Refusal

__all__ = ["CODES", "at_once", "fields_of", "no_json", "no_object", "parsed"]

CODES = {"float32": "f", "float64": "d"}  # of array.array; whole numbers are read as 64 bits


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
    try:
        found = orjson.loads(body)
        if type(found) is dict and body.count(b'"') == 2 * len(found):  # no text but names, and none of them twice
            return found
    except ValueError:
        pass
    found = parsed(body)
    if not isinstance(found, dict):
        raise no_object()
    return found


def parsed(text: bytes) -> Any:
    """Any JSON, or 400."""
    try:
        return _STRICT.decode(text.decode())
    except (ValueError, RecursionError) as error:
        raise no_json(str(error)[:120]) from None


def no_json(why: str) -> Refusal:
    """For a body that no parser takes."""
    return Refusal(400, f"a body that is no JSON ({why}); expected one JSON object")


def no_object() -> Refusal:
    """For JSON that is something else."""
    return Refusal(422, "a body that is no JSON object; expected one")


def at_once(body: bytes, fields: Sequence[RequestField], most_samples: int) -> dict[str, Array] | None:
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
    if field.dtype not in CODES:
        plain = {int}
    sizes: list[int] = []
    while numbers and type(numbers[0]) is list and len(sizes) <= len(field.shape):
        if set(map(type, numbers)) != {list} or len(kinds := set(map(len, numbers))) != 1:
            return None
        sizes.append(kinds.pop())
        numbers = list(chain.from_iterable(numbers))
    inner = tuple(sizes[-len(field.shape) :]) if field.shape else ()
    extra = len(sizes) - len(inner)
    if not field.fits(inner) or extra not in (0, 1) or 0 in sizes or not set(map(type, numbers)) <= plain:
        return None
    if extra and sizes[0] > most_samples:
        return None
    try:
        # None becomes NaN; numbers beyond the type are left to whoever can say so
        with np.errstate(over="ignore"):
            found = np.array(numbers, field.dtype if field.dtype in CODES else "int64")
        return checked(field, found.reshape(sizes))
    except (Refusal, OverflowError):
        return None
