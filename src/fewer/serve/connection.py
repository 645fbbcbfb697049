"""One packet an answer: uvicorn writes head and body apart, and each write wakes the client and costs a system call."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

__all__ = ["Connection", "Together"]

_MOST = 1 << 16  # bytes that are held back; more goes out at once, so that the transport can say when it is full


class Together:
    """A transport that sends what is written in one round of the event loop at the round's end, in one piece."""

    def __init__(self, transport: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._held: list[bytes] = []
        self._bytes = 0

    def write(self, data: bytes) -> None:
        """Hold it, or with what is held already send it."""
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

    def close(self) -> None:
        """After what is held; the transport itself sends what it has before it ends."""
        self._flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Connection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """uvicorn's own, on such a transport."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(Together(transport, self.loop))
