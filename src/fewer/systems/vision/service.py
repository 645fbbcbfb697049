"""Classifiers, served: an image in, the probability of each class out; and hostile images for the page."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from fewer.core.errors import UserError
from fewer.packs.file.tensors import Array
from fewer.packs.input_gradient import InputGradient, climbed, ladder
from fewer.packs.program import Input
from fewer.serve.fields import Deadline, RequestField
from fewer.serve.limits import Gate, Limits, Refusal
from fewer.serve.models import Model
from fewer.serve.service import Schema, Service, array_schema, object_schema
from fewer.serve.written import finite

__all__ = ["VisionService"]

_TOGETHER = 2  # networks that one request may attack


class Threat(BaseModel):
    """An image, and how far each pixel may be moved."""

    model_config = ConfigDict(extra="forbid", strict=True)
    pixels: list[Any]
    budget: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
    steps: Annotated[int, Field(ge=1, le=40)] = 10


class Climb(BaseModel):
    """An image, and the networks that are to meet ever larger changes of it."""

    model_config = ConfigDict(extra="forbid", strict=True)
    pixels: list[Any]
    models: Annotated[list[str], Field(min_length=1, max_length=_TOGETHER)]
    most: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] = 0.5
    rungs: Annotated[int, Field(ge=2, le=26)] = 26
    steps: Annotated[int, Field(ge=1, le=20)] = 10  # for each of some 26 budgets


class VisionService(Service):
    """`{"pixels": [[...], ...]}` in [0, 1]: rows of a grey image, or channels of rows of a colour image."""

    title = "Draw a digit or choose a photograph, then attack it"

    def __init__(self, task: str, models: Sequence[Model]) -> None:
        super().__init__(task, models)
        largest = max(math.prod(model.inputs[0].shape) for model in models)
        self.page_bytes = max(self.page_bytes, 32 * largest)  # its page sends an image, and a number has 20 digits
        self._gradients = {model.name: _gradient(model) for model in models}

    def fields(self, model: Model) -> tuple[RequestField, ...]:
        grey = _grey(model.inputs[0])
        meaning = "rows of a grey image, or channels of rows"
        return (RequestField("pixels", grey.shape, grey.dtype, unit="0 (black) to 1 (white)", meaning=meaning),)

    def answers(self, model: Model) -> dict[str, str]:
        return {"label": "number of the likeliest class", "probabilities": "of each class, from 0 to 1"}

    def described(self, model: Model) -> dict[str, Any]:
        names = model.pack.settings.get("classes")
        known = isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)
        return {**super().described(model), **({"classes": list(names)} if names and known else {})}

    def inputs(self, model: Model, given: Mapping[str, Array]) -> list[Array]:
        return [given["pixels"].reshape(-1, *model.inputs[0].shape)]

    def check(self, model: Model, arrays: Sequence[Array]) -> None:
        if not (np.isfinite(arrays[0]).all() and arrays[0].min() >= 0 and arrays[0].max() <= 1):
            raise Refusal(422, "pixels outside [0, 1]")

    def answer(self, model: Model, arrays: Sequence[Array], output: Array, single: bool) -> dict[str, Any]:
        shares = np.round(np.exp(output.astype(np.float64)), 6)
        label = output.argmax(axis=1)
        if single:
            return {"label": int(label[0]), "probabilities": finite(shares[0])}
        return {"label": label, "probabilities": shares}

    def fields_schema(self, fields: Sequence[RequestField]) -> Schema:
        return object_schema({field.name: _unit(array_schema(field)) for field in fields})

    def answer_schema(self) -> Schema:
        shares: Schema = {"type": "array", "items": {"type": ["number", "null"]}}
        one = object_schema({"label": {"type": "integer"}, "probabilities": shares})
        labels: Schema = {"type": "array", "items": {"type": "integer"}}
        many = object_schema({"label": labels, "probabilities": {"type": "array", "items": shares}})
        return {"oneOf": [one, many]}

    def router(self, gate: Gate) -> APIRouter:
        router = APIRouter(prefix="/v1/vision", tags=["vision"])

        @router.post("/attack", summary="What each network says of an image, and of the worst one nearby for it")
        async def attack(threat: Threat) -> dict[str, Any]:
            async with gate.entered():
                return await run_in_threadpool(self.attack, threat)

        @router.post("/ladder", summary="What networks say as the budget grows, and at which each changes its mind")
        async def climb(climb: Climb) -> dict[str, Any]:
            async with gate.entered():
                return await run_in_threadpool(self.climb, climb)

        return router

    def note(self, model: Model) -> str:
        """How it was made, as its page groups networks by it."""
        pruned = "pruned" if _pruned(model) else ""
        hardened = "hardened" if model.described()["hardened"] else ""
        return " and ".join(filter(None, (pruned, hardened))) or "ordinary"

    def climb(self, climb: Climb) -> dict[str, Any]:
        """Every named network's answer at every budget from 0 to the most, and the images, in bytes as base64."""
        budgets = np.linspace(0, climb.most, climb.rungs)
        found = {name: self._climbed(self.model(name), climb, budgets) for name in climb.models}
        return {"budgets": np.round(budgets, 4).tolist(), "models": found}

    def _climbed(self, model: Model, climb: Climb, budgets: Array) -> dict[str, Any]:
        image, gradient = self._image(model, climb.pixels), self._gradients[model.name]
        if isinstance(gradient, str):
            return {"why_not": gradient}
        worst = ladder(gradient, image, budgets=budgets, steps=climb.steps)
        answers = model.predict([worst])
        labels = answers.argmax(axis=1)
        fooled = np.flatnonzero(labels != labels[0])
        return {
            "labels": labels.tolist(),
            "probabilities": np.round(np.exp(answers.astype(np.float64)), 4).tolist(),
            "breaks_at": round(float(budgets[fooled[0]]), 4) if len(fooled) else None,
            "images": base64.b64encode(np.round(worst * 255).astype(np.uint8).tobytes()).decode(),
        }

    def attack(self, threat: Threat) -> dict[str, Any]:
        """Every network meets its own worst image within the budget; the answer it gave at first is the target."""
        first = next(iter(self.models.values())).inputs[0].shape
        found: dict[str, Any] = {}
        for name, model in self.models.items():
            if model.inputs[0].shape == first:
                found[name] = self._attacked(model, threat)
            else:
                found[name] = {"why_not": f"reads images of {list(model.inputs[0].shape)}"}
        return {"models": found}

    def _attacked(self, model: Model, threat: Threat) -> dict[str, Any]:
        image = self._image(model, threat.pixels)
        said = {"clean": self.answer(model, [image[None]], model.predict([image[None]]), True)}
        gradient = self._gradients[model.name]
        if isinstance(gradient, str):
            return {**said, "why_not": gradient}
        worst = climbed(gradient, image, budget=threat.budget, steps=threat.steps)
        shown = np.round(worst.reshape(_grey(model.inputs[0]).shape).astype(np.float64), 3)
        return {**said, "attacked": self.answer(model, [worst[None]], model.predict([worst[None]]), True),
                "pixels": shown.tolist()}  # fmt: skip

    def _image(self, model: Model, pixels: list[Any]) -> Array:
        """Read as a prediction's request is, so that both refuse the same."""
        body = json.dumps({"pixels": pixels}).encode()
        arrays, single = self.read(model, body, packed=False, limits=Limits(), deadline=Deadline.after(math.inf))
        if not single:
            raise Refusal(422, "several images; expected one")
        image: Array = arrays[0][0]
        return image


def _pruned(model: Model) -> bool:
    said = model.described()
    return bool(said.get("prunable")) and said["kept_prunable"] < 0.97 * said["prunable"]


def _grey(item: Input) -> Input:
    """A single channel needs no axis of its own."""
    return Input(item.name, item.shape[1:], item.dtype) if item.shape[0] == 1 and len(item.shape) == 3 else item


def _gradient(model: Model) -> InputGradient | str:
    try:
        return InputGradient(model.pack)
    except UserError as error:
        return str(error)


def _unit(schema: Schema) -> Schema:
    """The same with every number in [0, 1]."""
    if schema.get("type") == "number":
        return {**schema, "minimum": 0, "maximum": 1}
    for either in ("oneOf", "anyOf"):
        if either in schema:
            return {**schema, either: [_unit(part) for part in schema[either]]}
    return {**schema, "items": _unit(schema["items"])}
