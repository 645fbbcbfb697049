"""Models do not wait for each other: neither for a slow batch, nor for a long request that is being read."""

from __future__ import annotations

import io
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from fewer.packs.file.tensors import Array
from fewer.serve.app import Application
from fewer.serve.models import Model, open_models
from fewer.serve.service import Service
from tests.waiting import GIVE_UP_SECONDS

SLOW = "digits-3197"
PHONE = {"master": 21, "rsrp_db": [-113.8, -131.9, -124.9]}
PHONES = {"master": [21] * 400, "rsrp_db": [[-113.8, -131.9, -124.9]] * 400}  # read in a thread


class Held:
    """What one model does stops here until it is let go."""

    def __init__(self) -> None:
        self.armed, self.reached, self._go = False, threading.Event(), threading.Event()

    def stop(self) -> None:
        if self.armed:
            self.reached.set()
            assert self._go.wait(GIVE_UP_SECONDS)

    def let_go(self) -> None:
        self._go.set()


@pytest.fixture
def held() -> Iterator[Held]:
    found = Held()
    yield found
    found.let_go()


def image() -> bytes:
    file = io.BytesIO()
    np.savez(file, pixels=np.zeros((28, 28), np.float32))
    return file.getvalue()


def others_are_answered_meanwhile(held: Held) -> None:
    """One image is on its way, and phones are selected before it is let go of."""
    with TestClient(Application(open_models(["cellfree-80", "digits-dense", SLOW]))) as client:
        held.armed = True
        with ThreadPoolExecutor(1) as thread:
            headers = {"content-type": "application/x-npz"}
            slow = thread.submit(client.post, f"/v1/vision/predict?model={SLOW}", content=image(), headers=headers)
            try:
                assert held.reached.wait(GIVE_UP_SECONDS)
                for asked in (PHONE, PHONES):
                    assert client.post("/v1/cellfree/predict", json=asked).status_code == 200
                other = client.post("/v1/vision/predict?model=digits-dense", content=image(), headers=headers)
                assert other.status_code == 200 and client.get("/healthz").status_code == 200
                assert not slow.done()
            finally:
                held.let_go()
            assert slow.result(GIVE_UP_SECONDS).status_code == 200, json.dumps(slow.result().json())


def test_a_slow_batch_of_one_model_delays_no_other(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = Model.predict

    def predict(self: Model, arrays: Any) -> Array:
        if self.name == SLOW:
            time.sleep(0.003)  # too long for the event loop, as it is timed at the start
            held.stop()
        return usual(self, arrays)

    monkeypatch.setattr(Model, "predict", predict)
    others_are_answered_meanwhile(held)


def test_a_request_that_is_long_to_read_delays_no_other_model(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = Service.read

    def read(self: Service, model: Model, body: bytes, **words: Any) -> Any:
        if model.name == SLOW:
            held.stop()
        return usual(self, model, body, **words)

    monkeypatch.setattr(Service, "read", read)
    others_are_answered_meanwhile(held)
