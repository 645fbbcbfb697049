"""The page on the service: its server starts, and its requests are answered."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.docs.pages import DOCS, blocks, commands
from tests.waiting import GIVE_UP_SECONDS


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl")
def test_the_requests_of_the_page_are_answered_as_it_says() -> None:
    found = {block.word: commands(block) for block in blocks(DOCS / "service.md") if block.kind == "sh" and block.word}
    (start,) = found["serve"]
    words = [sys.executable, "-m", *start, "--json"]
    words[words.index("--port") + 1] = "0"  # a free one
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as server:
        try:
            assert server.stdout is not None
            where = json.loads(server.stdout.readline())["url"]
            answers = []
            for line in found["curl"]:
                asked = [word.replace("http://127.0.0.1:8080", where) for word in line]
                waiting = ["--fail-with-body", "--retry", "20", "--retry-connrefused", "--retry-delay", "1"]
                done = subprocess.run(
                    [*asked, *waiting], capture_output=True, text=True, check=False, timeout=GIVE_UP_SECONDS
                )
                assert done.returncode == 0, f"{line}: {done.stdout}"
                answers.append(done.stdout)
        finally:
            server.terminate()
            assert server.wait(GIVE_UP_SECONDS) == 0
    assert json.loads(answers[0]) == {"status": "ok"}
    assert {model["name"] for model in json.loads(answers[1])} == {"digits-9348", "cellfree-80"}
    chosen = json.loads(answers[2])
    assert chosen["access_points"][0] == 3 and len(chosen["candidates"]) == len(chosen["probabilities"])
    assert "# TYPE" in answers[3]
    assert "/v1/cellfree/predict" in json.loads(answers[4])["paths"]
