"""One request and its answer on their way out: an id, compression where the client takes it, a line of log."""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

from fewer.serve.observe.access_log import AccessLog
from fewer.serve.observe.trace import Trace

__all__ = ["Exchange", "Outgoing"]

Message = MutableMapping[str, Any]
_WORTH_IT = 1024  # bytes from which an answer is compressed
_AT_ONCE = 1 << 14  # bytes that are compressed in the event loop: a fraction of a millisecond
_LEVEL = 1  # a forecast in JSON shrinks to a quarter; higher levels take five times as long for a tenth of that
_KINDS = (b"application/json", b"text/", b"image/svg")


class Outgoing:
    """What all exchanges of one process share."""

    def __init__(self, log: AccessLog | None = None) -> None:
        self.log = log
        self.worker = 0
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="compress")

    def open(self, worker: int) -> None:
        """In the process that answers, before its first request."""
        self.worker = worker
        if self.log is not None:
            self.log.open()

    def close(self) -> None:
        """After the last."""
        self._threads.shutdown()
        if self.log is not None:
            self.log.close()

    async def compressed(self, body: bytes) -> bytes:
        """As gzip; what is long in a thread, which lets others run."""
        if len(body) <= _AT_ONCE:
            return _gzip(body)
        return await asyncio.get_running_loop().run_in_executor(self._threads, _gzip, body)


def _gzip(body: bytes) -> bytes:
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, 31)
    return packer.compress(body) + packer.flush()


class Exchange:
    """What an application calls to send; holds the answer's head back until it is known how long its body is."""

    def __init__(self, scope: Any, send: Callable[[Message], Awaitable[None]], outgoing: Outgoing) -> None:
        self._scope, self._send, self._outgoing = scope, send, outgoing
        self._since, self._trace = time.perf_counter(), Trace.of(scope["headers"])
        self._head: Message | None = None
        self._status, self._bytes, self._model = 0, 0, b""

    async def send(self, message: Message) -> None:
        """A part of the answer."""
        if message["type"] == "http.response.start":
            self._head = message
            return
        if self._head is not None:
            head, self._head = self._head, None
            message = await self._began(head, message)
        self._bytes += len(message.get("body", b""))
        if not message.get("more_body", False) and self._outgoing.log is not None:
            self._outgoing.log.write(self._entry())
        await self._send(message)

    async def _began(self, head: Message, message: Message) -> Message:
        self._status = head["status"]
        headers = [*head.get("headers", []), *self._trace.headers()]
        self._model = next((value for name, value in headers if name == b"fewer-model"), b"")
        whole = not message.get("more_body", False) and self._scope["method"] != "HEAD"
        if whole and len(message.get("body", b"")) >= _WORTH_IT and _is_text(headers):
            headers.append((b"vary", b"accept-encoding"))
            if _takes_gzip(self._scope["headers"]):
                body = await self._outgoing.compressed(message["body"])
                message, headers = {**message, "body": body}, _packed(headers, len(body))
        await self._send({**head, "headers": headers})
        return message

    def _entry(self) -> dict[str, Any]:
        scope, client = self._scope, self._scope.get("client")
        found: dict[str, Any] = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            **self._trace.entry(),
            "client": client[0] if client else None,
            "method": scope["method"],
            "path": scope["path"][:500],
            "status": self._status,
            "seconds": round(time.perf_counter() - self._since, 6),
            "bytes": self._bytes,
            "worker": self._outgoing.worker,
        }
        return {**found, "model": self._model.decode()} if self._model else found


def _is_text(headers: list[tuple[bytes, bytes]]) -> bool:
    names = dict(headers)
    return b"content-encoding" not in names and names.get(b"content-type", b"").startswith(_KINDS)


def _takes_gzip(headers: list[tuple[bytes, bytes]]) -> bool:
    """Whether a client names it without forbidding it (a quality of 0)."""
    given = b",".join(value for name, value in headers if name == b"accept-encoding").lower()
    for word in given.split(b","):
        name, _, quality = word.partition(b";")
        if name.strip() in (b"gzip", b"*"):
            return quality.replace(b" ", b"") not in (b"q=0", b"q=0.0", b"q=0.00", b"q=0.000")
    return False


def _packed(headers: list[tuple[bytes, bytes]], length: int) -> list[tuple[bytes, bytes]]:
    kept = [(n, b"W/" + v if n == b"etag" and v[:2] != b"W/" else v) for n, v in headers if n != b"content-length"]
    return [*kept, (b"content-encoding", b"gzip"), (b"content-length", b"%d" % length)]
