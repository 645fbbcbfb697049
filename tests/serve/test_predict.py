"""Predictions over HTTP are the pack's own, in JSON and npz, one and many."""

from __future__ import annotations

import io
import json
from types import SimpleNamespace

import numpy as np
import pytest
from fastapi.testclient import TestClient

from fewer import zoo
from fewer.packs.pack import load
from fewer.serve.app import Application
from fewer.serve.bodies import write_npz
from fewer.serve.service import Service

PHONE = {"master": 21, "rsrp_db": [-113.8, -131.9, -124.9]}
NPZ = {"content-type": "application/x-npz"}


def select(client: TestClient, fields: object, **options: object) -> dict[str, object]:
    answer = client.post("/v1/cellfree/predict", json=fields, **options)  # type: ignore[arg-type]
    assert answer.status_code == 200, answer.text
    return answer.json()  # type: ignore[no-any-return]


def packed(rsrp: list[float], reported: list[float], master: int = 21) -> np.ndarray:  # type: ignore[type-arg]
    return load(zoo.path("cellfree-80")).predict([master], [rsrp], [reported])[0]  # type: ignore[no-any-return]


def test_a_single_phone_gets_the_packs_probabilities(client: TestClient) -> None:
    found = select(client, PHONE)
    assert np.allclose(found["probabilities"], packed(PHONE["rsrp_db"], [1, 1, 1]), atol=1e-6)  # type: ignore[arg-type]


def test_null_is_a_report_that_did_not_arrive(client: TestClient) -> None:
    found = select(client, {"master": 21, "rsrp_db": [-113.8, None, -124.9]})
    assert np.allclose(found["probabilities"], packed([-113.8, 0, -124.9], [1, 0, 1]), atol=1e-6)


def test_the_master_and_the_probable_are_chosen_and_no_others(client: TestClient) -> None:
    found = select(client, PHONE)
    pairs = list(zip(found["candidates"], found["probabilities"]))  # type: ignore[call-overload]
    assert found["access_points"] == [c for c, p in pairs if c == 21 or p >= 0.5]


def test_a_batch_answers_as_its_phones_do_alone(client: TestClient) -> None:
    phones = [PHONE, {"master": 3, "rsrp_db": [-80, -90.5, None]}, {"master": 99, "rsrp_db": [-70, None, None]}]
    together = select(client, {name: [phone[name] for phone in phones] for name in ("master", "rsrp_db")})
    for whole, phone in zip(together["phones"], phones):  # type: ignore[call-overload]
        alone = select(client, phone)
        assert whole["access_points"] == alone["access_points"] and whole["candidates"] == alone["candidates"]
        assert np.allclose(whole["probabilities"], alone["probabilities"], atol=2e-6)


def test_npz_in_npz_out_and_json_where_it_is_asked_for(client: TestClient) -> None:
    body = write_npz({"master": np.array([21, 3]), "rsrp_db": np.array([[-113.8, -131.9, -124.9], [-80, np.nan, -90]])})
    answer = client.post("/v1/cellfree/predict", content=body, headers=NPZ)
    output = np.load(io.BytesIO(answer.content), allow_pickle=False)["output"]
    assert answer.headers["content-type"] == "application/x-npz"
    assert np.allclose(output[0], packed([-113.8, -131.9, -124.9], [1, 1, 1]), atol=1e-6)
    assert np.allclose(output[1], packed([-80, 0, -90], [1, 0, 1], master=3), atol=1e-6)
    worded = client.post("/v1/cellfree/predict", content=body, headers={**NPZ, "accept": "application/json"}).json()
    assert np.allclose(worded["phones"][0]["probabilities"], output[0], atol=1e-6)


def test_npz_may_also_name_the_packs_own_inputs(client: TestClient) -> None:
    arrays = {"master": np.int64(21), "rsrp_db": np.float32([-113.8, 0, -124.9]), "reported": np.float32([1, 0, 1])}
    answer = client.post("/v1/cellfree/predict", content=write_npz(arrays), headers=NPZ)
    output = np.load(io.BytesIO(answer.content), allow_pickle=False)["output"]
    assert output.shape == (11,) and np.allclose(output, packed([-113.8, 0, -124.9], [1, 0, 1]), atol=1e-6)


