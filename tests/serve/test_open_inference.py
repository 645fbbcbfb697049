"""The Open Inference Protocol: Triton's own client asks every shipped pack, and what is wrong is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from fewer import zoo
from fewer.bench.load import serving
from fewer.packs.file.tensors import Array
from fewer.serve.models import Model, open_models

triton = pytest.importorskip("tritonclient.http", exc_type=ImportError)
MODELS = {model.name: model for model in open_models([])}
INFER = "/v2/models/cellfree-80/infer"


@pytest.fixture(scope="module")
def shipped() -> Iterator[Any]:
    with serving([]) as server:
        client = triton.InferenceServerClient(f"127.0.0.1:{server.port}")
        yield client
        client.close()


def arrays_for(model: Model, samples: int) -> list[Array]:
    generator = np.random.default_rng(7)
    return [
        generator.integers(0, 9, (samples, *item.shape)).astype(item.dtype)
        if item.dtype.startswith("int")
        else generator.random((samples, *item.shape)).astype(item.dtype)
        for item in model.inputs
    ]


def test_the_server_is_live_and_ready_and_says_what_it_is(shipped: Any) -> None:
    assert shipped.is_server_live() and shipped.is_server_ready()
    told = shipped.get_server_metadata()
    assert told["name"] == "fewer" and "binary_tensor_data" in told["extensions"]


@pytest.mark.parametrize("name", zoo.names())
def test_triton_s_client_reads_the_metadata_of_every_pack(shipped: Any, name: str) -> None:
    told, model = shipped.get_model_metadata(name), MODELS[name]
    assert told["versions"] == [model.version] and model.digest in told["parameters"]["digest"]
    assert [(i["name"], i["shape"][1:]) for i in told["inputs"]] == [(i.name, list(i.shape)) for i in model.inputs]
    assert shipped.is_model_ready(name) and shipped.is_model_ready(name, model.version)
    assert not shipped.is_model_ready(name, "0")


@pytest.mark.parametrize("name", zoo.names())
@pytest.mark.parametrize("binary", [True, False], ids=["binary", "JSON"])
def test_triton_s_client_gets_the_same_numbers_as_the_pack_says(shipped: Any, name: str, binary: bool) -> None:
    model = MODELS[name]
    arrays = arrays_for(model, 2 if binary else 1)  # a window of satellite images is 6 MB of JSON
    told = shipped.get_model_metadata(name)
    inputs = []
    for item, array in zip(told["inputs"], arrays):
        inputs.append(triton.InferInput(item["name"], list(array.shape), item["datatype"]))
        inputs[-1].set_data_from_numpy(array, binary_data=binary)
    wanted = [triton.InferRequestedOutput("output", binary_data=binary)]
    answer = shipped.infer(name, inputs, model_version=model.version, outputs=wanted, request_id="seven")
    output = answer.as_numpy("output")
    assert answer.get_response()["id"] == "seven"
    assert list(output.shape[1:]) == told["outputs"][0]["shape"][1:]
    np.testing.assert_allclose(output, model.predict(arrays), rtol=1e-6, atol=1e-6)


def asked(**changed: Any) -> dict[str, Any]:
    """A request for one phone, flat or nested, whichever."""
    tensors = {
        "master": {"name": "master", "shape": [1], "datatype": "INT64", "data": [3]},
        "rsrp_db": {"name": "rsrp_db", "shape": [1, 3], "datatype": "FP32", "data": [-81.0, -84.5, 0]},
        "reported": {"data": [[1, 1, 0]], "datatype": "FP32", "shape": [1, 3], "name": "reported"},
    }
    return {"inputs": [{**value, **changed.get(name, {})} for name, value in tensors.items()]}


def test_numbers_may_be_flat_or_nested_and_stand_before_what_describes_them(client: TestClient) -> None:
    flat = client.post(INFER, json=asked())
    nested = client.post(INFER, json=asked(rsrp_db={"data": [[-81.0, -84.5, 0]]}))
    assert flat.status_code == 200, flat.text
    assert flat.json() == nested.json() and flat.json()["outputs"][0]["datatype"] == "FP32"
    assert flat.headers["fewer-digest"] == f"sha256:{MODELS['cellfree-80'].digest}"


@pytest.mark.parametrize(
    ("changed", "status", "word"),
    [
        ({"master": {"datatype": "INT32"}}, 400, "datatype INT32"),
        ({"master": {"shape": [2]}}, 422, "master"),
        ({"master": {"data": [4000]}}, 422, "beyond the network"),
        ({"master": {"shape": [0], "data": []}}, 400, "shape"),
        ({"master": {"shape": [10**9]}}, 413, "samples"),
        ({"master": {"shape": [True]}}, 400, "shape"),
        ({"master": {"name": "slave"}}, 400, "slave"),
        ({"rsrp_db": {"data": [1, 2]}}, 422, "list of 2"),
        ({"rsrp_db": {"data": [1, 2, None]}}, 422, "numbers"),
        ({"rsrp_db": {"data": "words"}}, 400, "without numbers"),
        ({"rsrp_db": {"parameters": {"binary_data_size": 12}}}, 400, "without numbers"),
        ({"rsrp_db": {"parameters": {"shared_memory_region": "x"}}}, 400, "shared memory"),
        ({"rsrp_db": {"parameters": 3}}, 400, "parameters"),
    ],
)
def test_what_is_wrong_is_refused_with_a_reason(
    client: TestClient, changed: dict[str, Any], status: int, word: str
) -> None:
    answer = client.post(INFER, json=asked(**changed))
    assert answer.status_code == status and word in answer.json()["error"], answer.text


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"inputs": 3}', b'{"inputs":[3]}', b'{"inputs":[],"id":7}'])
def test_what_is_no_request_is_refused(client: TestClient, body: bytes) -> None:
    assert client.post(INFER, content=body).status_code in (400, 422)


@pytest.mark.parametrize(("length", "extra"), [("9999999", b""), ("-1", b""), ("x", b""), (None, b"1234")])
def test_lengths_that_do_not_hold_are_refused(client: TestClient, length: str | None, extra: bytes) -> None:
    body = json.dumps(asked()).encode()
    told = str(len(body)) if length is None else length
    answer = client.post(INFER, content=body + extra, headers={"inference-header-content-length": told})
    assert answer.status_code == 400, answer.text


def test_bytes_that_are_no_numbers_are_refused(client: TestClient) -> None:
    said = asked(rsrp_db={"parameters": {"binary_data_size": 12}})
    del said["inputs"][1]["data"]
    body = json.dumps(said).encode()
    headers = {"inference-header-content-length": str(len(body))}
    good = client.post(INFER, content=body + np.zeros(3, np.float32).tobytes(), headers=headers)
    bad = client.post(INFER, content=body + np.full(3, np.nan, np.float32).tobytes(), headers=headers)
    assert good.status_code == 200 and bad.status_code == 422 and "NaN" in bad.json()["error"]


def test_other_models_versions_paths_and_methods_are_refused(client: TestClient) -> None:
    for path in ("/v2/models/nothing", "/v2/models/cellfree-80/versions/0", "/v2/models", "/v2/what"):
        assert client.get(path).status_code == 404
    assert client.post("/v2/models/nothing/infer", json=asked()).status_code in (404, 405)
    assert client.get(INFER).status_code == 405 and client.post("/v2", json={}).status_code == 405
