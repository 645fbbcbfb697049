"""On the way out: ids and traces, compression, a line of log for each request, and pages for people."""

from __future__ import annotations

import gzip
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient

from fewer.serve.app import Application
from fewer.serve.exchange import Exchange, Outgoing
from fewer.serve.models import open_models
from fewer.serve.observe.access_log import AccessLog
from tests.serve.sockets import listening, request, said
from tests.waiting import GIVE_UP_SECONDS

PHONE = {"master": 21, "rsrp_db": [-113.8, -131.9, -124.9]}
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
PAGE = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def test_an_id_is_given_back_or_drawn(client: TestClient) -> None:
    given = client.get("/healthz", headers={"x-request-id": "abc-7"})
    drawn = {client.get("/healthz", headers=h).headers["x-request-id"] for h in ({}, {"x-request-id": 'a"b'}, {})}
    assert given.headers["x-request-id"] == "abc-7"
    assert len(drawn) == 3 and all(re.fullmatch("[0-9a-f]{16}", each) for each in drawn)
    refused = client.post("/v1/cellfree/predict", json={}, headers={"x-request-id": "abc-8"})
    assert (refused.status_code, refused.headers["x-request-id"]) == (422, "abc-8")


def test_a_trace_goes_on_under_an_id_of_its_own(client: TestClient) -> None:
    first, second = (client.get("/healthz", headers={"traceparent": PARENT}).headers["traceparent"] for _ in range(2))
    assert re.fullmatch("00-0af7651916cd43dd8448eb211c80319c-[0-9a-f]{16}-01", first) and first != second
    for wrong in ("", "00-" + "0" * 32 + "-b7ad6b7169203331-01", "ff" + PARENT[2:], PARENT[:-1], PARENT.upper()):
        assert "traceparent" not in client.get("/healthz", headers={"traceparent": wrong}).headers


@pytest.fixture(scope="module")
def phones() -> Iterator[TestClient]:
    with TestClient(Application(open_models(["cellfree-80"]))) as found:
        yield found


@pytest.mark.parametrize("count", [20, 300], ids=["in the loop", "in a thread"])
def test_long_answers_are_compressed_for_those_who_take_it(phones: TestClient, count: int) -> None:
    many = {"master": [21] * count, "rsrp_db": [PHONE["rsrp_db"]] * count}
    path = "/v1/cellfree/predict"
    plain = phones.post(path, json=many, headers={"accept-encoding": "identity"})
    packed = phones.post(path, json=many, headers={"accept-encoding": "br, gzip;q=0.5"})
    assert "content-encoding" not in plain.headers and packed.headers["content-encoding"] == "gzip"
    assert plain.headers["vary"] == packed.headers["vary"] == "accept-encoding"
    assert int(packed.headers["content-length"]) < int(plain.headers["content-length"]) / 4
    assert packed.content == plain.content and len(packed.json()["phones"]) == count
    for refusing in ("gzip;q=0", "br", ""):
        assert "content-encoding" not in phones.post(path, json=many, headers={"accept-encoding": refusing}).headers
    short = phones.post(path, json=PHONE, headers={"accept-encoding": "gzip"})
    assert "content-encoding" not in short.headers and "vary" not in short.headers


def test_what_is_sent_is_gzip_to_the_last_byte() -> None:
    application = Application(open_models(["cellfree-80"]))
    with listening(application) as port:
        head, _, body = said(port, request("/v1/models", "accept-encoding: gzip")).partition(b"\r\n\r\n")
    assert b"content-encoding: gzip" in head
    assert json.loads(gzip.decompress(body))[0]["name"] == "cellfree-80"


def test_a_file_that_was_compressed_has_a_weak_tag_and_is_not_sent_twice(phones: TestClient) -> None:
    first = phones.get("/static/base.css")
    assert first.headers["content-encoding"] == "gzip" and first.headers["etag"].startswith('W/"')
    again = phones.get("/static/base.css", headers={"if-none-match": first.headers["etag"]})
    assert again.status_code == 304 and again.content == b""


def test_each_request_is_a_line_of_the_log(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    with TestClient(Application(open_models(["cellfree-80"]), token="secret", access_log=str(log))) as client:
        key = {"authorization": "Bearer secret"}
        client.post("/v1/cellfree/predict", json=PHONE, headers={**key, "traceparent": PARENT, "x-request-id": "one"})
        client.get("/v1/models?token=secret", headers={"x-request-id": "two"})
        client.get("/nowhere%22%0a" + "x" * 2000, headers={**key, "x-request-id": "three"})
    one, two, three = (json.loads(line) for line in log.read_text().splitlines())
    assert (one["request_id"], one["status"], one["model"], one["method"]) == ("one", 200, "cellfree-80", "POST")
    assert one["trace_id"] in PARENT and one["parent_id"] in PARENT and one["span_id"] not in PARENT
    assert 0 < one["seconds"] < 600 and one["bytes"] > 100 and one["path"] == "/v1/cellfree/predict"
    assert (two["status"], two["path"], three["status"], len(three["path"])) == (401, "/v1/models", 404, 500)
    assert "secret" not in log.read_text()


def test_a_log_that_nobody_reads_holds_up_nobody_and_says_what_it_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fewer.serve.observe.access_log._MOST_LINES", 3)
    log = AccessLog(str(tmp_path / "log"))
    for number in range(10):  # nobody writes yet
        log.write({"number": number})
    log.open()
    log.close(GIVE_UP_SECONDS)
    assert (tmp_path / "log").read_text() == '{"number":0}\n{"number":1}\n{"number":2}\n{"dropped":7}\n'


def test_people_get_pages_where_programs_get_json(client: TestClient) -> None:
    assert "There is no such page" in client.get("/nowhere", headers=PAGE).text
    assert client.get("/nowhere").json() == {"detail": "no such path; /openapi.json lists them"}
    assert client.post("/nowhere", headers=PAGE).status_code in (404, 405)
    with TestClient(Application([], token="secret")) as guarded:
        asked = guarded.get("/v1/models", headers=PAGE)
        assert asked.status_code == 401 and "token.js" in asked.text and asked.headers["www-authenticate"] == "Bearer"
        assert guarded.get("/v1/models").json()["detail"].startswith("no token")
        assert guarded.get("/token").status_code == 200 and guarded.get("/readyz").json() == {"status": "ready"}


def test_an_exchange_costs_little_beside_a_prediction() -> None:
    """What it adds to an answer stays under a tenth of a millisecond of processor time, however busy the machine."""
    import asyncio

    async def sent(_: object) -> None:
        return None

    scope = {"headers": [(b"host", b"localhost")] * 6, "method": "POST", "path": "/"}
    body = bytes(200)

    async def many() -> float:
        outgoing, start = Outgoing(), time.process_time()
        for _ in range(2000):
            one = Exchange(scope, sent, outgoing)
            await one.send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"200")]})
            await one.send({"type": "http.response.body", "body": body})
        return time.process_time() - start

    assert np.median([asyncio.run(many()) for _ in range(3)]) / 2000 < 1e-4
