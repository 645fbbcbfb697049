"""Requests through `fewer serve`: processor time of each, by rate, and whole batches in every kind of body."""

from __future__ import annotations

import http.client
import io
import json
import time
from typing import Any

import numpy as np

from fewer.bench.load import load, serving
from fewer.systems.cellfree.bench.serve import PATH, PHONE
from scaling.machine import machine
from scaling.queueing import arrivals, fitted, queued

__all__ = ["measured"]

RATES = (500.0, 1000.0, 1500.0, 2000.0, 3000.0)
FITTED = (500.0, 2000.0)  # with as fast as it goes; the others are predicted
SECONDS, TIMES = 1.5, 5  # of each measurement, and how often, one after the other; medians are told
PHONES, BATCHES = 256, 60


def measured() -> dict[str, Any]:
    """Single phones by rate with the queue's prediction beside, as fast as they go by workers, and batches."""
    with serving(["cellfree-80"]) as server, serving(["cellfree-80"], "--workers", "2") as two:
        for each in (server, two):
            _single(each, 500.0)
        turns = [([_single(server, rate) for rate in (*RATES, None)], _single(two, None)) for _ in range(TIMES)]
        bulk = {name: _bulk(server, *body) for name, body in _bodies().items()}
    *by_rate, most = [_middle([turn[0][place] for turn in turns]) for place in range(len(RATES) + 1)]
    return {
        "machine": machine(),
        "seconds": SECONDS,
        "times": TIMES,
        "by_rate": by_rate,
        "batches": bulk,
        "most": {"1": most, "2": _middle([turn[1] for turn in turns])},
        **_predicted(by_rate, most),
    }


def _middle(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The median of each figure."""
    return {name: rows[0][name] and round(float(np.median([row[name] for row in rows])), 3) for name in rows[0]}


def _single(server: serving, rate: float | None) -> dict[str, Any]:
    before = _stand(server)
    seen = load(server.port, PATH, PHONE, rate=rate, seconds=SECONDS, connections=64)
    spent, rounds, samples = (b - a for a, b in zip(before, _stand(server)))
    return {
        "asked": rate,
        "answered": round(seen.rate, 1),
        "processor_us": round(1e6 * spent / samples, 2),
        "together": round(samples / rounds, 3),
        "median_ms": round(1e3 * seen.percentile(50), 3),
        "p99_ms": round(1e3 * seen.percentile(99), 3),
    }


def _stand(server: serving) -> tuple[float, float, float]:
    model = '{model="cellfree-80"}'
    told = [server.metric(f"fewer_batch_samples_{word}{model}") for word in ("count", "sum")]
    return server.processor_seconds(), told[0], told[1]


def _bodies() -> dict[str, tuple[str, bytes, dict[str, str]]]:
    """The same phones in every kind of body, with a path and headers."""
    master, rsrp = [21] * PHONES, [PHONE["rsrp_db"]] * PHONES
    words = json.dumps({"master": master, "rsrp_db": rsrp}).encode()
    file = io.BytesIO()
    np.savez(file, master=np.array(master), rsrp_db=np.float32(rsrp))
    arrays = {"master": np.array(master), "rsrp_db": np.float32(rsrp), "reported": np.ones((PHONES, 3), np.float32)}
    kinds = {"master": "INT64", "rsrp_db": "FP32", "reported": "FP32"}
    head = json.dumps(
        {
            "inputs": [
                {"name": n, "datatype": kinds[n], "shape": list(a.shape), "parameters": {"binary_data_size": a.nbytes}}
                for n, a in arrays.items()
            ],
            "parameters": {"binary_data_output": True},
        }
    ).encode()
    tensors = head + b"".join(array.tobytes() for array in arrays.values())
    infer = "/v2/models/cellfree-80/infer"
    return {
        "JSON": (PATH, words, {"content-type": "application/json"}),
        "npz": (PATH, file.getvalue(), {"content-type": "application/x-npz"}),
        "binary tensors": (infer, tensors, {"inference-header-content-length": str(len(head))}),
    }


def _bulk(server: serving, path: str, body: bytes, headers: dict[str, str]) -> dict[str, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
    sizes = []
    for number in range(BATCHES + 5):
        if number == 5:  # the first are to warm up
            spent, start = server.processor_seconds(), time.perf_counter()
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        sizes.append(len(answer.read()))
        assert answer.status == 200, answer.status
    seconds, spent = time.perf_counter() - start, server.processor_seconds() - spent
    connection.close()
    return {
        "phones": PHONES,
        "a_second": round(BATCHES / seconds, 1),
        "processor_ms": round(1e3 * spent / BATCHES, 3),
        "bytes_in": len(body),
        "bytes_out": sizes[-1],
    }


def _predicted(by_rate: list[dict[str, Any]], most: dict[str, Any]) -> dict[str, Any]:
    """Costs from some rates, and what the queue makes of them at all."""
    known = [*(row for row in by_rate if row["asked"] in FITTED), most]
    costs = fitted([(1e-6 * row["processor_us"], row["together"]) for row in known])
    model = []
    for row in by_rate:
        said = queued(arrivals(row["asked"], SECONDS), costs)
        model.append(
            {
                "asked": row["asked"],
                "fitted": row["asked"] in FITTED,
                "processor_us": round(1e6 * costs.of(said.together), 2),
                "together": round(said.together, 3),
                "median_ms": round(1e3 * said.median, 3),
                "p99_ms": round(1e3 * said.slowest, 3),
                "busy": round(said.busy, 4),
            }
        )
    return {"costs_us": {"request": 1e6 * costs.request, "round": 1e6 * costs.round}, "model": model}
