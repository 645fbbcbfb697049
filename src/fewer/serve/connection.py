"""A connection: answers leave in one packet, and what a client sends, how slowly, and how many they are, is bounded.

uvicorn writes head and body apart, and each write wakes the client and costs a system call. It also reads headers
without end, and stops waiting for a client only between two requests; both would cost whoever has no token nothing.
"""

from __future__ import annotations

import asyncio
import http
import json
import math
from collections.abc import Callable
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from fewer.serve.door import Door

__all__ = ["Connection", "Together"]

_MOST = 1 << 16  # bytes that are held back; more goes out at once, so that the transport can say when it is full
_SMALL, _CHUNKS = 64, 4096  # bytes of a chunk that is mostly trouble, and how many such a body may have
_LINGER, _DROPPED = 1.0, 16 << 20  # seconds and bytes that a client who is sent away may go on sending
_AHEAD = 16  # requests that a client may send before the first is answered


class Together:
    """A transport that sends what is written in one round of the event loop at the round's end, in one piece."""

    def __init__(
        self, transport: Any, loop: asyncio.AbstractEventLoop, linger: Callable[[], bool] = lambda: False
    ) -> None:
        self._transport, self._loop, self._linger = transport, loop, linger
        self._held: list[bytes] = []
        self._bytes = 0
        self.written = 0  # bytes handed to the transport so far
        self._ended = False

    def write(self, data: bytes) -> None:
        """Hold it, or with what is held already send it; after the end there is nobody to hear it."""
        if self._ended:
            return
        if not self._held:
            self._loop.call_soon(self._flush)
        self._held.append(data)
        self._bytes += len(data)
        if self._bytes > _MOST:
            self._flush()

    def _flush(self) -> None:
        if not self._held:
            return
        whole = b"".join(self._held)
        self._held, self._bytes = [], 0
        if not self._transport.is_closing():
            self._transport.write(whole)
            self.written += len(whole)

    def write_eof(self) -> None:
        """After what is held: the client knows that nothing more comes, and may still be sending."""
        self._flush()
        self._ended = True
        self._transport.write_eof()

    def close(self) -> None:
        """After an answer; whoever is still sending is waited for, if `linger` says so."""
        if self._ended or self._transport.is_closing() or not self._linger():
            self.end()

    def end(self) -> None:
        """After what is held; the transport itself sends what it has before it ends."""
        self._flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Connection(HttpToolsProtocol):
    """uvicorn's own, on such a transport, within the door's limits."""

    transport: Any  # Together

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        door: Door,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._door, self._limits = door, door.limits
        self._pace = min(4.0, door.limits.header_seconds, door.limits.idle_seconds, door.limits.seconds) / 4
        self._until = math.inf  # when the next request's headers have to be here
        self._heading = False  # a request has begun, and its headers have not ended
        self._aside = 0  # bytes since the last one of a body: headers, trailers, what surrounds chunks
        self._chunks = 0  # small ones of a body
        self._unwanted = 0  # bytes of a body that came after its answer
        self._taken, self._taken_by = 0, math.inf  # bytes of answers that have left, and until when more have to
        self._fault: tuple[int, str] | None = None
        self._away: int | None = None  # bytes that came after it was sent away

    def connection_made(self, transport: Any) -> None:
        super().connection_made(Together(transport, self.loop, self._unfinished))  # type: ignore[arg-type]
        self._timer = self.loop.call_later(self._pace, self._look)
        self._wait()
        if len(self.connections) > self._limits.connections and not self._door.made_room(self):
            self._refuse(503, "too many connections; come back in a second")

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        self._door.waiting.pop(self, None)
        self._door.ahead.pop(self, None)
        super().connection_lost(exc)

    def leave(self) -> None:
        """Make room for another; answers that nobody may be reading are not waited for."""
        if self.pipeline:
            self.transport.abort()
        else:
            self.transport.end()

    def data_received(self, data: bytes) -> None:
        most = self._limits.header_bytes
        for first in range(0, len(data), most):
            if self._away is not None:
                self._away += len(data) - first
                if self._away > _DROPPED:
                    self.transport.end()
            if self._away is not None or self.transport.is_closing():
                return
            part = data[first : first + most]
            self._aside += len(part)
            super().data_received(part)
            if self._aside > most:
                self._refuse(431, f"more than {most} bytes of headers")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._heading, self._chunks, self._unwanted = True, 0, 0
        if self in self._door.waiting:  # no earlier request is being answered
            del self._door.waiting[self]
            self._door.waiting[self] = None  # the last to be asked to leave
            self._until = self.loop.time() + self._limits.header_seconds

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        if len(self.headers) > self._limits.headers:
            self._fail(431, f"more than {self._limits.headers} headers")

    def on_headers_complete(self) -> None:
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > self._limits.header_bytes:
            self._fail(431, f"more than {self._limits.header_bytes} bytes of headers")
        if len(self.pipeline) >= _AHEAD:
            self._fail(429, f"more than {_AHEAD} requests that wait for an earlier one's answer")
        super().on_headers_complete()
        if self.pipeline:
            self._door.ahead.setdefault(self)
        self._heading, self._until = False, math.inf
        if self._door.silence is not None:
            self.cycle.keep_alive = False  # answered, and told that it is the last

    def on_body(self, body: bytes) -> None:
        self._aside = 0
        self._chunks += len(body) < _SMALL
        if self._chunks > _CHUNKS:
            self._fail(400, f"more than {_CHUNKS} chunks of less than {_SMALL} bytes")
        super().on_body(body)
        if self.cycle.response_complete:
            self._unwanted += len(body)
            if self._unwanted > self._limits.body_bytes:
                self.transport.end()

    def on_message_complete(self) -> None:
        self._aside = 0
        super().on_message_complete()
        if not self.cycle.response_complete:
            self._door.waiting.pop(self, None)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.pipeline:
            self._door.ahead.pop(self, None)
        if self.cycle.response_complete:
            self._wait()

    def shutdown(self) -> None:
        """The server leaves: whoever is being answered is told so, whoever is silent may ask once more for a while."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.keep_alive = False
        elif self._door.silence is None:
            self.transport.end()
        else:
            self._until = min(self._until, self.loop.time() + self._door.silence)
            self._timer.cancel()
            self._timer = self.loop.call_later(min(self._pace, self._door.silence), self._look)

    def send_400_response(self, msg: str) -> None:
        self._refuse(*(self._fault or (400, "bytes that are no HTTP request")))

    def _wait(self) -> None:
        """From now on the client has to send something."""
        self._until = self.loop.time() + self._limits.idle_seconds
        self._door.waiting[self] = None

    def _look(self) -> None:
        """Give up on a client who sends or takes nothing; one look now and then is cheaper than a timer a request."""
        now = self.loop.time()
        self._timer.cancel()
        self._timer = self.loop.call_later(self._pace, self._look)
        if self._door.silence is not None and self._until < math.inf:
            self._until = min(self._until, now + self._door.silence)
        unsent = self.transport.get_write_buffer_size()
        taken = self.transport.written - unsent
        if not unsent or taken >= self._taken + _MOST:
            self._taken, self._taken_by = taken, now + self._limits.seconds
        elif now >= self._taken_by:
            self.transport.abort()
        if now >= self._until and not self.transport.is_closing():
            if self._heading and self._away is None:
                self._refuse(408, f"headers that do not end within {self._limits.header_seconds:g} s")
            self.transport.end()

    def _fail(self, status: int, reason: str) -> None:
        """Out of a callback of the parser, which then asks for a 400."""
        self._fault = (status, reason)
        raise ValueError(reason)

    def _refuse(self, status: int, reason: str) -> None:
        if self.transport.is_closing() or self._away is not None:
            return
        self._door.sent_away(status, self.client, reason)
        body = json.dumps({"detail": reason}).encode()
        lines = [f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase}", "content-type: application/json"]
        lines += [f"content-length: {len(body)}", "connection: close", *["retry-after: 1"] * (status == 503)]
        if self.cycle is None or not self.cycle.response_started or self.cycle.response_complete:
            self.transport.write("\r\n".join([*lines, "", ""]).encode() + body)
        self._linger()

    def _unfinished(self) -> bool:
        """Whether an answer leaves before its request has come; then its client is waited for."""
        sending = self.cycle is not None and self.cycle.more_body and not self.cycle.disconnected
        if sending:
            self._linger()
        return sending

    def _linger(self) -> None:
        """Closed while a client still sends, a connection is reset, and the answer lost on the way: wait a little."""
        self._away, self._until = 0, self.loop.time() + _LINGER
        self._door.waiting.setdefault(self)
        if self.cycle is not None and not self.cycle.response_complete:  # whoever answers need not go on
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.write_eof()
        self._timer.cancel()
        self._timer = self.loop.call_later(_LINGER, self._look)
