"""The protocol's paths in the OpenAPI description, each model's inference with its own inputs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from fewer.packs.program import Input
from fewer.serve.fields import JSON, RequestField, of_inputs
from fewer.serve.models import Model
from fewer.serve.open_inference.tensors import datatype
from fewer.serve.service import Schema, Service, object_schema

__all__ = ["inference_paths"]

_REFUSED = {
    400: "no request of this protocol, or other inputs, datatypes or shapes than the metadata says",
    401: "no token, or a wrong one",
    404: "no such model or version",
    405: "another method than this",
    408: "a body that came too slowly",
    413: "more bytes or more samples than allowed",
    415: "a compressed request",
    421: "a name of another machine in Host",
    422: "numbers that have no meaning for the model",
    503: "a full queue, or a server that is leaving",
    504: "no answer in time",
}
_REFUSALS = {
    str(status): {"description": words, "content": {JSON: {"schema": object_schema({"error": {"type": "string"}})}}}
    for status, words in _REFUSED.items()
}
_TEXT: Schema = {"type": "string"}
_SOME: Schema = {"type": "object"}
_MOST_COUNTED = 1024  # of one sample, which tools can make up
_MOST_NUMBERS = 64  # of one sample, whose request is written out


def inference_paths(services: Mapping[str, Service]) -> dict[str, Any]:
    """Health, the server's and the models' metadata, and inference."""
    models = [model for service in services.values() for model in service.models.values()]
    found = {
        "/v2": _get("The server's name, version and extensions", "server_metadata"),
        "/v2/health/live": _get("Whether the server answers", "server_live"),
        "/v2/health/ready": _get("Whether to send it requests", "server_ready"),
    }
    for model in models:
        path, word = f"/v2/models/{model.name}", "".join(c if c.isalnum() else "_" for c in model.name)
        versioned = f"{path}/versions/{model.version}"
        found[path] = _get("Inputs and outputs, with their datatypes and shapes", f"metadata_{word}")
        found[f"{path}/ready"] = _get("Whether it answers", f"ready_{word}")
        found[versioned] = _get("The same, if this is the version", f"metadata_{word}_version")
        found[f"{path}/infer"] = {"post": _infer(model, f"infer_{word}")}
        found[f"{versioned}/infer"] = {"post": _infer(model, f"infer_{word}_version")}
    return found


def _get(summary: str, name: str) -> Schema:
    good = {"description": "as asked", "content": {JSON: {"schema": _SOME}}}
    refused = {status: _REFUSALS[status] for status in ("401", "404", "405", "421", "503")}
    return {"get": {"tags": ["v2"], "operationId": name, "summary": summary, "responses": {"200": good, **refused}}}


def _infer(model: Model, name: str) -> Schema:
    answer = object_schema({"model_name": _TEXT, "model_version": _TEXT, "id": _TEXT, "outputs": _outputs()}, ("id",))
    asked: Schema = {"schema": _request(model)}
    if sum(math.prod(item.shape) for item in model.inputs) <= _MOST_NUMBERS:
        asked["example"] = {"inputs": [_example(item) for item in model.inputs]}
    return {
        "tags": ["v2"],
        "operationId": name,
        "summary": f"Inference by {model.name}; numbers in JSON, or behind it as bytes",
        "requestBody": {"required": True, "content": {JSON: asked}},
        "responses": {
            "200": {"description": "the output", "content": {JSON: {"schema": answer}}},
            **_REFUSALS,
        },
    }


def _example(item: Input) -> Schema:
    data = [0] * math.prod(item.shape)
    return {"name": item.name, "datatype": datatype(item.dtype), "shape": [1, *item.shape], "data": data}


def _request(model: Model) -> Schema:
    inputs: Schema = {
        "type": "array",
        "prefixItems": [_input(field) for field in of_inputs(model.inputs, model.time)],
        "items": False,
        "minItems": len(model.inputs),
        "maxItems": len(model.inputs),
        "description": "in any order",
    }
    output = object_schema({"name": {"const": "output"}, "parameters": _SOME}, ("parameters",))
    outputs: Schema = {"type": "array", "items": output, "maxItems": 1}
    fields = {"id": _TEXT, "parameters": _SOME, "inputs": inputs, "outputs": outputs}
    return object_schema(fields, ("id", "parameters", "outputs"))


def _input(item: RequestField) -> Schema:
    """One sample of it, as many numbers as it has; more samples are more numbers, which a schema cannot count."""
    whole = item.dtype.startswith(("int", "uint"))
    size = math.prod(item.shape)
    sizes: Schema = {"minItems": size, "maxItems": size} if size <= _MOST_COUNTED else {}
    data: Schema = {
        "type": "array",
        "items": {"type": "integer", "minimum": 0} if whole else {"type": "number"},
        "description": f"{size} numbers a sample, row by row",
        **sizes,
    }
    shape: Schema = {"const": [1, *item.shape], "description": "the number of samples first; here of one"}
    kind: Schema = {"const": datatype(item.dtype)}
    return object_schema({"name": {"const": item.name}, "datatype": kind, "shape": shape, "data": data})


def _outputs() -> Schema:
    number: Schema = {"type": ["number", "null"]}
    tensor = object_schema(
        {
            "name": _TEXT,
            "datatype": _TEXT,
            "shape": {"type": "array", "items": {"type": "integer"}},
            "data": {"type": "array", "items": number},
        }
    )
    return {"type": "array", "items": tensor}
