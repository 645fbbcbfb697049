"""The README's commands work as printed, and its numbers are those of results/."""

from __future__ import annotations

import functools
import re
import runpy
import shlex
import sys
from datetime import date
from pathlib import Path

import pytest
import torch

import fewer
from fewer.cli import main
from tests.studies.records import RESULTS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) < 150


def test_the_measured_tables_are_those_of_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    script = ROOT / "scripts/readme_tables.py"
    monkeypatch.setattr(sys, "argv", [str(script), "--check"])
    monkeypatch.syspath_prepend(script.parent)  # as Python does for a script
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(script), run_name="__main__")
    assert not ended.value.code


def test_every_result_says_its_command_its_hardware_and_its_day() -> None:
    for name, record in RESULTS.items():
        assert record["command"].startswith(("fewer ", "python ")) and record["hardware_in_words"], name
        assert date.fromisoformat(record["made"]), name


def commands(heading: str) -> list[str]:
    part = README.split(f"## {heading}", 1)[1].split("\n## ", 1)[0]
    return [line for block in re.findall(r"```sh\n(.*?)```", part, re.S) for line in block.strip().splitlines()]


def test_the_two_commands_are_make_targets() -> None:
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.M)
    assert {line.split()[1] for line in commands("Two commands")} == {"demo", "test"} <= set(targets)


def test_the_five_commands_work_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    printed = commands("Five commands")
    assert len(printed) == 5
    for line in printed:
        words = shlex.split(line)
        assert words[0] == "fewer"
        short = ["--steps", "40"] if words[1] == "train" else []
        assert main([*words[1:], *short]) == 0, line
    assert (tmp_path / "small.c").exists()
    assert (tmp_path / "report.html").stat().st_size > 10_000


def test_the_network_of_a_reader_goes_in_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = re.findall(r"```python\n(.*?)```", README, re.S)
    assert len(code) == 1
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(8, 96), torch.nn.ReLU(), torch.nn.Linear(96, 3))
    inputs = torch.rand(200, 8)
    train = functools.partial(fewer.train, steps=20)
    monkeypatch.setattr(fewer, "train", train)
    names = {"network": network, "inputs": inputs, "targets": inputs.argmax(1) % 3}
    exec(code[0], names)
    assert names["run"].metrics and (tmp_path / "mine.pack").exists()  # type: ignore[attr-defined]


def test_the_picture_shows_the_results_that_are_kept() -> None:
    assert "](docs/fewer.png)" in README.split("## ")[0]
