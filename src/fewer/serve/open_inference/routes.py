"""The protocol's paths, straight on ASGI: health, metadata, and inference through the same queues as `/v1`."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from fewer.core.machine.version import VERSION
from fewer.packs.file.tensors import Array
from fewer.serve.fields import Deadline
from fewer.serve.limits import Refusal
from fewer.serve.models import Model
from fewer.serve.open_inference.request import Asked, read
from fewer.serve.open_inference.tensors import datatype, metadata
from fewer.serve.predict import SHORT_BYTES, SHORT_NUMBERS, Answer, Predictions, Receive, Scope, Send, refuse
from fewer.serve.service import Service
from fewer.serve.written import write_json

__all__ = ["OpenInference"]

_JSON = b"application/json"
_LENGTH = b"inference-header-content-length"


class OpenInference:
    """All of `/v2`; a refusal has its reason under `error`."""

    def __init__(self, predictions: Predictions, ready: Callable[[], bool]) -> None:
        self._predictions, self._ready = predictions, ready
        self._services = {model: s for s in predictions.services.values() for model in s.models}
        self._metadata = {
            name: json.dumps(metadata(service.models[name])).encode() for name, service in self._services.items()
        }
        server = {"name": "fewer", "version": VERSION, "extensions": ["binary_tensor_data"]}
        self._server = json.dumps(server).encode()

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request to its end."""
        parts = scope["path"].rstrip("/").split("/")[2:]
        if len(parts) >= 3 and parts[0] == "models" and parts[-1] == "infer" and parts[1] in self._services:
            service = self._services[parts[1]]
            infer = self._infer(service, service.models[parts[1]], parts[2:-1], scope, receive)
            await self._predictions.settle(service.task, infer, send, word="error")
            return
        try:
            if scope["method"] not in ("GET", "HEAD"):
                raise Refusal(405, f"{scope['method']}; expected GET", (("allow", "GET, HEAD"),))
            status, body = self._told(parts)
        except Refusal as refusal:
            await refuse(refusal, send, word="error")
            return
        headers = [(b"content-type", _JSON), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _told(self, parts: list[str]) -> tuple[int, bytes]:
        ready = self._ready()
        if not parts:
            return 200, self._server
        if parts == ["health", "live"]:
            return 200, b'{"live":true}'
        if parts == ["health", "ready"]:
            return 200 if ready else 503, b'{"ready":%s}' % (b"true" if ready else b"false")
        if len(parts) < 2 or parts[0] != "models":
            raise Refusal(404, "no such path; see /v2, /v2/health/ready and /v2/models/NAME")
        model = self._model(parts[1])
        wants_ready = parts[-1] == "ready" and len(parts) > 2
        _checked_version(model, parts[2:-1] if wants_ready else parts[2:])
        if wants_ready:
            told = {"name": model.name, "ready": ready}
            return 200 if ready else 503, json.dumps(told).encode()
        return 200, self._metadata[model.name]

    def _model(self, name: str) -> Model:
        if name not in self._services:
            raise Refusal(404, f"model {name[:80]!r}; there are {', '.join(self._services)}")
        return self._services[name].models[name]

    async def _infer(
        self, service: Service, model: Model, version: list[str], scope: Scope, receive: Receive
    ) -> Answer:
        if scope["method"] != "POST":
            raise Refusal(405, f"{scope['method']}; expected POST", (("allow", "POST"),))
        _checked_version(model, version)
        headers = dict(scope["headers"])
        length = headers.get(_LENGTH)
        if length is not None and not (length.isdigit() and len(length) < 12):
            raise Refusal(400, "Inference-Header-Content-Length; expected a number of bytes")
        predictions = self._predictions
        limits, deadline = predictions.limits, Deadline.after(predictions.limits.seconds)
        body = await predictions.body(headers, receive, deadline)

        size = None if length is None else int(length)
        understood = partial(_understood, service, model, body, size, limits.request_samples, deadline)
        short = len(body) <= SHORT_BYTES
        asked = understood() if short else await predictions.read_aside(model, understood, len(body), deadline)
        del body, understood
        output = await predictions.predicted(model, asked.arrays, deadline)
        written = partial(_written, model, asked, output, predictions.told(model), deadline)
        return written() if output.size <= SHORT_NUMBERS else await predictions.aside(model, written, deadline)


def _understood(service: Service, model: Model, body: bytes, size: int | None, most: int, deadline: Deadline) -> Asked:
    found = read(body, size, model, most_samples=most, deadline=deadline)
    service.check(model, found.arrays)
    return found


def _checked_version(model: Model, parts: list[str]) -> None:
    if parts and parts != ["versions", model.version]:
        raise Refusal(404, f"{'/'.join(parts)[:80]!r}; expected versions/{model.version}, or none")


def _written(
    model: Model, asked: Asked, output: Array, told: tuple[tuple[bytes, bytes], ...], deadline: Deadline
) -> Answer:
    head: dict[str, Any] = {"model_name": model.name, "model_version": model.version}
    if asked.identifier is not None:
        head["id"] = asked.identifier
    tensor = {"name": "output", "datatype": datatype(output.dtype.name), "shape": list(output.shape)}
    if asked.binary:
        plain = output.astype(output.dtype.newbyteorder("<"), copy=False).tobytes()
        text = json.dumps({**head, "outputs": [{**tensor, "parameters": {"binary_data_size": len(plain)}}]}).encode()
        return Answer(b"application/octet-stream", text + plain, ((_LENGTH, b"%d" % len(text)), *told))
    # {"data":[...]} is written piece by piece, the rest is short
    start = json.dumps({**head, "outputs": [tensor]}).encode()
    data = write_json({"data": output.reshape(-1)}, deadline)
    return Answer(_JSON, start[:-3] + b"," + data[1:] + b"]}", told)
