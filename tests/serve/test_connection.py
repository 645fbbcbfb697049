"""An answer leaves in one piece, in order, and nothing is held back for long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from fewer.bench.load import serving
from fewer.serve.connection import Together
from tests.waiting import GIVE_UP_SECONDS


class Wire:
    """Stands in for a transport: remembers what was written, and when it was closed."""

    def __init__(self) -> None:
        self.said: list[bytes | str] = []

    def write(self, data: bytes) -> None:
        self.said.append(data)

    def close(self) -> None:
        self.said.append("closed")

    def is_closing(self) -> bool:
        return "closed" in self.said


def on_a_wire(scenario: Callable[[Together, Wire], Coroutine[Any, Any, None]]) -> Wire:
    wire = Wire()

    async def run() -> None:
        await scenario(Together(wire, asyncio.get_running_loop()), wire)

    asyncio.run(run())
    return wire


def test_what_is_written_in_one_round_leaves_together_and_rounds_stay_apart() -> None:
    async def scenario(held: Together, wire: Wire) -> None:
        held.write(b"head")
        held.write(b"body")
        assert wire.said == []
        await asyncio.sleep(0)
        held.write(b"next")
        await asyncio.sleep(0)

    assert on_a_wire(scenario).said == [b"headbody", b"next"]


def test_a_large_body_leaves_at_once() -> None:
    async def scenario(held: Together, wire: Wire) -> None:
        held.write(b"head")
        held.write(b"x" * 70_000)
        assert [len(data) for data in wire.said] == [70_004]
        await asyncio.sleep(0)

    assert len(on_a_wire(scenario).said) == 1


def test_what_is_held_leaves_before_the_end_and_nothing_after_it() -> None:
    async def scenario(held: Together, wire: Wire) -> None:
        held.write(b"goodbye")
        held.close()
        held.write(b"too late")
        await asyncio.sleep(0)

    assert on_a_wire(scenario).said == [b"goodbye", "closed"]


def test_a_server_answers_with_head_and_body_in_one_packet(server: serving) -> None:
    body = b'{"master": 21, "rsrp_db": [-113.8, -131.9, -124.9]}'
    head = b"POST /v1/cellfree/predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"

    class Reader(asyncio.Protocol):
        pieces: list[bytes] = []

        def data_received(self, data: bytes) -> None:
            self.pieces.append(data)

    async def ask() -> None:
        transport, _ = await asyncio.get_running_loop().create_connection(Reader, "127.0.0.1", server.port)
        for count in range(5):
            transport.write(head + b"content-length: %d\r\n\r\n" % len(body) + body)
            while len(Reader.pieces) <= count:
                await asyncio.sleep(0.01)
        transport.close()

    asyncio.run(asyncio.wait_for(ask(), GIVE_UP_SECONDS))
    assert all(piece.startswith(b"HTTP/1.1 200") and piece.endswith(b"}") for piece in Reader.pieces)
