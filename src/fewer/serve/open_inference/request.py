"""An inference request: a JSON object whose numbers are in it, or behind it as bytes (the binary tensor extension).

Numbers are cut out of the object before it is parsed, and are then read against the shape that the rest claims: so
nothing large becomes Python's objects, and nothing is allocated for a claim alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fewer.packs.file.tensors import Array
from fewer.serve.fields import Deadline, RequestField, checked, of_inputs, shapes, too_many
from fewer.serve.limits import Refusal
from fewer.serve.models import Model
from fewer.serve.open_inference.tensors import datatype
from fewer.serve.reading.nested import read_numbers
from fewer.serve.reading.short import fields_of

__all__ = ["Asked", "read"]

_DATA = re.compile(rb'"data"[ \t\n\r]{0,64}:[ \t\n\r]{0,64}\[')  # no string can hold this: its quotes would be escaped
_MOST_JSON = 1 << 14  # bytes that are left of the object without its numbers
_MOST_TENSORS = 32
_ELSEWHERE = ("shared_memory_region", "shared_memory_byte_size", "shared_memory_offset", "classification")


@dataclass(frozen=True)
class Asked:
    """A request that has been understood."""

    identifier: str | None
    arrays: list[Array]  # as the model wants them, samples in front
    binary: bool  # whether the answer's numbers are wanted as bytes


def read(body: bytes, header_length: int | None, model: Model, *, most_samples: int, deadline: Deadline) -> Asked:
    """The model's inputs; what is wrong with them is refused with a reason. In any thread."""
    if header_length is not None and header_length > len(body):
        raise Refusal(400, f"Inference-Header-Content-Length {header_length} in a body of {len(body)} bytes")
    text, behind = (body, b"") if header_length is None else (body[:header_length], memoryview(body)[header_length:])
    rest, numbers = _cut(text)
    asked = fields_of(rest)
    given = _tensors(asked, "inputs")
    sources = _sources(given, numbers, memoryview(behind))
    by_name = {str(item.get("name")): item for item in given}
    fields = of_inputs(model.inputs, model.time)
    wanted = [field.name for field in fields]
    if sorted(by_name) != sorted(wanted) or len(given) != len(wanted):
        told = ", ".join(name[:40] for name in list(by_name)[:8]) or "none"
        raise Refusal(400, f"inputs {told}; expected {', '.join(wanted)}")
    arrays = [_array(field, by_name[field.name], sources[field.name], most_samples, deadline) for field in fields]
    if len({len(array) for array in arrays}) > 1:
        raise Refusal(400, "inputs of different numbers of samples; expected the same in each")
    return Asked(_identifier(asked), arrays, _binary(asked))


def _cut(text: bytes) -> tuple[bytes, list[bytes]]:
    """The object with a number for each list of numbers, and those lists: by searches that hold up nobody for long."""
    numbers: list[bytes] = []
    rest, at = b"", 0
    while (start := text.find(b'"data"', at)) >= 0 and len(numbers) < _MOST_TENSORS and len(rest) <= _MOST_JSON:
        found = _DATA.match(text, start)
        first = found.end() - 1 if found else start
        ends = [end for mark in b'"{}' if (end := text.find(mark, first + 1)) >= 0]
        last = text.rfind(b"]", first, min(ends, default=len(text))) if found else -1
        if last < 0:
            rest, at = rest + text[at : start + 6], start + 6
            continue
        rest += text[at:start] + b'"data":%d' % len(numbers)
        numbers.append(text[first : last + 1])
        at = last + 1
    left = len(rest) + len(text) - at
    if left > _MOST_JSON:
        raise Refusal(413, f"{left} bytes of JSON without its numbers; expected at most {_MOST_JSON}")
    return rest + text[at:], numbers


def _tensors(asked: Mapping[str, Any], word: str) -> list[dict[str, Any]]:
    found = asked.get(word, [])
    if not isinstance(found, list) or len(found) > _MOST_TENSORS or not all(isinstance(item, dict) for item in found):
        raise Refusal(400, f"{word}; expected a list of at most {_MOST_TENSORS} objects")
    for item in found:
        if set(_ELSEWHERE) & _parameters(item).keys():
            raise Refusal(400, f"{word} in shared memory or as classes; expected numbers")
    return found


def _parameters(item: Mapping[str, Any]) -> dict[str, Any]:
    found = item.get("parameters", {})
    if not isinstance(found, dict):
        raise Refusal(400, "parameters; expected an object")
    return found


def _sources(
    given: Sequence[dict[str, Any]], numbers: list[bytes], behind: memoryview
) -> dict[str, bytes | memoryview]:
    """The text or the bytes of each input, by name; the bytes follow one another in the order of the inputs."""
    found: dict[str, bytes | memoryview] = {}
    start = 0
    for item in given:
        size, data = _parameters(item).get("binary_data_size"), item.get("data")
        if type(size) is int and size >= 0 and data is None:
            found[str(item.get("name"))] = behind[start : start + size]
            start += size
        elif type(data) is int and data < len(numbers) and size is None:
            found[str(item.get("name"))] = numbers[data]
        else:
            raise Refusal(400, "an input without numbers; expected data, a list, or binary_data_size and bytes")
    if start != len(behind):
        raise Refusal(400, f"{len(behind)} bytes behind the JSON object; its inputs claim {start}")
    return found


def _array(
    field: RequestField, said: Mapping[str, Any], source: bytes | memoryview, most_samples: int, deadline: Deadline
) -> Array:
    if said.get("datatype") != datatype(field.dtype):
        told = str(said.get("datatype"))[:20]
        raise Refusal(400, f"{field.name} of datatype {told}; expected {datatype(field.dtype)}")
    shape = said.get("shape")
    whole = isinstance(shape, list) and all(type(n) is int for n in shape)
    if not isinstance(shape, list) or not whole or not field.fits(tuple(shape[1:])) or shape[:1] < [1]:
        expected = shapes(field).partition(" or ")[2]
        raise Refusal(400, f"{field.name} of shape {str(shape)[:80]}; expected {expected}")
    if shape[0] > most_samples:
        raise too_many(most_samples)
    if isinstance(source, bytes):
        return read_numbers(source, field, tuple(shape), deadline)
    kind = np.dtype(field.dtype).newbyteorder("<")
    if len(source) != math.prod(shape) * kind.itemsize:
        raise Refusal(400, f"{field.name} of {len(source)} bytes; its shape needs {math.prod(shape) * kind.itemsize}")
    # a copy: bytes behind JSON begin anywhere, and the kernels want numbers at whole addresses
    return checked(field, np.frombuffer(source, dtype=kind).reshape(shape).copy())


def _identifier(asked: Mapping[str, Any]) -> str | None:
    found = asked.get("id")
    if found is not None and not isinstance(found, str):
        raise Refusal(400, "id; expected a string")
    return found


def _binary(asked: Mapping[str, Any]) -> bool:
    """An output may say for itself; otherwise the request says for all of them."""
    outputs = _tensors(asked, "outputs")
    if any(item.get("name") != "output" for item in outputs) or len(outputs) > 1:
        raise Refusal(400, "outputs; expected one of the name output, or none, which means the same")
    everywhere = bool(_parameters(asked).get("binary_data_output", False))
    return bool(_parameters(outputs[0]).get("binary_data", everywhere)) if outputs else everywhere
