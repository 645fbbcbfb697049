"""How a task is served: what its requests and answers look like, and what its page may ask for beside predictions.

A system joins with a class that derives from `Service` and a folder with its page. A task without one (your own) is
served by `Service` itself: the pack's inputs by name in, its output out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np

from fewer.core.registry import system_of
from fewer.core.system import imported
from fewer.packs.file.tensors import Array
from fewer.packs.program import Input
from fewer.serve.bodies import Archive
from fewer.serve.fields import Deadline, RequestField, example, misnamed, named, of_inputs, samples_of
from fewer.serve.limits import Gate, Limits, Refusal
from fewer.serve.models import Model
from fewer.serve.reading.nested import read_json
from fewer.serve.written import write_json

if TYPE_CHECKING:
    from fastapi import APIRouter

__all__ = ["Row", "Schema", "Service", "array_schema", "services_of"]

_LONG = 4096  # numbers of an input
UNFOLDED = 4  # times what a request may have, for what an npz in it holds
Schema = dict[str, Any]
Row = tuple[Any, ...]


class Service:
    """All models of one task. Requests of one sample and of a batch differ by an axis of samples in front."""

    title = "A model of your own"
    page_bytes = 1 << 16  # the most that its page asks with
    reads_rows = False  # whether `row` may say more than None
    short_numbers = 2048  # of an answer that is written in the event loop: two milliseconds at most

    def __init__(self, task: str, models: Sequence[Model]) -> None:
        self.task = task
        self.models = {model.name: model for model in models}

    def model(self, name: str | None) -> Model:
        """The model of that name; the first where none is named."""
        if name is None:
            return next(iter(self.models.values()))
        if name not in self.models:
            raise Refusal(404, f"model {name[:80]!r}; there are {', '.join(self.models)}")
        return self.models[name]

    def fields(self, model: Model) -> tuple[RequestField, ...]:
        """What a request says, one sample of each: the model's inputs, or what its field's people would rather send."""
        return of_inputs(model.inputs, model.time)

    def inputs(self, model: Model, given: Mapping[str, Array]) -> list[Array]:
        """The model's inputs of a request's fields, whose shapes and numbers are right; samples are in front."""
        return [given[item.name] for item in model.inputs]

    def read(
        self, model: Model, body: bytes, *, packed: bool, limits: Limits, deadline: Deadline
    ) -> tuple[list[Array], bool]:
        """A request as the model's inputs with samples in front, and whether it was a single sample; in any thread.

        JSON has the fields; an npz, `packed`, may have the model's own inputs as well.
        """
        fields, most = self.fields(model), limits.request_samples
        own = False
        if packed:
            archive = Archive(body)
            if not named(archive.names, fields):
                own = named(archive.names, of_inputs(model.inputs, model.time))
                if not own:
                    raise misnamed(archive.names, fields)
                fields = of_inputs(model.inputs, model.time)
            unfolded = UNFOLDED * limits.body_bytes
            given = archive.read(fields, most_samples=most, most_bytes=unfolded, deadline=deadline)
        else:
            given = read_json(body, fields, most_samples=most, deadline=deadline)
        batched, single = samples_of(given, fields)
        arrays = Service.inputs(self, model, batched) if own else self.inputs(model, batched)
        self.check(model, arrays)
        return arrays, single

    def row(self, model: Model, fields: Mapping[str, Any]) -> Row | None:
        """A JSON request of one sample as plain numbers and lists, one per input, if this task cares for speed.

        Rows become arrays a whole batch at a time. Whatever is not surely right is None, and goes the long way, by
        `read`, which refuses it with a reason.
        """
        return None

    def row_answer(self, model: Model, row: Row, output: Any) -> bytes:
        """The JSON text of `answer` for one row, `output` being plain lists; a task may write it faster."""
        arrays = [np.asarray([value], dtype=item.dtype) for value, item in zip(row, model.inputs)]
        return write_json(self.answer(model, arrays, np.asarray([output]), single=True), Deadline.after(math.inf))

    def check(self, model: Model, arrays: Sequence[Array]) -> None:
        """Refuse values that have the right shape and type but no meaning."""

    def answer(self, model: Model, arrays: Sequence[Array], output: Array, single: bool) -> dict[str, Any]:
        """The JSON answer, whose values may be arrays; of a single sample without the samples' axis. In any thread."""
        return {"output": output[0] if single else output}

    def written(
        self, model: Model, arrays: Sequence[Array], output: Array, *, single: bool, deadline: Deadline
    ) -> bytes:
        """The JSON text of `answer`; a task may write it faster."""
        return write_json(self.answer(model, arrays, output, single), deadline)

    def described(self, model: Model) -> dict[str, Any]:
        """A model as `/v1/models` lists it: what it is, what it is asked, and a request that it answers."""
        fields, output = self.fields(model), model.output
        own = {item.name: item.described() for item in of_inputs(model.inputs, model.time)}
        path = f"/v1/{self.task}/predict?model={quote(model.name)}"
        return {
            **model.described(),
            "note": self.note(model),
            "inputs": {field.name: field.described() for field in fields},
            # an npz may also have what the network itself takes
            "npz_inputs": None if own.keys() == {field.name for field in fields} else own,
            "answer": self.answers(model),
            "npz_answer": {"output": {"shape": list(output.shape), "dtype": output.dtype}},
            "example": example(fields, path),
        }

    def answers(self, model: Model) -> dict[str, str]:
        """What the fields of a JSON answer mean, with their units."""
        return {"output": "what the network says, as its author left it"}

    def note(self, model: Model) -> str:
        """What people should know of a model beside its name and its figures, in a few words."""
        return ""

    def request_schema(self) -> Schema:
        """Of a JSON request, for the description."""
        kinds = dict.fromkeys(self.fields(model) for model in self.models.values())
        found = [self.fields_schema(fields) for fields in kinds]
        return found[0] if len(found) == 1 else {"anyOf": found}

    def fields_schema(self, fields: Sequence[RequestField]) -> Schema:
        """Of a request with these fields."""
        optional = [field.name for field in fields if field.optional]
        return object_schema({field.name: array_schema(field) for field in fields}, optional)

    def answer_schema(self) -> Schema:
        """Of a JSON answer."""
        return object_schema({"output": {"description": "the prediction, nested lists"}})

    def router(self, gate: Gate) -> APIRouter | None:
        """Further endpoints under /v1/TASK for the page; work that takes long passes the gate."""
        return None


