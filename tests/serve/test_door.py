"""Who comes in: tokens, names of this machine, and where redirects lead."""

from __future__ import annotations

import logging

import pytest
from fastapi.testclient import TestClient

from fewer.serve.app import Application
from fewer.serve.models import open_models

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
