"""What a server takes before it says no, and how it says no."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, MutableMapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, fields
from typing import Any

from fewer.core.errors import UserError
from fewer.core.settings import setting

__all__ = ["Arrivals", "Gate", "Limits", "Receive", "Refusal"]

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
_SMALL = 1 << 16  # bytes of a body that always have room: the number of connections bounds them


@dataclass(frozen=True)
class Limits:
    """Every bound of a server; all of them keep memory and waiting bounded whatever arrives."""

    body_bytes: int = setting(8 << 20, "largest request", "bytes")
    seconds: float = setting(10.0, "longest wait for a request or its answer", "s")
    request_samples: int = setting(8192, "samples in one request", "samples")
    queue_samples: int = setting(4096, "samples that may wait for a model", "samples")
    batch_samples: int = setting(256, "samples predicted at once", "samples")
    queue_bytes: int = setting(256 << 20, "inputs that may wait for a model", "bytes")
    batch_bytes: int = setting(16 << 20, "inputs predicted at once", "bytes")
    sequence_bytes: int = setting(128 << 20, "what sequences of a free length may take, predicted at once", "bytes")
    pending_bytes: int = setting(32 << 20, "requests being read, in all", "bytes")
    header_bytes: int = setting(16 << 10, "headers of a request", "bytes")
    headers: int = setting(100, "headers of a request", "headers")
    header_seconds: float = setting(5.0, "longest wait for a request's headers", "s")
    idle_seconds: float = setting(15.0, "longest wait for a next request", "s")
    connections: int = setting(512, "open connections of a worker", "connections")

    def __post_init__(self) -> None:
        for each in fields(self):
            if not getattr(self, each.name) > 0:
                raise UserError(f"{each.name} {getattr(self, each.name)}", "more than 0")


class Refusal(Exception):
    """A request that gets no answer but a status and a reason."""

    def __init__(self, status: int, reason: str, headers: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason
        # whoever is told to come later is told when
        self.headers = (*headers, ("retry-after", "1")) if status == 503 else headers


class Arrivals:
    """Bytes of all bodies being read. They count as they arrive: a length that is only claimed takes no memory."""

    def __init__(self, most: int) -> None:
        self._most, self._held = most, 0

    @contextmanager
    def counted(self, receive: Receive) -> Iterator[Receive]:
        """What receives one body; it is let go of at the end."""
        own = 0

        async def arriving() -> MutableMapping[str, Any]:
            nonlocal own
            message = await receive()
            size = len(message.get("body", b""))
            if own + size > _SMALL and self._held + size > self._most:
                raise Refusal(503, "too many large requests are being read; come back in a second")
            own, self._held = own + size, self._held + size
            return message

        try:
            yield arriving
        finally:
            self._held -= own


class Gate:
    """So many at once, so many waiting, and 503 for the rest: for work that runs in threads."""

    def __init__(self, at_once: int = 2, waiting: int = 32) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._room = at_once + waiting

    @asynccontextmanager
    async def entered(self) -> AsyncIterator[None]:
        """Hold a place while the work is done."""
        if self._room == 0:
            raise Refusal(503, "too many requests wait; come back in a second")
        self._room -= 1
        try:
            async with self._free:
                yield
        finally:
            self._room += 1
