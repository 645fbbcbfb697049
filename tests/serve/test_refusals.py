"""Whatever arrives, the answer has a status and a reason, and the status is never 500."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
import pytest
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st

from fewer.core.errors import UserError
from fewer.serve.app import Application
from fewer.serve.bodies import write_npz
from fewer.serve.start import checked_host

JSON = {"content-type": "application/json"}
NPZ = {"content-type": "application/x-npz"}
IMAGE = [[0.0] * 28] * 28


def phone(master: object = 3, rsrp: object = (-80, -90, -100)) -> bytes:
    return json.dumps({"master": master, "rsrp_db": list(rsrp) if isinstance(rsrp, tuple) else rsrp}).encode()


def zipped(name: str, data: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, data)
    return file.getvalue()


def pickled() -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    return zipped("pixels.npy", file.getvalue())


def lying(shape: tuple[int, ...]) -> bytes:
    """An npy whose head claims more than it holds."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})  # type: ignore[arg-type]
    return zipped("pixels.npy", file.getvalue() + bytes(64))


BODIES: dict[str, tuple[str, bytes, int]] = {
    "nothing": ("cellfree", b"", 400),
    "half an object": ("cellfree", phone()[:-3], 400),
    "bytes that are no text": ("cellfree", b"\xff\xfe{}", 400),
    "NaN": ("cellfree", b'{"master": 3, "rsrp_db": [NaN, -90, -100]}', 400),
    "Infinity": ("cellfree", b'{"master": 3, "rsrp_db": [-80, -Infinity, -100]}', 400),
    "a name twice": ("cellfree", b'{"master": 3, "master": 3, "rsrp_db": [-80, -90, -100]}', 400),
    "brackets without end": ("cellfree", b"[" * 100_000, 422),
    "a number of 10,000 digits": ("cellfree", b'{"master": 1' + b"0" * 10_000 + b', "rsrp_db": [-80, -90, -100]}', 400),
    "a list": ("cellfree", b"[1, 2]", 422),
    "another field": ("cellfree", b'{"master": 3, "rsrp_db": [-80, -90, -100], "x": 1}', 422),
    "no reports": ("cellfree", b'{"master": 3}', 422),
    "a number beyond doubles": ("cellfree", b'{"master": 3, "rsrp_db": [-80, 1e999, -100]}', 422),
    "a signal beyond radio": ("cellfree", phone(rsrp=(-80, -1e30, -100)), 422),
    "a master that is a word": ("cellfree", phone("three"), 422),
    "a master that is true": ("cellfree", phone(True), 422),
    "a master between two": ("cellfree", phone(3.5), 422),
    "a master below zero": ("cellfree", phone(-1), 422),
    "a master beyond the network": ("cellfree", phone(100), 422),
    "a master beyond 64 bits": ("cellfree", phone(2**70), 422),
    "a signal that is a word": ("cellfree", phone(rsrp=("-80", -90, -100)), 422),
    "a signal that is true": ("cellfree", phone(rsrp=(True, -90, -100)), 422),
    "a master that was not heard": ("cellfree", phone(rsrp=(None, -90, -100)), 422),
    "two reports of three": ("cellfree", phone(rsrp=(-80, -90)), 422),
    "reports within reports": ("cellfree", phone(rsrp=[[-80, -90, -100]]), 422),
    "more masters than rows": ("cellfree", phone([3, 4], [[-80, -90, -100]]), 422),
    "no phones": ("cellfree", phone([], []), 422),
    "an image of 27 rows": ("vision", json.dumps({"pixels": IMAGE[1:]}).encode(), 422),
    "a ragged image": ("vision", json.dumps({"pixels": [*IMAGE[1:], [0.0] * 27]}).encode(), 422),
    "an image of words": ("vision", json.dumps({"pixels": [["a"] * 28] * 28}).encode(), 422),
    "an image of truths": ("vision", json.dumps({"pixels": [[True] * 28] * 28}).encode(), 422),
    "an image with nulls": ("vision", json.dumps({"pixels": [[None] * 28] * 28}).encode(), 422),
    "no images": ("vision", json.dumps({"pixels": []}).encode(), 422),
    "pixels beyond white": ("vision", json.dumps({"pixels": [[1.5] * 28] * 28}).encode(), 422),
    "pixels beyond float32": ("vision", json.dumps({"pixels": [[1e300] * 28] * 28}).encode(), 422),
}
ARRAYS: dict[str, tuple[str, bytes, int]] = {
    "no zip": ("vision", b"PK nonsense", 400),
    "a zip of text": ("vision", zipped("pixels.npy", b"hello"), 400),
    "a pickle": ("vision", pickled(), 422),
    "a claim of a billion numbers": ("vision", lying((1_000_000_000,)), 400),
    "a claim that overflows": ("vision", lying((2**62, 2**62)), 400),
    "a negative shape": ("vision", lying((-4, -4)), 400),
    "a bomb": ("vision", zipped("pixels.npy", bytes(1 << 24)), 413),
    "another name": ("vision", write_npz({"image": np.zeros((28, 28))}), 422),
    "NaN": ("vision", write_npz({"pixels": np.full((28, 28), np.nan)}), 422),
    "words": ("vision", write_npz({"pixels": np.full((28, 28), "a")}), 422),
    "complex numbers": ("vision", write_npz({"pixels": np.zeros((28, 28), dtype=complex)}), 422),
    "a master with a fraction": ("cellfree", write_npz({"master": np.array(1.5), "rsrp_db": np.zeros(3)}), 422),
    "a master far away": ("cellfree", write_npz({"master": np.array(10**6), "rsrp_db": np.zeros(3)}), 422),
    "an infinite signal": ("cellfree", write_npz({"master": np.array(1), "rsrp_db": np.array([0, np.inf, 0])}), 422),
    "one row too many": ("cellfree", write_npz({"master": np.array([1]), "rsrp_db": np.zeros((2, 3))}), 422),
}


