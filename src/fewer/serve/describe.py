"""The OpenAPI description: what FastAPI knows of its own routes, and the predictions that bypass it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fewer.core.registry import system_of
from fewer.serve.fields import JSON, NPZ
from fewer.serve.open_inference.describe import inference_paths
from fewer.serve.service import Schema, Service, object_schema

__all__ = ["REFUSALS", "described_task", "description"]

_REASON = object_schema({"detail": {"type": "string"}})
_REFUSED = {
    400: "a body that cannot be read",
    401: "no token, or a wrong one",
    404: "no such model",
    405: "another method than this",
    408: "a body that came too slowly",
    413: "more bytes or more samples than allowed",
    415: "neither JSON nor npz",
    421: "a name of another machine in Host",
    422: "numbers of a wrong shape, type or range",
    503: "a full queue; come back after the seconds in Retry-After",
    504: "no answer in time",
}
REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"description": words, "content": {JSON: {"schema": _REASON}}} for status, words in _REFUSED.items()
}
_BEARER = {
    "type": "http",
    "scheme": "bearer",
    "description": "the token that the server was started with (FEWER_TOKEN)",
}


def description(
    found: dict[str, Any], services: Mapping[str, Service], *, token: bool, open_paths: tuple[str, ...]
) -> dict[str, Any]:
    """All paths; where a token is set, which of them ask for it."""
    own = {f"/v1/{task}/predict": {"post": _operation(task, service)} for task, service in services.items()}
    paths = {**own, **inference_paths(services), **found["paths"]}
    if not token:
        return {**found, "paths": paths}
    for path, operations in paths.items():
        if path.startswith(open_paths):
            operations.update({method: {**told, "security": []} for method, told in operations.items()})
    components = {**found.get("components", {}), "securitySchemes": {"token": _BEARER}}
    return {**found, "paths": paths, "components": components, "security": [{"token": []}]}


def described_task(task: str, service: Service, page: Path | None) -> dict[str, Any]:
    """A served task in words, for the pages: what it is, what its figures mean, and whether it has pictures."""
    system = system_of(task)
    return {
        "task": task,
        "title": service.title,
        "heading": system.description.heading,
        "line": system.line,
        "page": page is not None,
        "tile": page is not None and (page / "tile.js").exists(),
        "first_metrics": list(system.description.metrics),
        "metrics": {name: asdict(metric) for name, metric in system.metrics.items()},
    }


def _operation(task: str, service: Service) -> Schema:
    binary: Schema = {"schema": {"type": "string", "format": "binary"}}
    first = service.described(next(iter(service.models.values())))["example"]
    asked: Schema = {"schema": service.request_schema()}
    if first["content_type"] == JSON:
        asked["example"] = first["body"]
    model: Schema = {"type": "string", "enum": list(service.models), "default": next(iter(service.models))}
    answered = {JSON: {"schema": service.answer_schema()}, NPZ[0]: binary}
    return {
        "tags": [task],
        "operationId": f"predict_{task}",
        "summary": "Predict one sample or a batch",
        "description": service.__doc__ or "",
        "parameters": [{"name": "model", "in": "query", "required": False, "schema": model}],
        "requestBody": {
            "required": True,
            "content": {JSON: asked, NPZ[0]: binary},
        },
        "responses": {
            "200": {"description": "the prediction, in the kind of the request", "content": answered},
            **{str(status): answer for status, answer in REFUSALS.items()},
        },
    }
