"""A request costs what it holds, not what it claims; long ones hold up nobody; and every one has an end."""

from __future__ import annotations

import asyncio
import gc
import io
import json
import threading
import time
import tracemalloc
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from fewer.serve.app import Application
from fewer.serve.bodies import write_npz
from fewer.serve.fields import Deadline
from fewer.serve.limits import Limits, Refusal
from fewer.serve.models import Model, open_models
from fewer.serve.service import Service, services_of

NPZ = {"content-type": "application/x-npz"}
JSON = {"content-type": "application/json"}
NAMES = ["cellfree-80", "control-hopper", "digits-3197", "nowcast-80"]
PHONE = [-80.0, -90.0, -100.0]


@pytest.fixture(scope="module")
def services() -> dict[str, Service]:
    """Of every task, and one of a user's own."""
    models = open_models(NAMES)
    return {**services_of(models), "own": Service("own", [models[-1]])}


def refused(service: Service, body: bytes, packed: bool) -> tuple[Refusal, int]:
    """What is said, and the bytes that were taken at most before it was."""
    deadline = Deadline.after(60.0)
    tracemalloc.start()
    try:
        with pytest.raises(Refusal) as caught:
            service.read(service.model(None), body, packed=packed, limits=Limits(), deadline=deadline)
        return caught.value, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def claiming(name: str, shape: tuple[int, ...]) -> bytes:
    file = io.BytesIO()
    np.savez(file, **{name: np.zeros(shape, "f4")})
    return file.getvalue()


@pytest.mark.parametrize("task", ["cellfree", "control", "vision", "nowcast", "own"])
@pytest.mark.parametrize("shape", [(1, 1, 0, 6000, 6000), (0, 100_000_000), (100_000_000, 0), (0,) * 32])
def test_a_shape_that_is_only_claimed_takes_no_memory(
    services: dict[str, Service], task: str, shape: tuple[int, ...]
) -> None:
    service = services[task]
    fields = service.fields(service.model(None))
    arrays = {field.name: np.zeros(shape, "f4") for field in fields if not field.optional}
    refusal, peak = refused(service, write_npz(arrays), packed=True)
    assert refusal.status == 422 and "shape" in refusal.reason and peak < 1 << 20


def test_the_bytes_that_took_two_gigabytes_take_none(services: dict[str, Service]) -> None:
    refusal, peak = refused(services["nowcast"], claiming("satellite", (1, 1, 0, 6000, 6000)), packed=True)
    assert refusal.status == 422 and peak < 1 << 20


@pytest.mark.parametrize("task", ["control", "vision", "nowcast", "own"])
def test_lists_whose_first_items_promise_much_are_refused_at_the_first_that_does_not_fit(
    services: dict[str, Service], task: str
) -> None:
    zeros = ",0" * 15_999
    name = services[task].fields(services[task].model(None))[0].name
    body = f'{{"{name}": [[[[0{zeros}]{zeros}]]]}}'.encode()
    refusal, peak = refused(services[task], body, packed=False)
    assert refusal.status == 422 and "shape" in refusal.reason and peak < 1 << 20


def test_empty_lists_take_no_memory(services: dict[str, Service]) -> None:
    refusal, peak = refused(services["vision"], b'{"pixels": [' + b"[]," * 1_000_000 + b"[]]}", packed=False)
    assert refusal.status == 422 and peak < 1 << 20


def test_what_unfolds_beyond_the_bound_in_the_models_type_is_refused_before_it_does(
    services: dict[str, Service],
) -> None:
    file = io.BytesIO()
    images = np.broadcast_to(np.uint8(0), (8192, 28, 28))  # 6 MB of bytes, 26 MB of floats
    np.savez_compressed(file, pixels=images)
    limits, service = Limits(body_bytes=2 << 20), services["vision"]
    with pytest.raises(Refusal, match="unfold") as caught:
        service.read(service.model(None), file.getvalue(), packed=True, limits=limits, deadline=Deadline.after(60.0))
    assert caught.value.status == 413


def test_a_zip_of_many_files_is_refused_before_its_directory_is_read(services: dict[str, Service]) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for count in range(3000):
            archive.writestr(f"{count}.npy", b"")
    refusal, peak = refused(services["vision"], file.getvalue(), packed=True)
    assert refusal.status == 422 and "3000" in refusal.reason and peak < 1 << 18


