"""`POST /v1/{task}/predict`, straight on ASGI: the one endpoint whose speed matters skips routing and dependencies."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qs

import numpy as np

from fewer.core.errors import UserError
from fewer.packs.file.tensors import Array
from fewer.serve.bodies import write_npz
from fewer.serve.fields import NPZ, Deadline
from fewer.serve.limits import Arrivals, Limits, Receive, Refusal
from fewer.serve.models import Model
from fewer.serve.observe.metrics import Metrics
from fewer.serve.queue import Queue, timed
from fewer.serve.reading.short import fields_of
from fewer.serve.service import Service

__all__ = ["SHORT_BYTES", "SHORT_NUMBERS", "Answer", "Predictions", "Receive", "Scope", "Send", "refuse"]

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

T = TypeVar("T")
SHORT_BYTES = 1 << 14  # of a JSON request that is understood in the event loop: two milliseconds at most
_ROW_BYTES = 1024  # of a request that may be a single sample's: a longer one is not parsed to find that out
SHORT_NUMBERS = 2048  # of an answer that is written there
_log = logging.getLogger("fewer.serve")


class Answer(NamedTuple):
    """What a good request gets."""

    kind: bytes
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...]


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
        self._told = {
            model.name: (
                (b"fewer-model", ascii(model.name)[1:-1].encode()),
                (b"fewer-version", model.version.encode()),
                (b"fewer-digest", b"sha256:" + model.digest.encode()),
            )
            for service in services.values()
            for model in service.models.values()
        }
        self._arrivals = Arrivals(limits.pending_bytes)
        self._unread = 0  # bytes of requests that wait to be understood
        # one for each model: a long request to one is not to hold up another's
        self._threads = {name: ThreadPoolExecutor(1, thread_name_prefix="aside") for name in self._seconds}

    async def answer(self, task: str, scope: Scope, receive: Receive, send: Send) -> None:
        """One request to its end."""
        await self.settle(task, self._answer(task, scope, receive), send)

    async def settle(self, task: str, answering: Awaitable[Answer], send: Send, *, word: str = "detail") -> None:
        """Send the answer, or a status and a reason for whatever goes wrong, under this word; count either."""
        start = time.perf_counter()
        refusal: Refusal | None = None
        try:
            answer = await answering
        except Refusal as error:
            refusal = error.with_traceback(None)  # its frames hold the body, and this one would hold them
        except UserError as error:
            refusal = Refusal(422, str(error))
        except Exception:
            _log.exception("predict %s", task)
            refusal = Refusal(500, "the server failed; its log says why")
        # before it leaves: whoever has an answer finds it counted, whichever worker is asked
        self.metrics.request(task, refusal.status if refusal else 200, time.perf_counter() - start)
        if refusal:
            await refuse(refusal, send, word=word)
            return
        headers = [(b"content-type", answer.kind), (b"content-length", b"%d" % len(answer.body)), *answer.headers]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer.body})

    async def _answer(self, task: str, scope: Scope, receive: Receive) -> Answer:
        service = self.services[task]
        if scope["method"] != "POST":
            raise Refusal(405, f"{scope['method']}; expected POST", (("allow", "POST"),))
        query = scope["query_string"]
        model = service.model(parse_qs(query.decode("latin-1"), True).get("model", [None])[0] if query else None)
        headers = dict(scope["headers"])
        kind = headers.get(b"content-type", b"").split(b";")[0].strip().lower().decode("latin-1")
        if kind != "application/json" and kind not in NPZ:
            raise Refusal(415, f"content-type {kind[:80] or 'none'!r}; expected application/json or {NPZ[0]}")
        packed = kind in NPZ
        deadline = Deadline.after(self.limits.seconds)
        body = await self.body(headers, receive, deadline)
        if packed or len(body) > SHORT_BYTES:  # a few bytes may unfold to megabytes
            read = partial(service.read, model, body, packed=packed, limits=self.limits, deadline=deadline)
            arrays, single = await self.read_aside(model, read, len(body), deadline)
        else:
            row = service.row(model, fields_of(body)) if service.reads_rows and len(body) <= _ROW_BYTES else None
            if row is not None:
                said = service.row_answer(model, row, await self._queue(model).put_row(row, deadline))
                return Answer(b"application/json", said, self.told(model))
            arrays, single = service.read(model, body, packed=False, limits=self.limits, deadline=deadline)
        del body
        output = await self.predicted(model, arrays, deadline)

        def written() -> Answer:
            if packed and b"application/json" not in headers.get(b"accept", b""):
                return Answer(NPZ[0].encode(), write_npz({"output": output[0] if single else output}), self.told(model))
            said = service.written(model, arrays, output, single=single, deadline=deadline)
            return Answer(b"application/json", said, self.told(model))

        return written() if output.size <= service.short_numbers else await self.aside(model, written, deadline)

    def told(self, model: Model) -> tuple[tuple[bytes, bytes], ...]:
        """Headers that say which pack answered."""
        return self._told[model.name]

    async def read_aside(self, model: Model, read: Callable[[], T], size: int, deadline: Deadline) -> T:
        """A long body of so many bytes, in its turn; those that wait for it are bounded as those that are read."""
        if self._unread and self._unread + size > self.limits.pending_bytes:
            raise Refusal(503, "too many large requests wait; come back in a second")
        self._unread += size
        try:
            return await self.aside(model, read, deadline)
        finally:
            self._unread -= size

    async def aside(self, model: Model, work: Callable[[], T], deadline: Deadline) -> T:
        """In the model's thread, one after the other: work that would keep the event loop from listening."""

        def in_time() -> T:
            deadline.check()
            return work()

        try:
            async with asyncio.timeout(deadline.left):
                return await asyncio.get_running_loop().run_in_executor(self._threads[model.name], in_time)
        except TimeoutError:
            raise deadline.refusal() from None

    async def body(self, headers: dict[bytes, bytes], receive: Receive, deadline: Deadline) -> bytes:
        """Read with what has arrived counted, so that many large requests cannot exhaust the memory."""
        if headers.get(b"content-encoding", b"identity") != b"identity":
            raise Refusal(415, "a compressed request; expected one that is not")
        length = headers.get(b"content-length")
        if length is not None and length.isdigit() and int(length) > self.limits.body_bytes:
            raise Refusal(413, f"{int(length)} bytes; expected at most {self.limits.body_bytes}")
        with self._arrivals.counted(receive) as arriving:
            return await whole_body(arriving, self.limits.body_bytes, deadline)

    def _queue(self, model: Model) -> Queue:
        queue = self._queues.get(model.name)
        if queue is None:
            queue = self._queues[model.name] = Queue(
                model, self.limits, self._seconds[model.name], self.metrics.model(model.name)
            )
        return queue

    async def predicted(self, model: Model, arrays: list[Array], deadline: Deadline) -> Array:
        """Of many samples part after part, so that others come in between and memory is that of a part."""
        queue, samples = self._queue(model), len(arrays[0])
        most = queue.most_together(arrays)
        if samples <= most:
            return await queue.put(arrays, deadline)
        parts = [slice(first, first + most) for first in range(0, samples, most)]
        return np.concatenate([await queue.put([array[part] for array in arrays], deadline) for part in parts])

    def close(self) -> None:
        """Wait for what runs."""
        for thread in self._threads.values():
            thread.shutdown()
        for queue in self._queues.values():
            queue.close()


async def whole_body(receive: Receive, most_bytes: int, deadline: Deadline) -> bytes:
    """The body, within its bounds of bytes and seconds."""
    parts: list[bytes] = []
    total, more = 0, True
    while more:
        message = await _within(receive(), deadline)
        if message["type"] == "http.disconnect":
            raise Refusal(400, "a request that ended early")
        parts.append(message.get("body", b""))
        total, more = total + len(parts[-1]), message.get("more_body", False)
        if total > most_bytes:
            raise Refusal(413, f"more than {most_bytes} bytes")
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def _within(coming: Awaitable[MutableMapping[str, Any]], deadline: Deadline) -> MutableMapping[str, Any]:
    try:
        async with asyncio.timeout(deadline.left):
            return await coming
    except TimeoutError:
        raise Refusal(408, "a body that comes too slowly") from None


async def refuse(refusal: Refusal, send: Send, *, word: str = "detail") -> None:
    """A JSON answer with the reason under this word."""
    body = json.dumps({word: " ".join(refusal.reason.split())}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    headers += [(name.encode(), value.encode()) for name, value in refusal.headers]
    if refusal.status in (408, 413):  # what is left of the body is not read
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
