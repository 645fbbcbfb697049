"""What a body claims takes no room; what has arrived of it does."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest

from fewer.serve.app import Application
from fewer.serve.limits import Arrivals, Limits, Receive, Refusal
from fewer.serve.models import open_models
from tests.serve.sockets import connected, listening, request, said

PHONE = b'{"master": 21, "rsrp_db": [-113.8, -131.9, -124.9]}'
ASK = request("/v1/cellfree/predict", "content-type: application/json", method="POST", body=PHONE)


def test_sockets_that_claim_much_and_send_two_bytes_take_nothing_from_others() -> None:
    claim = b"POST /v1/cellfree/predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    claim += b"content-length: %d\r\n\r\n{}" % (8 << 20)
    with listening(Application(open_models(["cellfree-80"]), limits=Limits(seconds=600))) as port:
        liars = [connected(port) for _ in range(8)]
        for liar in liars:
            liar.sendall(claim)
        assert said(port, request()).startswith(b"HTTP/1.1 200")  # by now all claims have been read
        for _ in range(3):
            assert said(port, ASK).startswith(b"HTTP/1.1 200")
        for liar in liars:
            liar.close()


def test_bodies_that_arrive_are_bounded_together_but_small_ones_pass() -> None:
    limits = Limits(seconds=600, pending_bytes=1 << 20)
    large = request("/v1/cellfree/predict", "content-type: application/json", method="POST", body=bytes(4 << 20))
    with listening(Application(open_models(["cellfree-80"]), limits=limits)) as port:
        assert said(port, large[: -(1 << 20)])[:12] in (b"", b"HTTP/1.1 503")  # and not waited for to its end
        assert said(port, ASK).startswith(b"HTTP/1.1 200")


def of(*sizes: int) -> Receive:
    waiting = list(sizes)

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": bytes(waiting.pop(0)), "more_body": bool(waiting)}

    return receive


def test_what_has_arrived_is_let_go_of_at_the_end() -> None:
    arrivals, large = Arrivals(1 << 20), 1 << 19

    async def scenario() -> None:
        with arrivals.counted(of(large)) as first, arrivals.counted(of(large, 1)) as second:
            await first()
            await second()
            with pytest.raises(Refusal, match="too many large requests"):
                await second()
            with arrivals.counted(of(1000)) as small:
                await small()
        with arrivals.counted(of(large, large)) as third:
            await third()
            await third()

    asyncio.run(scenario())
