"""Hostile connections: what is sent before, after and instead of an honest request."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from fewer.bench.load import serving
from hurting.measure import PHONE, SECONDS

__all__ = ["ATTACKS", "MODELS", "OPTIONS", "WARM", "predicted"]

MODELS = ["cellfree-80", "digits-3197"]
OPTIONS = ["--workers", "2"]
CROWD = 600  # connections, more than a worker keeps open
ASK = b"POST /v1/cellfree/predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"


def sent(server: serving, first: bytes, again: bytes = b"", times: int = 0) -> str:
    """What a connection hears that sends these bytes, until the server has enough of it."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS) as client:
        try:
            client.sendall(first)
            for _ in range(times):
                if select.select([client], [], [], 0)[0]:
                    break  # has an answer already, which who sends listens for
                client.sendall(again)
            return client.recv(1 << 16)[9:12].decode() or "closed"
        except ConnectionError:
            return "closed"


def a_long_header(server: serving) -> str:
    """100 MB in one header."""
    return sent(server, b"GET / HTTP/1.1\r\nx: ", bytes([97]) * (1 << 20), 100)


def many_headers(server: serving) -> str:
    """100 MB in headers of six bytes."""
    return sent(server, b"GET / HTTP/1.1\r\n", b"x: y\r\n" * (1 << 17), 133)


def headers_after_a_body(server: serving) -> str:
    """100 MB in a trailer of a body in chunks."""
    start = ASK + b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nx: "
    return sent(server, start, bytes([97]) * (1 << 20), 100)


def a_path_without_end(server: serving) -> str:
    """100 MB of path."""
    return sent(server, b"GET /", bytes([97]) * (1 << 20), 100)


def requests_without_waiting(server: serving) -> str:
    """100,000 requests at once."""
    return sent(server, b"", b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n" * 1000, 100)


def a_body_nobody_wants(server: serving) -> str:
    """100 MB after the answer to a request."""
    return sent(server, b"PUT /v1/cellfree/predict HTTP/1.1\r\ncontent-length: 104857600\r\n\r\n", bytes(1 << 20), 100)


def chunks_of_one_byte(server: serving) -> str:
    """As large a body as is taken, a byte at a time."""
    return sent(server, ASK + b"transfer-encoding: chunked\r\n\r\n", b"1\r\n \r\n" * (1 << 17), 64)


def other_names(server: serving) -> str:
    """A page from elsewhere whose name was made to lead here."""
    return sent(server, b"GET /v1/models HTTP/1.1\r\nhost: example.org\r\nconnection: close\r\n\r\n")


@contextmanager
def crowd(server: serving, count: int, message: bytes) -> Iterator[None]:
    """So many connections that send this and stay."""
    with ExitStack() as stack:
        for _ in range(count):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS))
            try:
                client.sendall(message)
            except ConnectionError:
                continue  # had to make room
        yield


def predicted(server: serving) -> str:
    """The status of an honest request."""
    return sent(server, ASK + b"connection: close\r\ncontent-length: %d\r\n\r\n" % len(PHONE) + PHONE)


def silent_connections(server: serving) -> str:
    """A crowd that says nothing."""
    with crowd(server, CROWD, b""):
        return predicted(server)


def half_headers(server: serving) -> str:
    """A crowd that does not finish its headers."""
    with crowd(server, CROWD, b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: y"):
        return predicted(server)


def half_bodies(server: serving) -> str:
    """A crowd that claims eight megabytes each and sends two bytes."""
    with crowd(server, CROWD, ASK + b"content-length: 8388608\r\n\r\n{}"):
        return predicted(server)


def claims(server: serving) -> str:
    """Eight such."""
    with crowd(server, 8, ASK + b"content-length: 8388608\r\n\r\n{}"):
        return predicted(server)


def answers_nobody_reads(server: serving) -> str:
    """32 that ask sixteen times for the longest page, and do not read it."""
    with crowd(server, 32, b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n" * 16):
        return predicted(server)


ATTACKS = [
    a_long_header,
    many_headers,
    headers_after_a_body,
    a_path_without_end,
    requests_without_waiting,
    a_body_nobody_wants,
    chunks_of_one_byte,
    other_names,
    silent_connections,
    half_headers,
    half_bodies,
    claims,
    answers_nobody_reads,
]
WARM = [predicted] * 100  # until both workers have settled