@pytest.mark.parametrize("kind", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_folds_that_name_their_own_memory_are_refused(services: dict[str, Service], kind: int) -> None:
    inner, file = io.BytesIO(), io.BytesIO()
    np.save(inner, np.zeros((28, 28), "f4"))
    with zipfile.ZipFile(file, "w", kind) as archive:
        archive.writestr("pixels.npy", inner.getvalue())
    refusal, _ = refused(services["vision"], file.getvalue(), packed=True)
    assert refusal.status == 422 and "numpy.savez" in refusal.reason


@pytest.fixture(scope="module")
def phones() -> Iterator[TestClient]:
    limits = Limits(request_samples=100, batch_samples=16)
    with TestClient(Application(open_models(["cellfree-80"]), limits=limits)) as found:
        yield found


def asked(client: TestClient, count: int, packed: bool) -> Any:
    fields = {"master": [21] * count, "rsrp_db": [PHONE] * count}
    body = write_npz({name: np.array(value) for name, value in fields.items()}) if packed else json.dumps(fields)
    return client.post("/v1/cellfree/predict", content=body, headers=NPZ if packed else JSON)


@pytest.mark.parametrize("packed", [False, True], ids=["JSON", "npz"])
def test_samples_beyond_the_bound_are_refused_in_one_line(phones: TestClient, packed: bool) -> None:
    assert asked(phones, 100, packed).status_code == 200
    answer = asked(phones, 101, packed)
    assert answer.status_code == 413
    assert answer.json()["detail"] == "more than 100 samples; send them in several requests (fewer serve --samples)"


def test_350_000_phones_are_refused_before_they_are_read(services: dict[str, Service]) -> None:
    masters = b"[" + b"3," * 349_999 + b"3]"
    body = b'{"master":' + masters + b',"rsrp_db":[' + b"[-80,-9,0]," * 349_999 + b"[-80,-9,0]]}"
    refusal, peak = refused(services["cellfree"], body, packed=False)
    assert refusal.status == 413 and "8192" in refusal.reason and peak < 1 << 20


def test_what_the_pages_ask_is_short(phones: TestClient) -> None:
    body = b'{"x_m": 1, "y_m": 1' + b" " * (1 << 16) + b"}"
    assert phones.post("/v1/cellfree/place", content=body, headers=JSON).status_code == 413


def test_long_requests_are_read_and_written_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    where: dict[str, str] = {}
    read, answer = Service.read, Service.answer

    def noted_read(self: Service, *given: Any, **options: Any) -> Any:
        where["read"] = threading.current_thread().name
        return read(self, *given, **options)

    def noted_answer(self: Service, *given: Any, **options: Any) -> Any:
        where["answer"] = threading.current_thread().name
        return answer(self, *given, **options)

    monkeypatch.setattr(Service, "read", noted_read)
    monkeypatch.setattr(Service, "answer", noted_answer)
    application = Application(open_models(["cellfree-80"]))
    application.services["cellfree"].__class__ = Service  # a user's own task
    model = application.services["cellfree"].model(None)
    with TestClient(application) as client:
        for samples, beside in ((2, False), (2000, True)):
            arrays = {item.name: np.zeros((samples, *item.shape), item.dtype).tolist() for item in model.inputs}
            assert client.post("/v1/cellfree/predict", json=arrays).status_code == 200
            assert all(name.startswith("aside") == beside for name in where.values()), where
        where.clear()
        few = write_npz({name: np.array(value[:1]) for name, value in arrays.items()})  # which may be folded
        assert client.post("/v1/cellfree/predict", content=few, headers=NPZ).status_code == 200
        assert where["read"].startswith("aside")


def test_one_deadline_covers_all_parts_of_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    predict = Model.predict

    def slow(self: Model, arrays: Any) -> Any:
        time.sleep(0.02)
        return predict(self, arrays)

    monkeypatch.setattr(Model, "predict", slow)
    limits = Limits(seconds=1.0, batch_samples=1)
    with TestClient(Application(open_models(["cellfree-80"]), limits=limits)) as client:
        answer = asked(client, 100, packed=True)  # 2 s of prediction, 0.02 s at a time
    assert answer.status_code == 504 and answer.json()["detail"] == "no answer within 1 s"


@pytest.mark.parametrize("packed", [False, True], ids=["JSON", "npz"])
def test_reading_gives_up_when_nobody_waits_any_more(services: dict[str, Service], packed: bool) -> None:
    service, images = services["vision"], np.zeros((100, 28, 28), "f4")
    body = write_npz({"pixels": images}) if packed else json.dumps({"pixels": images.tolist()}).encode()
    with pytest.raises(Refusal) as caught:
        service.read(
            service.model(None), body, packed=packed, limits=Limits(), deadline=Deadline(time.monotonic() - 1, 1.0)
        )
    assert caught.value.status == 504


def test_a_refused_body_is_let_go_of_at_once_and_not_when_garbage_is_collected(application: Application) -> None:
    body = b"PK\x01\x02".join([bytes(42)] * 20_000)  # a zip's directory without end, nearly a megabyte
    scope = {"method": "POST", "query_string": b"", "headers": [(b"content-type", b"application/x-npz")]}
    statuses: list[int] = []

    async def ask(number: int) -> None:
        messages = [{"type": "http.request", "body": body + bytes([number]), "more_body": False}]

        async def receive() -> Any:
            return messages.pop()

        async def send(message: Any) -> None:
            statuses.extend([message["status"]] if "status" in message else [])

        await application.predictions.answer("vision", scope, receive, send)

    async def grown() -> int:
        await ask(0)
        before = tracemalloc.get_traced_memory()[0]
        for number in range(1, 9):
            await ask(number)
        return tracemalloc.get_traced_memory()[0] - before

    gc.disable()
    tracemalloc.start()
    try:
        assert asyncio.run(grown()) < 2 * len(body) and statuses == [422] * 9
    finally:
        tracemalloc.stop()
        gc.enable()