@pytest.mark.parametrize("model", ["digits-dense", "digits-3197"])
def test_images_get_the_chosen_models_probabilities(client: TestClient, model: str) -> None:
    images = np.random.default_rng(0).random((3, 28, 28), dtype=np.float32)
    shares = np.exp(load(zoo.path(model)).predict(images[:, None]))
    many = client.post(f"/v1/vision/predict?model={model}", json={"pixels": images.tolist()}).json()
    one = client.post(f"/v1/vision/predict?model={model}", json={"pixels": images[1].tolist()}).json()
    arrays = client.post(f"/v1/vision/predict?model={model}", content=write_npz({"pixels": images}), headers=NPZ)
    assert np.allclose(many["probabilities"], shares, atol=1e-5) and many["label"] == shares.argmax(1).tolist()
    assert np.allclose(one["probabilities"], shares[1], atol=1e-5) and one["label"] == shares[1].argmax()
    assert np.allclose(np.load(io.BytesIO(arrays.content))["output"], np.log(shares), atol=1e-4)


def test_a_place_on_the_map_reports_what_the_simulator_says(client: TestClient, application: Application) -> None:
    found = client.post("/v1/cellfree/place", json={"x_m": 300, "y_m": 400}).json()
    world = application.services["cellfree"].worlds["cellfree-80"]  # type: ignore[attr-defined]
    gain = world.deployment.gain_db(np.array([[300.0, 400.0]]))[0]
    assert found["master"] == gain.argmax()
    assert set(found["ideal"]) == set(np.flatnonzero(gain.max() - gain < world.settings.threshold_db).tolist())
    assert np.allclose(found["rsrp_db"], gain[found["measured"]], atol=0.06)
    answer = select(client, {"master": found["master"], "rsrp_db": found["rsrp_db"]})
    assert np.allclose(answer["probabilities"], found["probabilities"], atol=0.02)  # reports are rounded to 0.1 dB


def test_the_map_shows_every_access_point(client: TestClient) -> None:
    found = client.get("/v1/cellfree/map").json()
    assert len(found["access_points"]) == 100 and found["measured"] == 3
    assert np.array(found["strength_db"]).shape == (96, 96)


def test_models_are_listed_with_what_they_keep(client: TestClient) -> None:
    listed = {model["name"]: model for model in client.get("/v1/models").json()}
    assert list(listed) == ["cellfree-80", "digits-dense", "digits-3197"]
    assert listed["digits-3197"]["kept"] == 3197 + 602 and listed["digits-dense"]["kept"] == 21446


def test_more_samples_than_the_queue_holds_are_answered_in_parts(client: TestClient) -> None:
    count = 5000
    body = write_npz({"master": np.full(count, 21), "rsrp_db": np.tile(np.array([-113.8, -131.9, -124.9]), (count, 1))})
    answer = client.post("/v1/cellfree/predict", content=body, headers=NPZ)
    output = np.load(io.BytesIO(answer.content), allow_pickle=False)["output"]
    assert output.shape == (count, 11) and np.allclose(output, output[0], atol=1e-6)


def test_one_row_is_answered_as_the_long_way_does() -> None:
    """A task that reads rows fast but does not write them itself."""

    class Plain:
        inputs = (SimpleNamespace(name="x", dtype=np.dtype("float32"), shape=(None, 2)),)

    service = Service.__new__(Service)
    said = json.loads(service.row_answer(Plain(), [[1.0, 2.0]], [0.25, 0.75]))  # type: ignore[arg-type]
    answer = service.answer(Plain(), [], np.array([[0.25, 0.75]]), single=True)  # type: ignore[arg-type]
    assert said == {"output": [0.25, 0.75]} and answer["output"].tolist() == said["output"]
