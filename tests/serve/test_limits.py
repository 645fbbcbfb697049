"""A client has bounds in bytes, in seconds and in number, and meets them before anything of it is kept."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from fewer.serve import connection
from fewer.serve.app import Application
from fewer.serve.limits import Limits
from fewer.serve.models import open_models
from fewer.serve.predict import Receive, Scope, Send
from tests.serve.sockets import connected, heard, listening, request, said
from tests.waiting import GIVE_UP_SECONDS, until

KB = 1 << 10
TOO_LONG = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/json\r\ncontent-length: 45\r\n"
    b'connection: close\r\n\r\n{"detail": "more than 4096 bytes of headers"}'
)
OK = b"HTTP/1.1 200"
POST = ("content-type: application/json",)


@pytest.fixture(scope="module")
def patient() -> Iterator[int]:
    """A server whose limits of time do not end a test."""
    limits = Limits(header_bytes=4 * KB, headers=20, body_bytes=64 * KB, header_seconds=600, idle_seconds=600)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "_LINGER", GIVE_UP_SECONDS)  # as long as a client takes to send all that it has
        with listening(Application(open_models(["digits-3197"]), limits=limits)) as port:
            yield port


@contextmanager
def hasty(**seconds: float) -> Iterator[int]:
    """One that gives up soon on one thing, and on nothing else: a busy machine must not be taken for a slow client."""
    limits = Limits(**{"header_seconds": 600, "idle_seconds": 600, "seconds": 600, **seconds})  # type: ignore[arg-type]
    with listening(Large(open_models(["digits-3197"]), limits=limits)) as port:
        yield port


class Large(Application):
    """With an answer that fits into no buffer."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != "/large":
            return await super().__call__(scope, receive, send)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % (64 << 20))]})
        return await send({"type": "http.response.body", "body": bytes(64 << 20)})


class Held(Application):
    """With an answer that is held back."""

    asked = 0
    over = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != "/held":
            return await super().__call__(scope, receive, send)
        self.asked += 1
        while not self.over:
            await asyncio.sleep(0.01)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        return await send({"type": "http.response.body", "body": b""})


HEADERS = {
    "one long header": b"GET /healthz HTTP/1.1\r\nx: " + b"a" * (1 << 20),
    "many short headers": b"GET /healthz HTTP/1.1\r\n" + b"x: y\r\n" * 100_000,
    "a name without an end": b"GET /healthz HTTP/1.1\r\n" + b"x" * (1 << 20),
    "a path without an end": b"GET /" + b"x" * (1 << 20),
    "empty lines without a request": b"\r\n" * (1 << 19),
    "whole headers that are too long": b"GET /healthz HTTP/1.1\r\nx: " + b"a" * 4 * KB + b"\r\n\r\n",
    "headers after a body in chunks": b"POST /v1/vision/predict HTTP/1.1\r\ncontent-type: application/json\r\n"
    b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nx: " + b"a" * (1 << 20),
    "words beside a chunk": b"POST /v1/vision/predict HTTP/1.1\r\ncontent-type: application/json\r\n"
    b"transfer-encoding: chunked\r\n\r\n2;" + b"a" * (1 << 20),
}


@pytest.mark.parametrize("name", HEADERS)
def test_headers_beyond_the_limit_end_the_connection(patient: int, name: str) -> None:
    answer = said(patient, HEADERS[name])  # returns once the server has closed
    assert answer.startswith(TOO_LONG[:12]) and answer.count(b"HTTP/1.1") == 1  # although it was still sending
    assert said(patient, request()).startswith(OK)


def test_the_refusal_of_headers_is_one_line_with_the_limit(patient: int) -> None:
    assert said(patient, request("/healthz", "x: " + "a" * 4 * KB)) == TOO_LONG
    assert said(patient, request("/healthz", *["x: y"] * 20)).endswith(b'{"detail": "more than 20 headers"}')


