"""A server in a process of its own: load, overload, memory, an orderly end, no torch."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fewer.bench.load import Load, load, serving
from fewer.cli import main
from fewer.systems.cellfree.bench import serve as phones
from tests.serve.sockets import PATIENT
from tests.waiting import GIVE_UP_SECONDS, until

PHONE = b'{"master": 21, "rsrp_db": [-113.8, -131.9, -124.9]}'


def asked_for(server: serving, **options: Any) -> Load:
    """Phones, as fast as they are answered."""
    return load(server.port, phones.PATH, phones.PHONE, rate=None, **options)


def post(url: str, body: bytes, **headers: str) -> tuple[int, bytes]:
    request = urllib.request.Request(url, body, {"content-type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request, timeout=GIVE_UP_SECONDS) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def figure(server: serving, pattern: str) -> float:
    with urllib.request.urlopen(f"{server.url}/metrics", timeout=GIVE_UP_SECONDS) as answer:
        found = re.search(rf"^{pattern} (\S+)$", answer.read().decode(), re.MULTILINE)
    assert found, pattern
    return float(found[1])


def test_single_selections_are_answered_together_and_memory_stays_flat(server: serving) -> None:
    asked_for(server, seconds=1.0)
    before, batches = (
        figure(server, "process_resident_memory_bytes"),
        figure(server, r'fewer_batch_samples_count\{model="cellfree-80"\}'),
    )
    answers: Counter[int] = Counter()

    def enough() -> bool:
        answers.update(asked_for(server, seconds=1.0).statuses)
        return answers[200] > 1000

    until(enough)
    grown, answered = figure(server, "process_resident_memory_bytes") - before, answers[200]
    assert set(answers) == {200}
    assert figure(server, r'fewer_batch_samples_count\{model="cellfree-80"\}') - batches < answered / 2
    assert grown < 4e6, f"{grown:.0f} bytes after {answered} requests"


def test_a_packed_model_is_served_without_torch(server: serving) -> None:
    maps = Path(f"/proc/{server.process.pid}/maps")
    if not maps.exists():
        pytest.skip("this system does not say what a process has loaded")
    loaded = maps.read_text()
    assert "numpy" in loaded and "torch" not in loaded


def test_overload_gives_503_and_the_server_lives() -> None:
    with serving(["cellfree-80"], "--queue", "4", *PATIENT) as server:
        statuses: set[int] = set()

        def asked() -> bool:
            statuses.update(asked_for(server, seconds=0.5, connections=48).statuses)
            return not {200, 503} - statuses

        until(asked)
        assert statuses == {200, 503}
        assert post(f"{server.url}/v1/cellfree/predict", PHONE)[0] == 200


def test_a_server_told_to_stop_answers_what_it_accepted() -> None:
    with serving(["digits-dense"], *PATIENT) as server:
        body = json.dumps({"pixels": [[[0.5] * 28] * 28] * 900}).encode()
        answers: list[tuple[int, bytes]] = []
        senders = [
            threading.Thread(target=lambda: answers.append(post(f"{server.url}/v1/vision/predict", body)))
            for _ in range(3)
        ]
        for sender in senders:
            sender.start()

        def all_accepted() -> bool:
            answered = len(answers)  # before those that wait, so that nobody is counted twice
            return answered + figure(server, r'fewer_waiting_samples\{model="digits-dense"\}') / 900 >= len(senders)

        until(all_accepted)
        server.process.terminate()
        for sender in senders:
            sender.join(GIVE_UP_SECONDS)
        assert server.process.wait(GIVE_UP_SECONDS) == 0
    assert [status for status, _ in answers] == [200] * 3
    assert all(len(json.loads(answer)["label"]) == 900 for _, answer in answers)


def test_a_body_that_never_comes_is_given_up_on() -> None:
    with (
        serving(["digits-dense"], "--seconds", "0.5") as server,
        socket.create_connection(("127.0.0.1", server.port)) as slow,
    ):
        head = b"POST /v1/vision/predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        slow.sendall(head + b"content-length: 100\r\n\r\n{")
        slow.settimeout(GIVE_UP_SECONDS)
        assert slow.recv(4096).startswith(b"HTTP/1.1 408")


def test_several_workers_share_the_work_and_the_counters() -> None:
    with serving(["cellfree-80"], "--workers", "2", "--token", "secret") as server:
        allowed = {"authorization": "Bearer secret"}
        for _ in range(10):
            assert post(f"{server.url}/v1/cellfree/predict", PHONE, **allowed)[0] == 200
        assert post(f"{server.url}/v1/cellfree/predict", PHONE)[0] == 401
        request = urllib.request.Request(f"{server.url}/metrics", headers=allowed)
        for _ in range(8):  # whichever worker is asked
            with urllib.request.urlopen(request, timeout=GIVE_UP_SECONDS) as answer:
                told = answer.read().decode()
            assert 'fewer_requests_total{task="cellfree",status="200"} 10' in told
            assert 'fewer_batch_samples_sum{model="cellfree-80"} 10' in told
        server.process.terminate()
        assert server.process.wait(GIVE_UP_SECONDS) == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_a_server_that_is_told_to_stop_while_it_starts_stops(workers: int) -> None:
    code = f"""
import os, signal, uvicorn
from fewer.serve import start
from fewer.serve.app import Application
from fewer.serve.models import open_models

run = uvicorn.Server.run

def told_before(self, **options):
    os.kill(os.getppid(), signal.SIGTERM)
    run(self, **options)

uvicorn.Server.run = told_before
application = Application(open_models(["cellfree-80"]), workers={workers})
start.serve(application, start.bind("127.0.0.1", 0), workers={workers})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=GIVE_UP_SECONDS)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--host", "0.0.0.0"], "token"),
        (["--workers", "0"], "at least 1"),
        (["--queue", "0"], "more than 0"),
        (["--connections", "0"], "more than 0"),
        (["--idle-seconds", "nan"], "more than 0"),
        (["digits-9438"], "did you mean"),
        (["--port", "99999"], "--port"),
        ([__file__], "pack"),
    ],
)
def test_a_mistake_at_the_start_is_one_line(
    words: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    model = [] if words[0] in ("digits-9438", __file__) else ["digits-3197"]
    assert main(["serve", *model, *words]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and expected in said, said


def test_a_missing_extra_is_one_line_with_its_cure() -> None:
    code = "import sys; sys.modules['fastapi'] = None; from fewer.cli import main; sys.exit(main(['serve']))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=GIVE_UP_SECONDS, check=False
    )
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "pip install 'fewer[serve]'" in done.stderr


def test_a_run_folder_is_served_with_its_networks_answers(tmp_path: Path) -> None:
    import torch

    from fewer.run.load import load as load_run
    from fewer.serve.models import open_models

    words = ["train", "vision", "--set", "network=cnn0", "--set", "classes=3,7", "--steps", "3", "--batch", "8"]
    assert main([*words, "--out", str(tmp_path / "run"), "--json"]) == 0
    model, again = open_models([str(tmp_path / "run"), "digits-3197"])
    images = torch.rand(3, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = torch.log_softmax(load_run(tmp_path / "run").modules["net"](images), dim=-1)
    assert (model.name, model.task, again.name) == ("run", "vision", "digits-3197")
    assert model.predict([images.numpy()]) == pytest.approx(expected.numpy(), abs=1e-5)


def test_equal_names_get_a_number() -> None:
    from fewer.serve.models import open_models

    assert [model.name for model in open_models(["digits-3197", "digits-3197"])] == ["digits-3197", "digits-3197-2"]
