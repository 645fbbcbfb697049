"""From models to a listening server: one process or several that share a socket, and an orderly end."""

from __future__ import annotations

import gc
import ipaddress
import mmap
import os
import signal
import socket
from collections.abc import Callable, Sequence

from fewer.core.errors import UserError
from fewer.core.machine.memory import let_go
from fewer.serve.app import Application
from fewer.serve.door import LOCAL, NAME
from fewer.serve.observe.history import History
from fewer.serve.processes.server import server_of
from fewer.serve.processes.slot import Alive, Work
from fewer.serve.processes.workers import RENEW, Workers, obey

__all__ = ["address", "bind", "checked_host", "names_of", "serve"]

_BACKLOG = 1024  # connections the kernel holds before they are accepted


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


def serve(
    application: Application,
    listening: socket.socket,
    workers: int = 1,
    *,
    opened: Callable[[], Application] | None = None,
    drain_seconds: float = 0.0,
) -> None:
    """Answer until told to stop (SIGINT or SIGTERM); what was accepted is answered first.

    Told to (SIGHUP), `opened` makes another application, whose processes take over while the old ones finish.
    """

    def working(chosen: Application) -> Work:
        def work(worker: int, alive: Alive) -> None:
            chosen.metrics.be(worker)
            let_go()
            gc.freeze()  # modules and models stay for good: looking through them again would stall requests

            async def looking() -> None:
                chosen.metrics.look()
                await alive()

            server = server_of(chosen, looking, drain_seconds=drain_seconds, last=lambda: bool(ending[0]))
            signal.signal(RENEW, server.retire)
            # told before uvicorn listens to signals, or once more after it has stopped
            obey(server.handle_exit)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, (RENEW,))
            server.run(sockets=[listening])

        return work

    if not hasattr(os, "fork"):  # one process, which nothing can replace
        server = server_of(application, drain_seconds=drain_seconds)
        obey(server.handle_exit)
        server.run(sockets=[listening])
        return
    history = History(application.metrics)
    ending = mmap.mmap(-1, 1)  # a byte which all processes share: whether all are told to stop

    def leave() -> None:
        ending[0] = 1
        listening.close()  # whoever connects after the last worker has closed its door is to be refused

    def renewed() -> Work:
        assert opened is not None
        found = opened()
        history.follow(found.metrics)
        return working(found)

    again = renewed if opened else None
    group = Workers(workers, working(application), renewed=again, events=history, leave=leave)
    del application  # the workers' own: it goes when others take over
    group.run()
