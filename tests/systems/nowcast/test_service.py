"""Forecasts over HTTP: the pack's own, from npz and JSON, with and without a word on missing pixels."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient

from fewer import zoo
from fewer.packs.file.tensors import Array
from fewer.packs.pack import load
from fewer.serve.app import Application
from fewer.serve.bodies import write_npz
from fewer.serve.models import open_models
from fewer.systems.nowcast.showcase import SHIPPED, Drawing, Showcase
from tests.waiting import until

NPZ = {"content-type": "application/x-npz"}
SIZE = 84


@pytest.fixture(scope="module")
def rain() -> Iterator[TestClient]:
    with TestClient(Application(open_models(["nowcast-80", "nowcast-90"]))) as found:
        yield found


@pytest.fixture(scope="module")
def images() -> Array:
    return np.random.default_rng(0).normal(size=(4, 11, SIZE, SIZE)).astype(np.float32)


@pytest.fixture(scope="module")
def expected(images: Array) -> Array:
    pack = load(zoo.path("nowcast-80"))
    given = {"satellite": images[None], "missing": np.zeros((1, 4, SIZE, SIZE), np.float32)}
    names = [item.name for item in next(iter(pack.networks.values())).inputs]
    return np.asarray(pack.predict(**{name: given[name] for name in names}))[0]


def test_an_hour_of_images_gets_eight_hours_of_probabilities(rain: TestClient, images: Array, expected: Array) -> None:
    answer = rain.post("/v1/nowcast/predict?model=nowcast-80", content=write_npz({"satellite": images}), headers=NPZ)
    assert answer.status_code == 200, answer.text
    output = np.load(io.BytesIO(answer.content), allow_pickle=False)["output"]
    assert output.shape == (32, SIZE, SIZE) and output.min() >= 0 and output.max() <= 1
    assert np.allclose(output, expected, atol=1e-5)


def test_json_says_the_same(rain: TestClient, images: Array, expected: Array) -> None:
    answer = rain.post("/v1/nowcast/predict?model=nowcast-80", json={"satellite": images.round(6).tolist()})
    assert answer.status_code == 200, answer.text[:200]
    assert np.allclose(answer.json()["output"], expected, atol=1e-4)


@pytest.mark.parametrize(
    "wrong",
    [{"satellite": np.zeros((3, 11, SIZE, SIZE), np.float32)}, {"clouds": np.zeros((4, 11, SIZE, SIZE), np.float32)},
     {"satellite": np.full((4, 11, SIZE, SIZE), np.nan, np.float32)}],
)  # fmt: skip
def test_what_is_no_hour_of_images_is_refused_with_a_reason(rain: TestClient, wrong: dict[str, Array]) -> None:
    answer = rain.post("/v1/nowcast/predict", content=write_npz(wrong), headers=NPZ)
    assert answer.status_code == 422 and answer.json()["detail"]


def test_the_page_gets_weather_with_its_truth_and_every_models_forecast(rain: TestClient) -> None:
    found = rain.post("/v1/nowcast/forecast", json={"window": 1}).json()
    assert (found["size"], found["leads"]) == (SIZE, 32) and set(found["models"]) == {"nowcast-80", "nowcast-90"}
    fell = np.frombuffer(base64.b64decode(found["fell"]), np.uint8).reshape(32, SIZE, SIZE)
    shares = [np.frombuffer(base64.b64decode(text), np.uint8) / 200 for text in found["models"].values()]
    assert all(share.size == fell.size and 0 < share.max() <= 1 for share in shares)
    assert not np.array_equal(*shares)  # members of an ensemble have minds of their own
    assert set(found["rivals"]) == {"persistence", "extrapolation"}


def test_weather_survives_being_written_to_a_file(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    satellite = random.normal(size=(2, 4, 11, 12, 12)).astype(np.float32)
    missing, rain = (random.random((2, n, 12, 12)) < 0.3 for n in (4, 32))
    fell = random.integers(0, 256, (2, 32, 12, 12)).astype(np.uint8)
    (tmp_path / "weather.npz").write_bytes(
        Showcase(satellite, missing.astype(np.float32), fell, {"still": rain}, opening=1).written()
    )
    again = Showcase.read(tmp_path / "weather.npz")
    step = np.ptp(satellite, axis=(0, 1, 3, 4)).max() / 63
    assert np.abs(again.satellite - satellite).max() <= 0.51 * step
    assert np.array_equal(again.missing, missing) and np.array_equal(again.fell, fell)
    assert np.array_equal(again.rivals["still"], rain) and again.opening == 1


def test_the_page_opens_with_the_window_on_which_the_zoos_networks_score_nearest_their_mean(rain: TestClient) -> None:
    said, scores = [], []
    shown = Showcase.read(SHIPPED)
    for window in range(len(shown)):
        found = rain.post("/v1/nowcast/forecast", json={"window": window}).json()
        shares = [np.frombuffer(base64.b64decode(text), np.uint8) / 200 for text in found["models"].values()]
        said.append(np.mean(shares, axis=0).reshape(32, SIZE, SIZE) >= 0.5)
        fell = np.frombuffer(base64.b64decode(found["fell"]), np.uint8).reshape(32, SIZE, SIZE)
        wet, called = (fell >= 2) & (fell < 255), said[-1] & (fell < 255)
        scores.append((wet & called).sum() / (wet | called).sum())
    nearest = int(np.argmin([abs(score - np.mean(scores)) for score in scores]))
    assert shown.opening == shown.typical(np.stack(said)) == nearest
    assert rain.post("/v1/nowcast/forecast", json={}).json()["window"] == nearest


def test_weather_of_another_size_is_drawn_while_the_page_waits() -> None:
    pytest.importorskip("torch", reason="no torch: pip install 'fewer[nowcast]'")
    drawing = Drawing(24)
    assert drawing.of == 12
    until(lambda: drawing.showcase is not None or drawing.fault is not None)
    assert drawing.fault is None and drawing.done == drawing.of
    assert drawing.showcase is not None and drawing.showcase.fell.shape == (6, 32, 24, 24)


def test_a_forecast_is_better_than_rain_everywhere(rain: TestClient) -> None:
    """Over the page's windows and their first hour; who says rain everywhere agrees on the share that is wet."""
    said, was = [], []
    for window in range(3):
        found = rain.post("/v1/nowcast/forecast", json={"window": window}).json()
        first = slice(0, 4 * SIZE * SIZE)
        fell = np.frombuffer(base64.b64decode(found["fell"]), np.uint8)[first]
        share = np.frombuffer(base64.b64decode(found["models"]["nowcast-80"]), np.uint8)[first] / 200
        said.append(share[fell < 255] >= 0.5)
        was.append(fell[fell < 255] >= 2)
    forecast, raining = np.concatenate(said), np.concatenate(was)
    agreed = (forecast & raining).sum() / (forecast | raining).sum()
    assert agreed > 1.2 * raining.mean(), f"{agreed:.3f} against {raining.mean():.3f}"
