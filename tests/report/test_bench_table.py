"""All benches in one table: what cannot run says so, and the others go on."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fewer.bench import overview
from fewer.bench.row import Row
from fewer.cli import main
from fewer.core.errors import UserError

ROW = Row("packs", 2.0, 1.0, "1/s", 2.0, "torch", 1.5)


def modules(place: str) -> Any:
    def refuse(quick: bool) -> list[Row]:
        raise UserError("no CUDA", "a GPU")

    def fail(quick: bool) -> list[Row]:
        raise ZeroDivisionError("division by zero")

    runs = {"radar": refuse, "serve": fail}
    return SimpleNamespace(run=runs.get(place.rpartition(".")[2], lambda quick: [ROW]))


@pytest.fixture(autouse=True)
def quick_benches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "imported", modules)


def test_all_of_them_are_one_table(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["bench", "-o", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:2] == ["bench", "what"]
    firsts = [line.split()[0] for line in lines[1:-2]]
    assert firsts == list(overview.benches())
    assert any("not run: no CUDA" in line for line in lines) and any(
        "failed: ZeroDivisionError" in line for line in lines
    )
    record = json.loads((tmp_path / "bench.json").read_text())
    assert record["command"] == "fewer bench --quick" and record["hardware_in_words"]
    assert record["rows"][0]["ratio"] == 2.0 and "<svg" in (tmp_path / "bench.html").read_text()


def test_one_by_name_fails_as_it_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "radar"]) == 2
    assert "no CUDA" in capsys.readouterr().err


def test_programs_get_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "sparse", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sparse"][0]["ratio"] == 2.0


def test_one_bench_is_written_as_results_keeps_it(tmp_path: Path) -> None:
    assert main(["bench", "sparse", "-o", str(tmp_path)]) == 0
    record = json.loads((tmp_path / "bench-sparse.json").read_text())
    assert record["command"] == "fewer bench sparse" and record["study"] == "bench sparse"
    assert len(record["columns"]) == len(record["rows"][0]) and "2.00x" in record["rows"][0]
    assert main(["bench", "image_training", "-o", str(tmp_path)]) == 0
    assert (tmp_path / "bench-image-training.json").exists()


def test_two_generations_of_processors_under_one_name_are_told_apart(tmp_path: Path) -> None:
    described = tmp_path / "cpuinfo"
    described.write_text(
        "processor : 0\ncpu family : 26\nmodel : 2\nmodel name : AMD EPYC\n\nprocessor : 1\nmodel : 9\n"
    )
    assert overview._processor(described) == "AMD EPYC (family 26, model 2)"
    described.write_text("processor : 0\nBogoMIPS : 50\n")
    assert overview._processor(described) == overview._processor(tmp_path / "none")
