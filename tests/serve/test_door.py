"""Who comes in: tokens, names of this machine, and where redirects lead."""

from __future__ import annotations

import logging

import pytest
from fastapi.testclient import TestClient

from fewer.cli import main
from fewer.serve.app import Application
from fewer.serve.models import open_models
from fewer.serve.start import names_of
from tests.serve.sockets import listening, request, said

PHONE = b'{"master": 21, "rsrp_db": [-113.8, -131.9, -124.9]}'
JSON = {"content-type": "application/json"}


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "bearer "])
def test_the_scheme_of_a_token_may_be_written_in_any_case(scheme: str) -> None:
    with TestClient(Application([], token="Secret")) as client:
        assert client.get("/v1/models", headers={"authorization": f"{scheme} Secret"}).status_code == 200
        assert client.get("/v1/models", headers={"authorization": f"{scheme} secret"}).status_code == 401
        assert client.get("/v1/models", headers={"authorization": scheme}).status_code == 401
        assert client.get("/v1/models", headers={"authorization": "Basic Secret"}).status_code == 401


def test_a_missing_token_is_counted_and_said_once_a_second(caplog: pytest.LogCaptureFixture) -> None:
    models = open_models(["cellfree-80"])
    with TestClient(Application(models, token="secret")) as client, caplog.at_level(logging.WARNING, "fewer.serve"):
        for _ in range(3):
            assert client.get("/v1/models%0a").status_code == 401
        assert client.post("/v1/cellfree/predict", content=PHONE, headers=JSON).status_code == 401
        told = client.get("/metrics", headers={"authorization": "Bearer secret"}).text
    assert 'fewer_sent_away_total{status="401"} 4' in told
    assert 'fewer_requests_total{task="cellfree",status="401"} 1' in told
    assert caplog.messages[0].startswith("401 to testclient: GET '/v1/models")
    assert "\n" not in caplog.messages[0] and "secret" not in caplog.text


def test_a_model_without_a_name_is_refused_in_one_line(client: TestClient) -> None:
    for query in ("model=", "model", "model=&model=cellfree-80"):
        answer = client.post(f"/v1/cellfree/predict?{query}", content=PHONE, headers=JSON)
        assert answer.status_code == 404 and answer.json()["detail"] == "model ''; there are cellfree-80"


def test_redirects_lead_to_a_path_whatever_stands_before_the_server(client: TestClient) -> None:
    for host in ("testserver", "models.example.org"):
        answer = client.get("/vision/?a=b", headers={"host": host}, follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (307, "/vision?a=b")
    assert client.get("/vision/").status_code == 200


LOCAL = ["localhost", "localhost:8080", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:8080", "LocalHost:8080"]
FOREIGN = ["example.org", "example.org:8080", "localhost.example.org", "127.0.0.1.example.org", "localhost:80@x", "",
           "[::1", "[::2]", "::1", "localhost:x", "10.0.0.1", "localhost, example.org"]  # fmt: skip


@pytest.fixture(scope="module")
def local() -> Application:
    return Application(open_models(["cellfree-80"]), names=names_of("127.0.0.1", None, ["Models.example.net"]))


@pytest.mark.parametrize("host", [*LOCAL, "models.example.net:8080"])
def test_this_machine_is_asked_by_its_own_names(local: Application, host: str) -> None:
    with TestClient(local) as client:
        assert client.get("/healthz", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("host", FOREIGN)
def test_a_name_from_elsewhere_that_was_made_to_lead_here_is_refused_in_one_line(local: Application, host: str) -> None:
    with TestClient(local) as client:
        for path in ("/", "/healthz", "/v1/models"):
            answer = client.get(path, headers={"host": host})
            assert answer.status_code == 421
            assert answer.json()["detail"].startswith(f"Host {host!r}; expected 127.0.0.1, [::1], localhost, models")
        assert client.post("/v1/cellfree/predict", content=PHONE, headers={"host": host, **JSON}).status_code == 421


def test_no_host_or_two_are_refused_too(local: Application) -> None:
    with listening(local) as port:
        assert said(port, b"GET /healthz HTTP/1.1\r\nconnection: close\r\n\r\n").startswith(b"HTTP/1.1 421 Misdirected")
        assert said(port, request("/healthz", "host: example.org")).startswith(b"HTTP/1.1 421")
        assert said(port, request("/healthz")).startswith(b"HTTP/1.1 200")


def test_names_do_not_matter_where_a_token_does() -> None:
    assert names_of("0.0.0.0", "secret", []) is None
    assert names_of("127.0.0.1", "secret", []) is None
    assert names_of("127.9.9.9", None, []) == {"localhost", "127.0.0.1", "[::1]", "127.9.9.9"}
    assert names_of("::1", None, []) == {"localhost", "127.0.0.1", "[::1]"}


@pytest.mark.parametrize("name", ["http://x", "x:80", "", "a b", "[x"])
def test_a_host_name_that_no_request_can_have_is_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "digits-3197", "--host-name", name]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "--host-name" in said
