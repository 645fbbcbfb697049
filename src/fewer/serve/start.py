"""From models to a listening server: one process or several that share a socket, and an orderly end."""

from __future__ import annotations

import gc
import ipaddress
import math
import socket
from collections.abc import Sequence
from functools import partial
from typing import Any

import uvicorn

from fewer.core.errors import UserError
from fewer.serve.app import Application
from fewer.serve.connection import Connection
from fewer.serve.door import LOCAL, NAME
from fewer.serve.workers import Alive, Workers, obey

__all__ = ["address", "bind", "checked_host", "names_of", "serve", "server_of"]

_BACKLOG = 1024  # connections the kernel holds before they are accepted
_GRACE = 30  # seconds that accepted requests may take when the server is told to stop


def checked_host(host: str, token: str | None) -> None:
    """Whoever listens beyond this machine needs a token."""
    try:
        local = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = False
    if not local and not token:
        cure = "set FEWER_TOKEN or --token"
        raise UserError(f"--host {host} without a token", "a token where others can connect", cure)


def names_of(host: str, token: str | None, further: Sequence[str]) -> frozenset[str] | None:
    """What a Host header may name; any, where a token guards: a page from elsewhere does not know it."""
    for name in further:
        if not NAME.fullmatch(name):
            cure = "leave out the scheme and the port"
            raise UserError(f"--host-name {name!r}", "a name such as models.example.org", cure)
    if token:
        return None
    return frozenset({*LOCAL, f"[{host}]" if ":" in host else host, *(name.lower() for name in further)})


def bind(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one."""
    if not 0 <= port <= 65535:
        raise UserError(f"--port {port}", "a port from 0 to 65535", "leave --port out for 8080")
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, kind, protocol)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(place)
        found.listen(_BACKLOG)
    except (OSError, OverflowError) as error:
        raise UserError(f"{host}:{port} ({error})", "a free address of this machine", "choose another --port") from None
    return found


def address(listening: socket.socket) -> str:
    """Where a browser finds it."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(application: Application, listening: socket.socket, workers: int = 1) -> None:
    """Answer until told to stop (SIGINT or SIGTERM); what was accepted is answered first."""

    def work(worker: int, alive: Alive | None = None) -> None:
        application.metrics.be(worker)
        gc.collect()
        gc.freeze()  # modules and models stay for good: looking through them again would stall requests
        server = server_of(application, alive)

        def stop(number: int, _: Any) -> None:
            server.should_exit = True  # told before uvicorn listens to signals, or once more after it has stopped

        obey(stop)
        server.run(sockets=[listening])

    if workers == 1:
        work(0)
    else:
        Workers(workers, work).run()


def server_of(application: Application, alive: Alive | None = None) -> uvicorn.Server:
    """uvicorn around the application, with its limits on connections."""
    config = uvicorn.Config(
        application,
        http=partial(Connection, door=application.door),  # type: ignore[arg-type]
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
    return uvicorn.Server(config)