def test_headers_within_the_limit_and_many_requests_of_one_connection_are_answered(patient: int) -> None:
    with connected(patient) as client:
        for _ in range(10):
            client.sendall(b"GET /healthz HTTP/1.1\r\nhost: here\r\nx: " + b"a" * 3 * KB + b"\r\n\r\n")
            assert client.recv(1 << 16).startswith(OK)
        client.sendall(request())
        assert heard(client).startswith(OK)


def test_a_body_of_many_chunks_is_no_header(patient: int) -> None:
    body = b"4\r\n    \r\n" * (3 * KB) + b"0\r\n\r\n"  # 27 kB around 12
    answer = said(patient, request("/v1/vision/predict", *POST, "transfer-encoding: chunked", method="POST") + body)
    assert answer.startswith(b"HTTP/1.1 400") and b"no JSON" in answer


def test_a_body_a_byte_at_a_time_is_refused(patient: int) -> None:
    body = b"1\r\n \r\n" * (8 * KB)
    answer = said(patient, request("/v1/vision/predict", *POST, "transfer-encoding: chunked", method="POST") + body)
    assert answer.startswith(b"HTTP/1.1 400") and answer.endswith(b'"more than 4096 chunks of less than 64 bytes"}')


def test_a_request_that_is_answered_early_may_finish_and_be_followed_by_another(patient: int) -> None:
    with connected(patient) as client:
        client.sendall(b"POST /v1/vision/predict HTTP/1.1\r\nhost: here\r\ncontent-length: 9\r\n\r\n1234")
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 415")
        client.sendall(b"56789" + request())
        assert heard(client).startswith(OK)


@pytest.mark.parametrize("claimed", [b"content-length: 2097152", b"transfer-encoding: chunked"])
def test_whoever_sends_too_much_is_told_so_although_it_is_still_sending(patient: int, claimed: bytes) -> None:
    head = b"POST /v1/vision/predict HTTP/1.1\r\nhost: here\r\ncontent-type: application/json\r\n%b\r\n\r\n" % claimed
    body = bytes(2 << 20) if b"length" in claimed else (b"10000\r\n" + bytes(1 << 16) + b"\r\n") * 32
    answer = said(patient, head + body)
    assert answer.startswith(b"HTTP/1.1 413") and answer.count(b"HTTP/1.1") == 1


def test_a_request_that_is_answered_early_cannot_go_on_for_ever(patient: int) -> None:
    with connected(patient) as client:
        client.sendall(b"POST /v1/vision/predict HTTP/1.1\r\nhost: here\r\ncontent-length: 999999999\r\n\r\n1234")
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 415")
        with pytest.raises(ConnectionError):
            for _ in range(10_000):
                client.sendall(bytes(64 * KB))


def test_requests_without_waiting_for_answers_are_answered_in_order_up_to_a_number(patient: int) -> None:
    ten = b"GET /healthz HTTP/1.1\r\nhost: here\r\n\r\n" * 9 + request()
    assert said(patient, ten).count(OK) == 10
    assert said(patient, b"GET /healthz HTTP/1.1\r\nhost: here\r\n\r\n" * 90).count(OK) < 20


@pytest.mark.parametrize("half", [b"GET /healthz HTTP/1.1\r\nhost: here\r\nx: y", b"G"])
def test_headers_that_do_not_end_are_given_up_on(half: bytes) -> None:
    with hasty(header_seconds=0.1) as port:
        assert said(port, half).startswith(b"HTTP/1.1 408")


def test_a_trickle_of_headers_is_given_up_on_too() -> None:
    with hasty(header_seconds=0.1) as port, connected(port) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\n")
        assert ended(client, b"x: y\r\n")


@pytest.mark.parametrize("first", [b"", b"\r\n", request().replace(b"connection: close\r\n", b"")])
def test_a_connection_on_which_nothing_happens_is_closed(first: bytes) -> None:
    with hasty(idle_seconds=0.1) as port:
        assert said(port, first).count(b"HTTP/1.1") <= (first[:1] == b"G")