def object_schema(fields: Mapping[str, Schema], optional: Sequence[str] = ()) -> Schema:
    """An object with exactly these fields."""
    return {
        "type": "object",
        "properties": dict(fields),
        "required": [name for name in fields if name not in optional],
        "additionalProperties": False,
    }


def array_schema(item: Input) -> Schema:
    """One sample of an input, or several; of a long one the shape is told in words, so that tools can make some up."""
    number: Schema = {"type": "integer" if item.dtype.startswith(("int", "uint")) else "number"}
    longest = item.longest if isinstance(item, RequestField) else 0
    one, long = number, math.prod(item.shape) > _LONG or longest > 0
    for size in reversed(item.shape):
        one = {"type": "array", "items": one, **({} if long else {"minItems": size, "maxItems": size})}
    shape = ["any length", *item.shape[1:]] if longest else list(item.shape)
    told: Schema = {"description": f"of shape {shape}, or with samples in front"} if long else {}
    return {("anyOf" if long else "oneOf"): [one, {"type": "array", "items": one, "minItems": 1}], **told}


def services_of(models: Sequence[Model]) -> dict[str, Service]:
    """A service for each task that has a model, in the order in which tasks first appear."""
    found: dict[str, Service] = {}
    for task in dict.fromkeys(model.task for model in models):
        system = system_of(task)
        kind = imported(system.service) if system.service else Service
        found[task] = kind(task, [model for model in models if model.task == task])
    return found
