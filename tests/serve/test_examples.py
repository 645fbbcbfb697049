"""What the service says of its models is what it answers: every shipped pack's example, as it stands."""

from __future__ import annotations

import json
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
