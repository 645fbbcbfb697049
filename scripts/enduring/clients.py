"""Requests of every kind, and a client that sends one kind again and again over a connection that it keeps."""

from __future__ import annotations

import http.client
import io
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

__all__ = ["KINDS", "MODELS", "SECONDS", "Client", "Kind", "Seen"]

MODELS = ("cellfree-80", "digits-3197", "control-hopper-95", "nowcast-80")
SECONDS = 600.0  # no answer by then: it never comes, however busy the machine
JSON, NPZ = "application/json", "application/x-npz"


@dataclass(frozen=True)
class Kind:
    """A request, the status that it should get, and how long its client thinks before the next."""

    name: str
    path: str
    body: bytes | None
    content_type: str = JSON
    status: int = 200
    pause: float = 0.02
    fits: Callable[[bytes], bool] = bool  # whether this can be its answer
    model: str = MODELS[0]  # that answers it


def _npz(**arrays: object) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def _phones(count: int) -> bytes:
    return json.dumps({"master": [21] * count, "rsrp_db": [[-113.8, -131.9, None]] * count}).encode()


def _tensor(name: str, datatype: str, shape: list[int], data: list[float]) -> dict[str, object]:
    return {"name": name, "datatype": datatype, "shape": shape, "data": data}


_INFERENCE = json.dumps(
    {
        "inputs": [
            _tensor("master", "INT64", [1], [3]),
            _tensor("rsrp_db", "FP32", [1, 3], [-81.0, -84.5, 0]),
            _tensor("reported", "FP32", [1, 3], [1, 1, 0]),
        ]
    }
).encode()
_PHONE = b'{"master": 21, "rsrp_db": [-113.8, -131.9, -124.9]}'
_HOUR = _npz(satellite=np.zeros((4, 11, 84, 84), np.float32))
KINDS = (
    Kind("one phone", "/v1/cellfree/predict", _PHONE, pause=0.004, fits=lambda b: json.loads(b)["master"] == 21),
    Kind("256 phones", "/v1/cellfree/predict", _phones(256), fits=lambda b: len(json.loads(b)["phones"]) == 256),
    Kind("a digit as npz", "/v1/vision/predict", _npz(pixels=np.zeros((1, 28, 28), np.float32)), NPZ, model=MODELS[1]),
    Kind("a policy", "/v1/control/predict", json.dumps({"observation": [0.1] * 11}).encode(), model=MODELS[2]),
    Kind("the other protocol", "/v2/models/cellfree-80/infer", _INFERENCE, fits=lambda b: b"outputs" in b),
    Kind("an hour of images", "/v1/nowcast/predict", _HOUR, NPZ, pause=0.5, model=MODELS[3]),
    Kind("a page", "/", None, pause=0.1),
    Kind("what is wrong", "/v1/cellfree/predict", b'{"master": 21}', status=422),
    Kind("seldom", "/v1/cellfree/predict", _PHONE, pause=2.5),
)


@dataclass
class Seen:
    """What clients of one kind saw."""

    answered: int = 0
    seconds: list[float] = field(default_factory=list)
    unexpected: Counter[str] = field(default_factory=Counter)  # statuses and answers that should not have been
    ended: Counter[str] = field(default_factory=Counter)  # connections that ended while a request was on its way
    refused: int = 0  # that could not be opened


class Client(threading.Thread):
    """One connection at a time, until told to stop; `killed` numbers the last kill since a moment, from 1."""

    def __init__(
        self, kind: Kind, port: int, seen: Seen, until: Callable[[], bool], killed: Callable[[float], int]
    ) -> None:
        super().__init__(daemon=True)
        self._kind, self._port, self._seen, self._until, self._killed = kind, port, seen, until, killed
        self._began = self._worked = time.monotonic()  # its connection's process lived at the second
        self._excused = 0  # the last kill that ended one of ours: it can end no other
        self.lost: list[str] = []

    def run(self) -> None:
        """Again and again."""
        connection = self._fresh()
        while not self._until():
            connection = self._once(connection)
            time.sleep(self._kind.pause * random.uniform(0.5, 1.5))
        connection.close()

    def _fresh(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self._port, timeout=SECONDS)

    def _once(self, connection: http.client.HTTPConnection) -> http.client.HTTPConnection:
        kind, seen, start = self._kind, self._seen, time.monotonic()
        headers = {"content-type": kind.content_type} if kind.body is not None else {}
        try:
            if connection.sock is None:
                self._worked = start
                connection.connect()
        except OSError:
            seen.refused += 1
            connection.close()
            return self._fresh()
        try:
            connection.request("GET" if kind.body is None else "POST", kind.path, kind.body, headers)
            with connection.getresponse() as answer:
                body = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self._ended(type(error).__name__)
            connection.close()
            return self._fresh()
        seen.answered += 1
        seen.seconds.append(time.monotonic() - start)
        self._worked = start
        if answer.status != kind.status or not kind.fits(body):
            seen.unexpected[f"{answer.status}"] += 1
        return connection

    def _ended(self, error: str) -> None:
        kill = self._killed(self._worked)
        if kill > self._excused:
            self._excused = kill
            self._seen.ended[error] += 1
        else:
            self.lost.append(f"{self._kind.name}: {error} after {time.monotonic() - self._began:.1f} s")
