"""Packs whose sequences may be of any length are served at any length, by both protocols, within limits."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fastapi.testclient import TestClient
from torch import Tensor, nn

from fewer.packs.pack import write
from fewer.packs.trace.trace import trace
from fewer.serve.app import Application
from fewer.serve.limits import Limits
from fewer.serve.models import Model, open_models

PATH, INFER = "/v1/own/predict?model=", "/v2/models/{}/infer"


class Causal(nn.Module):
    """Tokens, of which every one sees those before it: an answer for each."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.three = nn.Embedding(9, 8), nn.Linear(8, 24)

    def forward(self, tokens: Tensor) -> Tensor:
        q, k, v = self.three(self.words(tokens)).chunk(3, -1)
        return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


class Cells(nn.Module):
    """Steps of three numbers, and one answer for all of them."""

    def __init__(self) -> None:
        super().__init__()
        self.cells, self.head = nn.GRU(3, 4, batch_first=True), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        answer: Tensor = self.head(self.cells(x)[0][:, -1])
        return answer


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Model]:
    torch.manual_seed(0)
    folder: Path = tmp_path_factory.mktemp("packs")
    for name, module, example in (
        ("causal", Causal(), torch.randint(0, 9, (2, 7))),
        ("cells", Cells(), torch.randn(2, 7, 3)),
    ):
        write(folder / f"{name}.pack", *trace(module.eval(), [example], any_length=True))
    return {model.name: model for model in open_models([str(folder / f"{n}.pack") for n in ("causal", "cells")])}


@pytest.fixture(scope="module")
def client(models: dict[str, Model]) -> Iterator[TestClient]:
    with TestClient(Application(list(models.values()), limits=Limits(sequence_bytes=1 << 24))) as found:
        yield found


def given(name: str, samples: int, steps: int) -> Any:
    chance = np.random.default_rng(steps)
    if name == "causal":
        return chance.integers(0, 9, (samples, steps))
    return chance.normal(size=(samples, steps, 3)).astype(np.float32)


@pytest.mark.parametrize("name", ["causal", "cells"])
@pytest.mark.parametrize(("samples", "steps"), [(1, 1), (1, 7), (3, 5), (2, 40), (5, 900)])
def test_every_form_of_a_request_is_answered_at_any_length(
    client: TestClient, models: dict[str, Model], name: str, samples: int, steps: int
) -> None:
    array = given(name, samples, steps)
    expected = models[name].predict([array])
    in_json = client.post(PATH + name, json={"x": array.tolist()})
    assert in_json.status_code == 200, in_json.text
    np.testing.assert_allclose(in_json.json()["output"], expected, atol=1e-6)
    single = client.post(PATH + name, json={"x": array[0].tolist()})
    np.testing.assert_allclose(single.json()["output"], expected[0], atol=1e-6)
    file = io.BytesIO()
    np.savez(file, x=array)
    packed = client.post(PATH + name, content=file.getvalue(), headers={"content-type": "application/x-npz"})
    np.testing.assert_allclose(np.load(io.BytesIO(packed.content))["output"], expected, atol=1e-6)
    kind = "INT64" if name == "causal" else "FP32"
    tensor = {"name": "x", "shape": list(array.shape), "datatype": kind}
    for data in (array.ravel().tolist(), array.tolist()):
        other = client.post(INFER.format(name), json={"inputs": [{**tensor, "data": data}]})
        assert other.status_code == 200, other.text
        assert other.json()["outputs"][0]["shape"] == list(expected.shape)
        np.testing.assert_allclose(other.json()["outputs"][0]["data"], expected.ravel(), atol=1e-6)
    head = json.dumps({"inputs": [{**tensor, "parameters": {"binary_data_size": array.nbytes}}]}).encode()
    headers = {"inference-header-content-length": str(len(head))}
    assert client.post(INFER.format(name), content=head + array.tobytes(), headers=headers).status_code == 200


def test_what_is_free_is_told(client: TestClient) -> None:
    told = {model["name"]: model for model in client.get("/v1/models").json()}
    assert told["causal"]["inputs"]["x"]["shape"] == [-1] and told["causal"]["inputs"]["x"]["longest"] == 1 << 14
    assert told["cells"]["inputs"]["x"]["shape"] == [-1, 3]
    assert told["causal"]["npz_answer"]["output"]["shape"] == [-1, 8]
    metadata = client.get("/v2/models/causal").json()
    assert metadata["inputs"][0]["shape"] == [-1, -1] and metadata["outputs"][0]["shape"] == [-1, -1, 8]
    assert client.get("/v2/models/cells").json()["outputs"][0]["shape"] == [-1, 2]
    assert client.get("/openapi.json").status_code == 200


@pytest.mark.parametrize(
    ("rows", "status"),
    [
        ([[1, 2, 3], [1, 2]], 422),
        ([[1, 2], [1, 2, 3]], 422),
        ([], 422),
        ([[]], 422),
        ([[[1]]], 422),
        ([[1, 2], [1, 9]], 422),
        ([0] * ((1 << 14) + 1), 422),
        ([0] * (1 << 14), 413),  # of places that all see each other
    ],
)
@pytest.mark.parametrize("blank", [0, 1 << 15], ids=["short", "long"])
def test_sequences_that_differ_or_are_too_long_are_refused(
    client: TestClient, rows: list[Any], status: int, blank: int
) -> None:
    body = json.dumps({"x": rows}).encode() + b" " * blank
    answer = client.post(PATH + "causal", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == status, answer.text[:200]


def test_requests_of_several_lengths_at_once_get_their_own_answers(
    client: TestClient, models: dict[str, Model]
) -> None:
    lengths = [1 + n % 5 for n in range(40)]

    def ask(steps: int) -> Any:
        return client.post(PATH + "cells", json={"x": given("cells", 1, steps).tolist()}).json()["output"]

    with ThreadPoolExecutor(8) as threads:
        for steps, found in zip(lengths, threads.map(ask, lengths)):
            np.testing.assert_allclose(found, models["cells"].predict([given("cells", 1, steps)]), atol=1e-6)
