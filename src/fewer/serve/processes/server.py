"""uvicorn in one process, which leaves gently: whoever is answered is told that the connection ends, nobody is cut off.

A client that keeps its connection open and asks again and again would otherwise be closed between two requests, and
could have sent the next one by then. So a connection without a request stays for a while, a request that comes after
all is answered with `connection: close`, and then it ends.
"""

from __future__ import annotations

import asyncio
import functools
import math
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import uvicorn

from fewer.serve.app import Application
from fewer.serve.connection import Connection
from fewer.serve.processes.door import deafen
from fewer.serve.processes.slot import Alive

__all__ = ["Server", "server_of"]

_SILENCE = 0.5  # seconds that connections without a request stay when the whole service ends
_GRACE = 30  # seconds that accepted requests may take when the server is told to stop


class Server(uvicorn.Server):
    """One process's; told to stop it leaves soon, told to retire when its clients have been silent long enough."""

    def __init__(
        self, config: uvicorn.Config, application: Application, drain_seconds: float, last: Callable[[], bool]
    ) -> None:
        super().__init__(config)
        self._application, self._drain, self._last = application, drain_seconds, last
        self._leave_at = math.inf

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Stop: not ready from now on; after a while, in which others come to know that, nobody is let in any more."""
        if self.should_exit or self._leave_at < math.inf:
            self.force_exit = self.force_exit or sig == signal.SIGINT
            self._leave_at = -math.inf
        self._leave(_SILENCE, self._drain)

    def retire(self, *_: Any) -> None:
        """Others have taken over: let nobody in, and stay until the last client has gone by itself."""
        limits = self._application.limits
        self.config.timeout_graceful_shutdown = math.ceil(limits.idle_seconds + limits.seconds) + _GRACE
        self._leave(limits.idle_seconds, 0.0)

    def _leave(self, silence: float, after: float) -> None:
        self._application.ready = False
        self._application.door.silence = silence
        self._leave_at = min(self._leave_at, time.monotonic() + after)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let in whoever has connected already: when the last process closes its door, the system resets them."""
        if self._last():
            for listening in sockets or []:
                deafen(listening)
        await self._let_in(sockets or [])
        await super().shutdown(sockets)

    async def _let_in(self, doors: list[socket.socket]) -> None:
        loop = asyncio.get_running_loop()
        made: Any = self.config.http_protocol_class
        kind = functools.partial(made, self.config, self.server_state, self.lifespan.state)
        for door in doors:
            door.setblocking(False)
            with suppress(OSError):  # nobody is left, or another process took them
                while True:
                    client, _ = door.accept()
                    client.setblocking(False)
                    await loop.connect_accepted_socket(kind, client)

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second."""
        if time.monotonic() >= self._leave_at:
            self.should_exit = True
        return await super().on_tick(counter)


def server_of(
    application: Application,
    alive: Alive | None = None,
    *,
    drain_seconds: float = 0.0,
    last: Callable[[], bool] = lambda: True,
) -> Server:
    """uvicorn around the application, with its limits on connections.

    `last` is asked when it leaves: whether nobody will listen at its socket after it.
    """
    config = uvicorn.Config(
        application,
        http=functools.partial(Connection, door=application.door),  # type: ignore[arg-type]
        ws="none",
        log_level="error",  # whom it warns of is counted and told by the door
        access_log=False,
        lifespan="on",
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=math.ceil(application.limits.idle_seconds),
        timeout_graceful_shutdown=_GRACE,
        callback_notify=alive,
        timeout_notify=1,
    )
    return Server(config, application, drain_seconds, last)
