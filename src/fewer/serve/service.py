"""How a task is served: what its requests and answers look like, and what its page may ask for beside predictions.

A task joins with one module that derives from `Service`, a line in `SERVICES`, and a page `static/TASK.html`. A task
without one (your own) is served by `Service` itself: the pack's inputs by name in, its output out.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fewer.serve.bodies import checked, finite_json, numbers, samples_of
from fewer.serve.limits import Gate, Refusal
from fewer.serve.models import Model
from fewer.sparse.program import Input
from fewer.sparse.tensors import Array

if TYPE_CHECKING:
    from fastapi import APIRouter

__all__ = ["SERVICES", "Row", "Schema", "Service", "array_schema", "services_of"]

SERVICES = {
    "vision": "fewer.serve.vision:VisionService",
    "cellfree": "fewer.serve.cellfree:CellFreeService",
    "control": "fewer.serve.control:ControlService",
    "nowcast": "fewer.serve.nowcast:NowcastService",
}

Schema = dict[str, Any]
Row = tuple[Any, ...]


class Service:
    """All models of one task. Requests of one sample and of a batch differ by an axis of samples in front."""

    title = "A model of your own"
    page: str | None = None  # a file under static/

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

    def arrays(self, model: Model, fields: Mapping[str, Any]) -> tuple[list[Array], bool]:
        """A JSON request as arrays with samples in front, and whether it was a single sample."""
        wanted = {item.name: item for item in model.inputs}
        if fields.keys() != wanted.keys():
            raise Refusal(422, f"fields {_words(fields)}; expected {_words(wanted)}")
        return samples_of({name: numbers(name, fields[name], item) for name, item in wanted.items()}, model.inputs)

    def npz(self, model: Model, found: Mapping[str, Array]) -> tuple[list[Array], bool]:
        """The same of named arrays."""
        wanted = {item.name: item for item in model.inputs}
        if found.keys() != wanted.keys():
            raise Refusal(422, f"arrays {_words(found)}; expected {_words(wanted)}")
        return samples_of({name: checked(name, found[name], item) for name, item in wanted.items()}, model.inputs)

    def row(self, model: Model, fields: Mapping[str, Any]) -> Row | None:
        """A JSON request of one sample as plain numbers and lists, one per input, if this task cares for speed.

        Rows become arrays a whole batch at a time. Whatever is not surely right is None, and goes the long way, by
        `arrays` and `check`, which refuses it with a reason.
        """
        return None

    def row_answer(self, model: Model, row: Row, output: Any) -> bytes:
        """The JSON text of `answer` for one row, `output` being plain lists; a task may write it faster."""
        arrays = [np.asarray([value], dtype=item.dtype) for value, item in zip(row, model.inputs)]
        return json.dumps(self.answer(model, arrays, np.asarray([output]), single=True)).encode()

    def check(self, model: Model, arrays: Sequence[Array]) -> None:
        """Refuse values that have the right shape and type but no meaning."""

    def answer(self, model: Model, arrays: Sequence[Array], output: Array, single: bool) -> dict[str, Any]:
        """The JSON answer; of a single sample without the samples' axis."""
        return {"output": finite_json(output[0] if single else output)}

    def request_schema(self) -> Schema:
        """Of a JSON request, for the description."""
        inputs = next(iter(self.models.values())).inputs
        return object_schema({item.name: array_schema(item) for item in inputs})

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
    """One sample of an input, or several."""
    number: Schema = {"type": "integer" if item.dtype.startswith(("int", "uint")) else "number"}
    one = number
    for size in reversed(item.shape):
        one = {"type": "array", "items": one, "minItems": size, "maxItems": size}
    return {"oneOf": [one, {"type": "array", "items": one, "minItems": 1}]}


def services_of(models: Sequence[Model]) -> dict[str, Service]:
    """A service for each task that has a model, in the order in which tasks first appear."""
    found: dict[str, Service] = {}
    for task in dict.fromkeys(model.task for model in models):
        kind = Service
        if task in SERVICES:
            module, _, name = SERVICES[task].partition(":")
            kind = getattr(importlib.import_module(module), name)
        found[task] = kind(task, [model for model in models if model.task == task])
    return found


def _words(names: Mapping[str, Any]) -> str:
    return ", ".join(sorted(name[:40] for name in names)) or "none"
