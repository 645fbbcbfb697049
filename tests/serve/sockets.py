"""A real server in a thread, and clients that send bytes as they are."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from fewer.serve.app import Application
from fewer.serve.start import bind, server_of
from tests.waiting import GIVE_UP_SECONDS as GIVE_UP

# a busy machine is no slow client, and its requests no slow requests
PATIENT = tuple(f"--{name}-seconds={GIVE_UP}" for name in ("header", "idle")) + (f"--seconds={GIVE_UP}",)


@contextmanager
def listening(application: Application) -> Iterator[int]:
    """The port of a server that ends with the block."""
    door = bind("127.0.0.1", 0)
    port: int = door.getsockname()[1]
    server = server_of(application)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [door]})
    thread.start()
    try:
        yield port
    finally:
        server.should_exit = True
        thread.join(GIVE_UP)


def connected(port: int) -> socket.socket:
    """A client that gives up on a hang."""
    return socket.create_connection(("127.0.0.1", port), timeout=GIVE_UP)


def heard(client: socket.socket) -> bytes:
    """All that the server says until it closes; a reset is its end too."""
    parts = []
    with suppress(ConnectionError):
        while part := client.recv(1 << 16):
            parts.append(part)
    return b"".join(parts)


def said(port: int, message: bytes) -> bytes:
    """What a connection that sends these bytes hears until it is closed."""
    with connected(port) as client:
        with suppress(ConnectionError):  # closed on the way
            client.sendall(message)
        return heard(client)


def request(
    path: str = "/healthz", *headers: str, method: str = "GET", body: bytes = b"", host: str = "localhost"
) -> bytes:
    """A whole request after which the server closes."""
    lines = [f"{method} {path} HTTP/1.1", f"host: {host}", "connection: close", *headers]
    if body:
        lines.append(f"content-length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body
