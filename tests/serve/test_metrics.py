"""Counters in Prometheus' format: they parse, they add up, workers share them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import pytest
from fastapi.testclient import TestClient

from fewer.serve.observe.exposition import exposition
from fewer.serve.observe.history import History
from fewer.serve.observe.metrics import SECONDS, Metrics, cells

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
    found = parsed(exposition(metrics))
    name = "fewer_request_duration_seconds"
    buckets = [found[(f"{name}_bucket", f'task="vision",le="{edge}"')] for edge in cells(SECONDS)[:-1]]
    assert buckets == sorted(buckets) and buckets[:3] == [1, 2, 3] and buckets[-2:] == [4, 5]
    assert found[(f"{name}_count", 'task="vision"')] == 5
    assert abs(found[(f"{name}_sum", 'task="vision"')] - 60.3035) < 1e-6
    assert found[("fewer_requests_total", 'task="vision",status="503"')] == 1
    assert found[("process_resident_memory_bytes", "")] > 1e6 and found[("process_cpu_seconds_total", "")] > 0


def test_waits_and_batches_are_told_by_model() -> None:
    metrics = Metrics([], ["a", "b"])
    metrics.model("a").batch(3, [0.004, 0.0])
    metrics.model("a").batch(300, [0.03])
    found = parsed(exposition(metrics))
    waits = [found[("fewer_queue_duration_seconds_bucket", f'model="a",le="{edge}"')] for edge in ("0.0025", "0.005")]
    assert waits == [1, 2] and found[("fewer_queue_duration_seconds_count", 'model="a"')] == 3
    assert found[("fewer_batch_samples_bucket", 'model="a",le="4"')] == 1
    assert found[("fewer_batch_samples_sum", 'model="a"')] == 303
    assert found[("fewer_batch_samples_count", 'model="b"')] == 0


@pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool: apt install prometheus")
def test_promtool_finds_nothing_to_say(client: TestClient) -> None:
    text = client.get("/metrics").text
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_what_labels_cannot_hold_is_written_so_that_they_can() -> None:
    metrics = Metrics([], ['a"b\\c\n'])
    assert 'fewer_waiting_samples{model="a\\"b\\\\c\\n"} 0' in exposition(metrics)


def one_batch(metrics: Metrics, worker: int) -> None:
    metrics.be(worker)
    metrics.request("vision", 200, 0.001)
    own = metrics.model("a")
    own.batch(10, [0.0])
    own.waiting(5)


def test_workers_count_into_one_sum() -> None:
    metrics = Metrics(["vision"], ["a"], workers=3)
    for worker in (1, 2):
        child = os.fork()
        if child == 0:
            one_batch(metrics, worker)
            os._exit(0)
        os.waitpid(child, 0)
    metrics.request("vision", 200, 0.001)
    found = parsed(exposition(metrics))
    assert found[("fewer_requests_total", 'task="vision",status="200"')] == 3
    assert found[("fewer_batch_samples_sum", 'model="a"')] == 20
    assert found[("fewer_waiting_samples", 'model="a"')] == 10


def test_a_worker_that_is_started_anew_goes_on_counting_but_nothing_waits_for_it() -> None:
    metrics = Metrics(["vision"], ["a"], workers=2)
    for worker in (0, 1, 1):
        one_batch(metrics, worker)
    found = parsed(exposition(metrics))
    assert found[("fewer_requests_total", 'task="vision",status="200"')] == 3
    assert found[("fewer_batch_samples_sum", 'model="a"')] == 30
    assert found[("fewer_waiting_samples", 'model="a"')] == 10


def test_workers_that_take_over_go_on_where_the_old_ones_stand() -> None:
    first = Metrics(["vision"], ["a"])
    history, newest = History(first), first
    for reload in range(6):
        one_batch(newest, 0)
        newest = Metrics(["vision"], ["a"])
        history.follow(newest)
        history.started()
        history.renewed(good=True)
        if reload == 4:
            history.renewed(good=False)
    first.request("vision", 200, 0.001)  # too late: nobody looks at the oldest any more
    found = parsed(exposition(newest))
    assert found[("fewer_requests_total", 'task="vision",status="200"')] == 6
    assert found[("fewer_worker_starts_total", "")] == 6
    assert found[("fewer_reloads_total", 'result="good"')] == 6
    assert found[("fewer_reloads_total", 'result="failed"')] == 1
    assert found[("fewer_waiting_samples", 'model="a"')] == 0
    assert newest.started == first.started


def test_requests_are_counted_by_task_and_status(client: TestClient) -> None:
    def count(status: int) -> float:
        key = f'task="cellfree",status="{status}"'
        return parsed(client.get("/metrics").text).get(("fewer_requests_total", key), 0.0)

    good, bad = count(200), count(422)
    client.post("/v1/cellfree/predict", json={"master": 3, "rsrp_db": [-80, -90, -100]})
    client.post("/v1/cellfree/predict", json={"master": 3, "rsrp_db": [-80]})
    assert count(200) == good + 1 and count(422) == bad + 1
