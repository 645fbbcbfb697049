"""`POST /v1/{task}/predict`, straight on ASGI: the one endpoint whose speed matters skips routing and dependencies."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

import numpy as np

from fewer.core.errors import UserError
from fewer.serve.bodies import fields_of, read_npz, write_npz
from fewer.serve.limits import Arrivals, Limits, Receive, Refusal
from fewer.serve.metrics import Metrics
from fewer.serve.models import Model
from fewer.serve.queue import Queue, timed
from fewer.serve.service import Service
from fewer.sparse.tensors import Array

__all__ = ["NPZ", "Predictions", "Receive", "Scope", "Send"]

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

NPZ = ("application/x-npz", "application/octet-stream")
_log = logging.getLogger("fewer.serve")


class Predictions:
    """All tasks' predictions: reads, queues, answers, counts."""

    def __init__(self, services: dict[str, Service], limits: Limits, metrics: Metrics) -> None:
        self.services, self.limits, self.metrics = services, limits, metrics
        self._queues: dict[str, Queue] = {}
        self._seconds = {
            model.name: timed(model, limits.batch_samples)
            for service in services.values()
            for model in service.models.values()
        }
        self._arrivals = Arrivals(limits.pending_bytes)

    async def answer(self, task: str, scope: Scope, receive: Receive, send: Send) -> None:
        """One request to its end; whatever goes wrong has a status and a reason."""
        start = time.perf_counter()
        refusal: Refusal | None = None
        try:
            status, kind, body = await self._answer(task, scope, receive)
        except Refusal as error:
            refusal = error
        except UserError as error:
            refusal = Refusal(422, str(error))
        except Exception:
            _log.exception("predict %s", task)
            refusal = Refusal(500, "the server failed; its log says why")
        # before it leaves: whoever has an answer finds it counted, whichever worker is asked
        self.metrics.request(task, refusal.status if refusal else status, time.perf_counter() - start)
        if refusal:
            await refuse(refusal, send)
            return
        headers: list[tuple[bytes, bytes]] = [(b"content-type", kind), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, task: str, scope: Scope, receive: Receive) -> tuple[int, bytes, bytes]:
        service = self.services[task]
        if scope["method"] != "POST":
            raise Refusal(405, f"{scope['method']}; expected POST", (("allow", "POST"),))
        query = scope["query_string"]
        model = service.model(parse_qs(query.decode("latin-1"), True).get("model", [None])[0] if query else None)
        headers = dict(scope["headers"])
        kind = headers.get(b"content-type", b"").split(b";")[0].strip().lower().decode("latin-1")
        if kind != "application/json" and kind not in NPZ:
            raise Refusal(415, f"content-type {kind[:80] or 'none'!r}; expected application/json or {NPZ[0]}")
        body = await self._body(headers, receive)
        packed = kind in NPZ
        if packed:
            arrays, single = service.npz(model, read_npz(body, 4 * self.limits.body_bytes))
        else:
            fields = fields_of(body)
            row = service.row(model, fields)
            if row is not None:
                said = service.row_answer(model, row, await self._queue(model).put_row(row))
                return 200, b"application/json", said
            arrays, single = service.arrays(model, fields)
        service.check(model, arrays)
        output = await self._predicted(model, arrays)
        if packed and b"application/json" not in headers.get(b"accept", b""):
            return 200, NPZ[0].encode(), write_npz({"output": output[0] if single else output})
        answer = service.answer(model, arrays, output, single)
        return 200, b"application/json", json.dumps(answer, allow_nan=False, separators=(",", ":")).encode()

    async def _body(self, headers: dict[bytes, bytes], receive: Receive) -> bytes:
        """Read with what has arrived counted, so that many large requests cannot exhaust the memory."""
        length = headers.get(b"content-length")
        if length is not None and length.isdigit() and int(length) > self.limits.body_bytes:
            raise Refusal(413, f"{int(length)} bytes; expected at most {self.limits.body_bytes}")
        with self._arrivals.counted(receive) as arriving:
            return await whole_body(arriving, self.limits)

    def _queue(self, model: Model) -> Queue:
        queue = self._queues.get(model.name)
        if queue is None:
            queue = self._queues[model.name] = Queue(
                model, self.limits, self._seconds[model.name], self.metrics.tally(model.name)
            )
        return queue

    async def _predicted(self, model: Model, arrays: list[Array]) -> Array:
        queue, samples = self._queue(model), len(arrays[0])
        most = queue.most_waiting
        if samples > most:
            parts = [slice(first, first + most) for first in range(0, samples, most)]
            return np.concatenate([await queue.put([a[part] for a in arrays], len(arrays[0][part])) for part in parts])
        return await queue.put(arrays, samples)

    def close(self) -> None:
        """Wait for what runs."""
        for queue in self._queues.values():
            queue.close()


async def whole_body(receive: Receive, limits: Limits) -> bytes:
    """The body, within its bounds of bytes and seconds."""
    end = time.monotonic() + limits.seconds
    parts: list[bytes] = []
    total, more = 0, True
    while more:
        message = await _within(receive(), end - time.monotonic())
        if message["type"] == "http.disconnect":
            raise Refusal(400, "a request that ended early")
        parts.append(message.get("body", b""))
        total, more = total + len(parts[-1]), message.get("more_body", False)
        if total > limits.body_bytes:
            raise Refusal(413, f"more than {limits.body_bytes} bytes")
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def _within(coming: Awaitable[MutableMapping[str, Any]], seconds: float) -> MutableMapping[str, Any]:
    try:
        async with asyncio.timeout(max(seconds, 0.001)):
            return await coming
    except TimeoutError:
        raise Refusal(408, "a body that comes too slowly") from None


async def refuse(refusal: Refusal, send: Send) -> None:
    """A JSON answer with the reason."""
    body = json.dumps({"detail": " ".join(refusal.reason.split())}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    headers += [(name.encode(), value.encode()) for name, value in refusal.headers]
    if refusal.status in (408, 413):  # what is left of the body is not read
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