def refused(client: TestClient, path: str, body: bytes, headers: dict[str, str], status: int) -> None:
    answer = client.post(path, content=body, headers=headers)
    assert answer.status_code == status, answer.text
    detail = answer.json()["detail"]
    assert detail and "\n" not in detail and len(detail) < 500


@pytest.mark.parametrize("name", BODIES)
def test_wrong_json_is_refused_with_a_reason(client: TestClient, name: str) -> None:
    task, body, status = BODIES[name]
    refused(client, f"/v1/{task}/predict", body, JSON, status)


@pytest.mark.parametrize("name", ARRAYS)
def test_wrong_arrays_are_refused_with_a_reason(client: TestClient, name: str) -> None:
    task, body, status = ARRAYS[name]
    refused(client, f"/v1/{task}/predict", body, NPZ, status)


def test_other_kinds_methods_models_and_paths_are_refused(client: TestClient) -> None:
    refused(client, "/v1/cellfree/predict", phone(), {"content-type": "text/plain"}, 415)
    refused(client, "/v1/cellfree/predict?model=digits-dense", phone(), JSON, 404)
    assert client.get("/v1/cellfree/predict").status_code == 405
    assert client.get("/v1/cellfree/predict").headers["allow"] == "POST"
    assert client.post("/v1/weather/predict", content=b"{}", headers=JSON).status_code == 404
    assert client.get("/v1/cellfree/map?model=none").status_code == 404


def test_oversized_requests_are_refused_whether_or_not_they_say_their_size(client: TestClient) -> None:
    refused(client, "/v1/vision/predict", bytes((1 << 20) + 1), JSON, 413)
    refused(client, "/v1/vision/attack", bytes((1 << 20) + 1), JSON, 413)
    for path in ("/v1/vision/predict", "/v1/vision/attack"):
        answer = client.post(path, content=(bytes(1 << 18) for _ in range(8)), headers=JSON)
        assert answer.status_code == 413, answer.text


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/vision/attack", b'{"pixels": [[NaN]], "budget": 0.1}', 422),
        ("/v1/vision/attack", json.dumps({"pixels": IMAGE, "budget": 2}).encode(), 422),
        ("/v1/vision/attack", json.dumps({"pixels": IMAGE, "budget": 0.1, "steps": 10**9}).encode(), 422),
        ("/v1/vision/attack", json.dumps({"pixels": [IMAGE, IMAGE], "budget": 0.1}).encode(), 422),
        ("/v1/vision/attack", b'{"pixels": [', 400),
        ("/v1/cellfree/place", b'{"x_m": 1e9, "y_m": 0}', 422),
        ("/v1/cellfree/place", b'{"x_m": 2000, "y_m": 0}', 422),
        ("/v1/cellfree/place", b'{"x_m": NaN, "y_m": 0}', 422),
        ("/v1/cellfree/place", b'{"x_m": "1", "y_m": 0}', 422),
        ("/v1/cellfree/place", b'{"x_m": 1, "y_m": 0, "model": "none"}', 404),
    ],
)
def test_what_the_pages_ask_is_checked_too(client: TestClient, path: str, body: bytes, status: int) -> None:
    refused(client, path, body, JSON, status)


FIELDS = ["master", "rsrp_db", "pixels"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(FIELDS), inner),
    max_leaves=12,
)


@settings(max_examples=150)
@given(
    st.binary(max_size=200) | VALUES.map(lambda value: json.dumps(value).encode()),
    st.sampled_from(["cellfree", "vision"]),
    st.sampled_from([JSON, NPZ]),
)
def test_no_body_makes_the_server_fail(
    application: Application, client: TestClient, body: bytes, task: str, headers: dict[str, str]
) -> None:
    assert client.post(f"/v1/{task}/predict", content=body, headers=headers).status_code in (200, 400, 413, 422)


def test_a_token_is_asked_for_everywhere_but_at_the_door(application: Application) -> None:
    guarded = Application([], token="secret")
    guarded._paths = {"/v1/cellfree/predict": "cellfree"}
    with TestClient(guarded) as client:
        assert client.get("/healthz").status_code == client.get("/").status_code == 200
        assert client.get("/static/base.css").status_code == 200
        for path in ("/v1/models", "/metrics", "/openapi.json", "/v1/cellfree/predict"):
            answer = client.get(path)
            assert answer.status_code == 401 and answer.headers["www-authenticate"] == "Bearer", path
            assert client.get(path, headers={"authorization": "Bearer secre"}).status_code == 401
        assert client.get("/v1/models", headers={"authorization": "Bearer secret"}).status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org"])
def test_listening_beyond_this_machine_without_a_token_is_refused(host: str) -> None:
    with pytest.raises(UserError, match="token"):
        checked_host(host, None)
    checked_host(host, "secret")


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.9.9.9"])
def test_loopback_needs_no_token(host: str) -> None:
    checked_host(host, None)