def test_the_rest_of_a_body_that_was_answered_is_not_waited_for_long() -> None:
    head = b"POST /v1/vision/predict HTTP/1.1\r\nhost: here\r\ncontent-length: 100\r\n\r\n{"
    with hasty(idle_seconds=0.1) as port:
        assert said(port, head).count(b"HTTP/1.1 415") <= 1


@pytest.mark.parametrize("path", ["/v1/vision/predict", "/v1/vision/attack"])
def test_a_body_that_does_not_end_is_given_up_on(path: str) -> None:
    with hasty(seconds=0.1) as port:
        assert said(port, request(path, *POST, "content-length: 100", method="POST")).startswith(b"HTTP/1.1 408")


def test_a_client_who_does_not_read_is_given_up_on() -> None:
    with hasty(seconds=0.1) as port, connected(port) as client:
        client.sendall(b"GET /large HTTP/1.1\r\n\r\n")
        assert ended(client, b"\n")


def ended(client: socket.socket, word: bytes) -> bool:
    """Whether the connection ends while the client goes on sending such words without reading."""

    def broken() -> bool:
        try:
            client.sendall(word)
        except ConnectionError:
            return True
        return False

    return until(broken)


def test_the_longest_silent_connection_makes_room_for_a_new_one() -> None:
    limits = Limits(connections=3, header_seconds=600, idle_seconds=600)
    with listening(Application(open_models(["digits-3197"]), limits=limits)) as port:
        silent = []
        for _ in range(3):
            silent.append(connected(port))
            silent[-1].sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
            assert silent[-1].recv(1 << 16).startswith(OK)
        assert said(port, request()).startswith(OK)
        assert heard(silent[0]) == b""
        silent[2].sendall(request())
        assert heard(silent[2]).startswith(OK)
        for client in silent:
            client.close()


def test_half_bodies_on_every_connection_keep_nobody_out() -> None:
    limits = Limits(connections=4, header_seconds=600, idle_seconds=600, seconds=600)
    half = request("/v1/vision/predict", *POST, "content-length: 1000", method="POST") + b"{"
    with listening(Application(open_models(["digits-3197"]), limits=limits)) as port:
        silent = [connected(port) for _ in range(4)]
        for client in silent:
            client.sendall(half)
        for _ in range(8):
            assert said(port, request()).startswith(OK)
        for client in silent:
            client.close()


def test_of_those_being_answered_whoever_asks_ahead_makes_room_and_nobody_else_does() -> None:
    limits = Limits(connections=3, header_seconds=600, idle_seconds=600, seconds=600)
    once, often = b"GET /held HTTP/1.1\r\nhost: localhost\r\n\r\n", 3
    held = Held(open_models(["digits-3197"]), limits=limits)
    with listening(held) as port:
        clients = [connected(port) for _ in range(3)]
        for count, client in enumerate(clients, 1):
            client.sendall(once * (often if count == 2 else 1))
            until(lambda count=count: held.asked == count)  # type: ignore[misc]
        until(lambda: len(held.door.ahead) == 1)
        assert said(port, request()).startswith(OK)
        assert heard(clients[1]) == b""
        clients[1].close()
        clients[1] = connected(port)
        clients[1].sendall(once)
        until(lambda: held.asked == 4)
        assert said(port, request()).startswith(b"HTTP/1.1 503")  # there is nobody left who could go
        held.over = True
        for client in clients:
            assert client.recv(1 << 16).startswith(OK)
            client.close()
        assert until(lambda: said(port, request()).startswith(OK)) and not held.door.ahead


def test_those_sent_away_are_counted() -> None:
    limits = Limits(headers=10)
    with listening(Application(open_models(["digits-3197"]), limits=limits)) as port:
        said(port, request("/healthz", *["x: y"] * 20))
        said(port, b"nonsense\r\n\r\n")
        told = said(port, request("/metrics"))
    assert b'fewer_sent_away_total{status="431"} 1' in told and b'fewer_sent_away_total{status="400"} 1' in told
