"""What the service says of its models is what it answers: every shipped pack's example, as it stands."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from fewer import zoo
from fewer.serve.app import Application
from fewer.serve.bodies import write_npz
from fewer.serve.models import open_models
from tests.serve.sockets import listening
from tests.waiting import GIVE_UP_SECONDS


@pytest.fixture(scope="module")
def shipped() -> Iterator[TestClient]:
    with TestClient(Application(open_models([]))) as found:
        yield found


@pytest.fixture(scope="module")
def listed(shipped: TestClient) -> dict[str, dict[str, Any]]:
    return {model["name"]: model for model in shipped.get("/v1/models").json()}


def predicted(client: TestClient, model: dict[str, Any], body: bytes | str, kind: str) -> None:
    path = f"/v1/{model['task']}/predict?model={model['name']}"
    answer = client.post(path, content=body, headers={"content-type": kind})
    assert answer.status_code == 200, answer.text[:300]


@pytest.mark.parametrize("name", zoo.names())
def test_the_example_of_a_model_is_answered(
    shipped: TestClient,
    listed: dict[str, dict[str, Any]],
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    example = listed[name]["example"]
    if "body" in example:
        predicted(shipped, listed[name], json.dumps(example["body"]), example["content_type"])
        return
    monkeypatch.chdir(tmp_path)
    exec(example["python"], {})
    predicted(shipped, listed[name], (tmp_path / "input.npz").read_bytes(), example["content_type"])


@pytest.mark.parametrize("name", zoo.names())
@pytest.mark.parametrize("all_of_them", [True, False], ids=["all inputs", "what is needed"])
def test_the_inputs_of_a_model_are_taken_by_json_and_by_npz(
    shipped: TestClient, listed: dict[str, dict[str, Any]], name: str, all_of_them: bool
) -> None:
    arrays = {
        field: np.zeros(told["shape"], told["dtype"])
        for field, told in listed[name]["inputs"].items()
        if all_of_them or not told["optional"]
    }
    in_words = json.dumps({field: array.tolist() for field, array in arrays.items()})
    predicted(shipped, listed[name], in_words, "application/json")
    predicted(shipped, listed[name], write_npz(arrays), "application/x-npz")


def test_the_description_shows_the_example_of_the_model_that_answers_where_none_is_named(shipped: TestClient) -> None:
    paths = shipped.get("/openapi.json").json()["paths"]
    shown = paths["/v1/control/predict"]["post"]["requestBody"]["content"]["application/json"]["example"]
    assert shipped.post("/v1/control/predict", json=shown).status_code == 200


@pytest.mark.parametrize("token", [None, "a secret"], ids=["open", "with a token"])
def test_what_the_page_shows_can_be_pasted_into_a_shell(token: str | None, tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("no curl on the path")
    names = zoo.names() if token is None else ["cellfree-80", "digits-3197"]
    with listening(Application(open_models(names), token=token)) as port:
        request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/models")
        if token:
            request.add_header("authorization", f"Bearer {token}")
        with urllib.request.urlopen(request, timeout=GIVE_UP_SECONDS) as answer:
            models = json.loads(answer.read())
        environment = {
            **os.environ,
            "FEWER_TOKEN": token or "",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        lines = [model["example"]["curl"].replace("curl -s", "curl -sf") for model in models]
        done = subprocess.run(
            ["bash", "-ec", "\n".join(lines)], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
    assert len(models) == len(names) and done.returncode == 0, done.stderr
    assert ("$FEWER_TOKEN" in lines[0]) == (token is not None)


@pytest.mark.parametrize("name", zoo.names())
def test_a_model_says_what_its_fields_and_its_answer_mean(
    shipped: TestClient, listed: dict[str, dict[str, Any]], name: str
) -> None:
    told = listed[name]
    for field in told["inputs"].values():
        assert field["meaning"] and (field["unit"] or field["shape"] == [])
    zeros = {field: np.zeros(each["shape"], each["dtype"]).tolist() for field, each in told["inputs"].items()}
    answer = shipped.post(f"/v1/{told['task']}/predict?model={name}", json=zeros).json()
    assert answer.keys() <= told["answer"].keys() and all(told["answer"].values())
    if told["npz_inputs"]:  # what the network itself takes, in an npz alone
        arrays = {field: np.zeros((2, *each["shape"]), each["dtype"]) for field, each in told["npz_inputs"].items()}
        packed = shipped.post(
            f"/v1/{told['task']}/predict?model={name}",
            content=write_npz(arrays),
            headers={"content-type": "application/x-npz"},
        )
        output = np.load(io.BytesIO(packed.content))["output"]
        assert list(output.shape[1:]) == told["npz_answer"]["output"]["shape"]


def test_the_description_says_where_a_token_is_asked_for(shipped: TestClient) -> None:
    assert "securitySchemes" not in shipped.get("/openapi.json").json().get("components", {})
    with TestClient(Application(open_models(["cellfree-80"]), token="secret")) as guarded:
        told = guarded.get("/openapi.json", headers={"authorization": "Bearer secret"}).json()
        assert told["components"]["securitySchemes"]["token"]["scheme"] == "bearer" and told["security"] == [
            {"token": []}
        ]
        for path, operations in told["paths"].items():
            for method, operation in operations.items():
                status = guarded.request(method, path).status_code
                assert (status == 401) == (operation.get("security", told["security"]) != []), path
