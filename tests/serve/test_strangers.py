"""Requests of strangers who try what comes to mind: each gets its answer at once, and costs nothing that lasts."""

from __future__ import annotations

import gzip
import io
import json
import re
import zipfile
from collections.abc import Iterator

import numpy as np
import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from fewer.serve.app import Application
from fewer.serve.limits import Refusal
from fewer.serve.models import open_models
from fewer.serve.open_inference.request import _cut
from tests.serve.sockets import listening, request, said

JSON = {"content-type": "application/json"}
INFER = "/v2/models/cellfree-80/infer"
POST = ("content-type: application/json",)
PHONE = b'{"master": 21, "rsrp_db": [-113.8, -131.9, -124.9]}'


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with listening(Application(open_models(["cellfree-80", "digits-3197"]))) as found:
        yield found


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/v1/models", "/openapi.json", "/v2", "/"])
def test_head_is_answered_as_get_without_a_body(port: int, path: str) -> None:
    head, _, body = said(port, request(path, method="HEAD")).partition(b"\r\n\r\n")
    whole = said(port, request(path)).partition(b"\r\n\r\n")[2]
    assert head.startswith(b"HTTP/1.1 200") and body == b""
    if path != "/metrics":  # which counts, and so grows
        assert b"content-length: %d" % len(whole) in head.lower()


@pytest.mark.parametrize("path", ["/v1/cellfree/predict", INFER])
def test_a_compressed_request_is_refused_and_not_unfolded(client: TestClient, path: str) -> None:
    answer = client.post(path, content=gzip.compress(bytes(1 << 20)), headers={**JSON, "content-encoding": "gzip"})
    assert answer.status_code == 415 and "compressed" in answer.text


def test_an_npz_with_one_name_twice_is_refused(client: TestClient) -> None:
    file, array = io.BytesIO(), io.BytesIO()
    np.save(array, np.zeros((28, 28), np.float32))
    with zipfile.ZipFile(file, "w") as parts:
        parts.writestr("pixels.npy", array.getvalue())
        with pytest.warns(UserWarning):
            parts.writestr("pixels.npy", array.getvalue())
    answer = client.post("/v1/vision/predict", content=file.getvalue(), headers={"content-type": "application/x-npz"})
    assert answer.status_code == 422 and "twice" in answer.text


def test_pages_do_not_show_their_package(client: TestClient) -> None:
    assert client.get("/static/vision/page.js").status_code == 200
    assert client.get("/static/vision/__init__.py").status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        b'{"inputs":[' + b'"data":[' * 50_000 + b"]}",
        b'{"data":' + b"[" * 500_000,
        b'"data":[1,' * 80_000,
        b'"data"' + b" " * 400_000 + b":[1]",
        b'"data":[1]' * 40 + b" " * 20_000,
    ],
    ids=["heads", "brackets", "halves", "blanks", "many"],
)
def test_a_request_of_the_other_protocol_that_is_long_without_numbers_is_refused(
    client: TestClient, body: bytes
) -> None:
    answer = client.post(INFER, content=body, headers=JSON)
    assert answer.status_code == 413 and "without its numbers" in answer.json()["error"]


PIECES = st.sampled_from(['"data"', " : ", ":", "[", "]", "1,2", ",", '"x"', "{", "}", '\\"data\\":[1]'])


@given(st.lists(PIECES, max_size=20).map("".join))
def test_numbers_are_cut_out_as_one_pattern_would(text: str) -> None:
    body, expected = text.encode(), []

    def cut(found: re.Match[bytes]) -> bytes:
        expected.append(found[1])
        return b'"data":%d' % (len(expected) - 1)

    rest = re.sub(rb'"data"[ \t\n\r]{0,64}:[ \t\n\r]{0,64}(\[[^"{}]*\])', cut, body)
    assert _cut(body) == (rest, expected)


def test_more_lists_than_a_request_may_have_are_left_where_they_are(client: TestClient) -> None:
    rest, numbers = _cut(b'"data":[1]' * 40)
    assert len(numbers) == 32 and rest.endswith(b'"data":[1]' * 8)
    with pytest.raises(Refusal):
        _cut(b'"data":[1]' * 4000)


STRANGE = {
    "an upgrade to websockets": request("/healthz", "upgrade: websocket", "sec-websocket-version: 13"),
    "the other HTTP": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
    "a tunnel": b"CONNECT elsewhere:443 HTTP/1.1\r\nhost: localhost\r\n\r\n",
    "a method nobody knows": request(method="FOO"),
    "trace": request(method="TRACE"),
    "two lengths": request("/v1/cellfree/predict", *POST, "content-length: 99", method="POST", body=PHONE),
    "a length and chunks": request(
        "/v1/cellfree/predict", *POST, "transfer-encoding: chunked", method="POST", body=b"0\r\n\r\n"
    ),
    "chunks of chunks": request("/v1/cellfree/predict", *POST, "transfer-encoding: gzip, chunked", method="POST"),
    "a chunk below nothing": request("/v1/cellfree/predict", *POST, "transfer-encoding: chunked", method="POST")
    + b"-1\r\n{}",
    "a name of bytes": request("/v2/models/%ff%00%0d%0a"),
    "a way up": request("/static/..%2f..%2f..%2fetc%2fpasswd"),
    "half a line": b"GET /healthz HTTP/1.1\nhost: localhost\n\n",
    "a folded header": request("/healthz", "x: a\r\n b"),
    "ranges": request("/static/base.js", "range: bytes=" + "0-," * 3000),
    "two names": request("/v1/models", "host: elsewhere"),
}


@pytest.mark.parametrize("name", STRANGE)
def test_what_is_strange_is_answered_once_and_the_next_is_answered_as_ever(port: int, name: str) -> None:
    answer = said(port, STRANGE[name])
    statuses = [int(part[1:4]) for part in answer.split(b"HTTP/1.1")[1:]]
    assert len(statuses) == 1 and 200 <= statuses[0] < 500, answer[:200]
    assert json.loads(said(port, request()).partition(b"\r\n\r\n")[2]) == {"status": "ok"}
