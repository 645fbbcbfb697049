"""A package with an entry point is a first-class system: in lists, training, reports and the service."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import fewer
from tests.docs.pages import DOCS, ROOT, blocks, commands

EXAMPLE = ROOT / "examples" / "fewer-traffic"
PAGE = DOCS / "system.md"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the example installed in it, as pip does it."""
    folder = tmp_path_factory.mktemp("installed")
    shutil.copytree(EXAMPLE, folder / "source")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--target", str(folder / "site"), str(folder / "source")], check=True)
    yield folder


def run(place: Path, *words: str) -> str:
    paths = os.pathsep.join([str(place / "site"), *sys.path])
    command = [sys.executable, "-m", "fewer", *words]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": paths}, cwd=place, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


SERVED = """
import warnings
warnings.simplefilter("ignore")
from fastapi.testclient import TestClient
from fewer.serve.app import Application
from fewer.serve.models import open_models
with TestClient(Application(open_models(["runs/traffic"])), base_url="http://localhost") as client:
    assert "next hour" in client.get("/traffic").text
    assert client.get("/static/traffic/page.js").status_code == 200
    answer = client.post("/v1/traffic/predict", json={"x": [3.0] * 6})
    assert answer.status_code == 200 and len(answer.json()["output"]) == 1, answer.text
"""


def test_an_installed_system_is_listed_trained_reported_and_served(place: Path) -> None:
    assert "traffic" in json.loads(run(place, "tasks", "--json"))
    for block in blocks(PAGE):
        for words in commands(block) if block.kind == "sh" else ():
            if words[0] == "fewer" and words[1] != "serve":
                run(place, *words[1:], *{"train": ["--steps", "20"], "report": ["--attack", "none"]}.get(words[1], []))
    page = (place / "traffic.html").read_text()
    assert "how many cars will pass" in page and "The first week of the test split" in page
    paths = os.pathsep.join([str(place / "site"), *sys.path])
    subprocess.run([sys.executable, "-c", SERVED], env=os.environ | {"PYTHONPATH": paths}, cwd=place, check=True)


def test_the_page_about_it_shows_its_own_lines() -> None:
    source = "".join(path.read_text() for path in [EXAMPLE / "pyproject.toml", *EXAMPLE.rglob("*.py")])
    shown = [block.text for block in blocks(PAGE) if block.kind in ("python", "toml")]
    assert len(shown) >= 3 and [text for text in shown if text not in source] == []


def test_the_page_about_it_explains_every_field() -> None:
    named = {
        word for row in re.findall(r"^\| (`.*?) \|", PAGE.read_text(), re.M) for word in re.findall(r"`(\w+)`", row)
    }
    assert {field.name for field in dataclasses.fields(fewer.System)} <= named


def test_a_broken_system_of_somebody_else_is_left_out_with_a_line(place: Path) -> None:
    info = place / "broken" / "fewer_broken-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fewer-broken\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[fewer.systems]\nbroken = no_such_module_here:SYSTEM\n")
    paths = os.pathsep.join([str(place / "broken"), *sys.path])
    command = [sys.executable, "-m", "fewer", "tasks"]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True)
    assert done.returncode == 0 and "vision" in done.stdout
    assert done.stderr.count("\n") == 1 and "system 'broken' is left out" in done.stderr
