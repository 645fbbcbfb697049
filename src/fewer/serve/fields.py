"""What a request may say: its fields, with their shapes, and how arrays are held against them."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fewer.packs.file.tensors import Array
from fewer.packs.program import Input, Time
from fewer.serve.limits import Refusal

__all__ = [
    "HERE",
    "JSON",
    "NPZ",
    "Deadline",
    "RequestField",
    "checked",
    "example",
    "fitting",
    "misnamed",
    "named",
    "of_inputs",
    "samples_of",
    "shapes",
    "too_many",
]

JSON = "application/json"
NPZ = ("application/x-npz", "application/octet-stream")
HERE = "http://HERE"  # in examples, for this server's address
MOST_STEPS = 1 << 14  # of a sequence, where its pack names no fewer
_WRITTEN_OUT = 64  # numbers


@dataclass(frozen=True)
class RequestField(Input):
    """One field of a request: what a sample of it looks like."""

    gaps: bool = False  # null in JSON, NaN in an npz, for a number that is not known
    optional: bool = False
    longest: int = 0  # steps: a sequence of any length up to this one on its first axis; 0: of the shape's alone
    unit: str = ""
    meaning: str = ""  # in a few words

    def described(self) -> dict[str, Any]:
        """For people and programs that are about to ask."""
        return {
            "shape": list(self.shape) if not self.longest else [-1, *self.shape[1:]],
            **({"longest": self.longest} if self.longest else {}),
            "dtype": self.dtype,
            "optional": self.optional,
            "null": self.gaps,
            "unit": self.unit or None,
            "meaning": self.meaning or None,
        }

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Whether a sample may have this shape."""
        if not self.longest or not shape:
            return shape == self.shape
        return shape[1:] == self.shape[1:] and 0 < shape[0] <= self.longest


@dataclass(frozen=True)
class Deadline:
    """When a request has to be answered, on the clock of `time.monotonic`."""

    until: float
    seconds: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """So many seconds from now."""
        return cls(time.monotonic() + seconds, seconds)

    @property
    def left(self) -> float:
        """Seconds, never quite none: asyncio takes 0 for a reason not to begin."""
        return max(self.until - time.monotonic(), 0.001)

    def refusal(self) -> Refusal:
        """What is said when it has passed."""
        return Refusal(504, f"no answer within {self.seconds:g} s")

    def check(self) -> None:
        """Give up on what nobody waits for any more."""
        if time.monotonic() > self.until:
            raise self.refusal()


def of_inputs(inputs: Sequence[Input], time: Time | None = None) -> tuple[RequestField, ...]:
    """A model's own inputs as fields; `time` says which are sequences of any length."""
    sequences = time.inputs if time else ()
    longest = min(time.most or MOST_STEPS, MOST_STEPS) if time else 0
    return tuple(
        RequestField(item.name, item.shape, item.dtype, longest=longest if item.name in sequences else 0)
        for item in inputs
    )


def shapes(field: RequestField) -> str:
    """In words."""
    inner = ", ".join(map(str, ("steps", *field.shape[1:]) if field.longest else field.shape))
    most = f" of at most {field.longest} steps" if field.longest else ""
    return f"shape [{inner}], or [samples{', ' if inner else ''}{inner}]{most}"


def fitting(field: RequestField, shape: tuple[int, ...], most_samples: int) -> None:
    """Refuse a shape that is neither a sample's nor that of some samples; nothing has been allocated for it yet."""
    extra = len(shape) - len(field.shape)
    if extra not in (0, 1) or not field.fits(shape[extra:]) or 0 in shape:
        raise Refusal(422, f"{field.name} of shape {str(list(shape))[:80]}; expected {shapes(field)}")
    if extra and shape[0] > most_samples:
        raise too_many(most_samples)


def too_many(most: int) -> Refusal:
    """For more samples than a request may have."""
    return Refusal(413, f"more than {most} samples; send them in several requests (fewer serve --samples)")


def checked(field: RequestField, array: Array) -> Array:
    """The array, whose shape fits, in the field's type if its numbers allow it."""
    wanted = np.dtype(field.dtype)
    kinds = "iuf" if wanted.kind == "f" else "iub"
    if array.dtype.kind not in kinds:
        expected = "numbers" if wanted.kind == "f" else "integers"
        raise Refusal(422, f"{field.name} of {array.dtype.name}; expected {expected}")
    if wanted.kind in "iu":
        bounds = np.iinfo(wanted)
        if array.min() < bounds.min or array.max() > bounds.max:
            raise Refusal(422, f"{field.name} beyond {wanted.name}")
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.asarray(array, dtype=wanted, order="C")  # keeps a single number a number
    if wanted.kind == "f" and not field.gaps and not np.isfinite(found).all():
        raise Refusal(422, f"{field.name} holds NaN or numbers beyond {wanted.name}; expected finite numbers")
    return found


def samples_of(given: Mapping[str, Array], fields: Sequence[RequestField]) -> tuple[dict[str, Array], bool]:
    """The arrays with samples in front, and whether they were a single sample."""
    ranks = {given[field.name].ndim - len(field.shape) for field in fields if field.name in given}
    single = ranks == {0}
    batched = {name: array[None] if single else array for name, array in given.items()}
    if len(ranks) > 1 or len({len(array) for array in batched.values()}) > 1:
        told = ", ".join(f"{name} {list(array.shape)}" for name, array in given.items())
        raise Refusal(422, f"{told}; expected the same number of samples in each")
    return batched, single


def named(names: Collection[str], fields: Sequence[RequestField]) -> bool:
    """Whether these are the fields, all that are needed and no other."""
    needed = {field.name for field in fields if not field.optional}
    return needed <= set(names) <= {field.name for field in fields}


def misnamed(names: Sequence[str], fields: Sequence[RequestField]) -> Refusal:
    """For other names."""
    told = ", ".join(sorted(name[:40] for name in names[:8])) or "none"
    wanted = ", ".join(f"{field.name} (may be left out)" if field.optional else field.name for field in fields)
    return Refusal(422, f"fields {told}; expected {wanted}")


def example(fields: Sequence[RequestField], path: str) -> dict[str, Any]:
    """A request that is answered as it stands: in JSON, or where that would fill pages, how to make an npz of it.

    `curl` can be pasted into a shell; the server puts its own address there.
    """
    needed = [field for field in fields if not field.optional]
    ask = f"curl -s -X POST '{HERE}{path}' -H 'content-type: "
    if sum(math.prod(field.shape) for field in needed) <= _WRITTEN_OUT:
        body = {field.name: np.zeros(field.shape, int).tolist() for field in needed}
        return {"content_type": JSON, "body": body, "curl": f"{ask}{JSON}' -d '{json.dumps(body)}'"}
    parts = [f"{field.name}=numpy.zeros({field.shape}, '{field.dtype}')" for field in needed]
    code = f"import numpy; numpy.savez('input.npz', {', '.join(parts)})"
    curl = f"{ask}{NPZ[0]}' --data-binary @input.npz -o output.npz"
    return {"content_type": NPZ[0], "python": code, "curl": f'python3 -c "{code}" && {curl}'}
