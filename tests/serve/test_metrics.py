"""Counters in Prometheus' format: they parse, they add up, workers share them."""

from __future__ import annotations

import os
import re

from fastapi.testclient import TestClient

from fewer.serve.metrics import SECONDS, Metrics

LINE = re.compile(r'^([a-z_]+)(?:\{([a-z]+="[^"]*"(?:,[a-z]+="[^"]*")*)\})? (\S+)$')


def parsed(text: str) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], float] = {}
    kinds = {}
    for line in text.splitlines():
        if line.startswith("# TYPE"):
            _, _, name, kinds[name] = line.split()
        elif not line.startswith("#"):
            match = LINE.match(line)
            assert match, line
            found[(match[1], match[2] or "")] = float(match[3])
    assert set(kinds.values()) == {"counter", "gauge", "histogram"}
    for name, _ in found:
        assert name in kinds or re.sub("_(bucket|sum|count)$", "", name) in kinds, name
    return found


def test_the_format_parses_and_histograms_only_grow() -> None:
    metrics = Metrics(["vision"], ["a", "b"])
    for seconds in (0.0001, 0.0024, 0.3, 60.0):
        metrics.request("vision", 200, seconds)
    metrics.request("vision", 503, 0.001)
    found = parsed(metrics.text())
    buckets = [found[("fewer_request_seconds_bucket", f'task="vision",le="{edge}"')] for edge in (*SECONDS, "+Inf")]
    assert buckets == sorted(buckets) and buckets[0] == 2 and buckets[1] == 3 and buckets[-1] == 5
    assert found[("fewer_request_seconds_count", 'task="vision"')] == 5
    assert abs(found[("fewer_request_seconds_sum", 'task="vision"')] - 60.3035) < 1e-6
    assert found[("fewer_requests_total", 'task="vision",status="503"')] == 1
    assert found[("process_resident_memory_bytes", "")] > 1e6


def test_workers_count_into_one_sum() -> None:
    metrics = Metrics(["vision"], ["a"], workers=3)
    for worker in (1, 2):
        child = os.fork()
        if child == 0:
            metrics.be(worker)
            for _ in range(worker):
                metrics.request("vision", 200, 0.001)
            tally = metrics.tally("a")
            tally[0], tally[1], tally[2] = worker, 10 * worker, 5
            os._exit(0)
        os.waitpid(child, 0)
    metrics.request("vision", 200, 0.001)
    found = parsed(metrics.text())
    assert found[("fewer_requests_total", 'task="vision",status="200"')] == 4
    assert found[("fewer_samples_total", 'model="a"')] == 30
    assert found[("fewer_waiting_samples", 'model="a"')] == 10


def test_a_worker_that_is_started_anew_goes_on_counting_but_nothing_waits_for_it() -> None:
    metrics = Metrics(["vision"], ["a"], workers=2)
    for worker in (0, 1, 1):
        metrics.be(worker)
        metrics.request("vision", 200, 0.001)
        tally = metrics.tally("a")
        tally[1] += 10
        tally[2] = 5
    found = parsed(metrics.text())
    assert found[("fewer_requests_total", 'task="vision",status="200"')] == 3
    assert found[("fewer_samples_total", 'model="a"')] == 30
    assert found[("fewer_waiting_samples", 'model="a"')] == 10


def test_requests_are_counted_by_task_and_status(client: TestClient) -> None:
    def count(status: int) -> float:
        key = f'task="cellfree",status="{status}"'
        return parsed(client.get("/metrics").text).get(("fewer_requests_total", key), 0.0)

    good, bad = count(200), count(422)
    client.post("/v1/cellfree/predict", json={"master": 3, "rsrp_db": [-80, -90, -100]})
    client.post("/v1/cellfree/predict", json={"master": 3, "rsrp_db": [-80]})
    assert count(200) == good + 1 and count(422) == bad + 1
