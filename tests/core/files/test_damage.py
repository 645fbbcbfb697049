"""Files of a run that say something else than they should: one line each, never a traceback."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from fewer.cli import main
from fewer.core.engines.base import Training
from fewer.core.engines.loop import Loop
from fewer.core.errors import UserError
from fewer.core.files.run_folder import Folder
from fewer.pruning.pruning import Pruning
from fewer.run.job import Job
from fewer.run.load import job_from, load

JOB = Job("tests.toys:Fit", training=Training(steps=2, batch=8), prune=Pruning("magnitude", 0.5))
Lines = pytest.CaptureFixture[str]


@pytest.fixture
def run(tmp_path: Path, finished: Path) -> Path:
    """As version 0.1.0 left it: without checksums, so that what is in the files is judged by itself."""
    place = Path(shutil.copytree(finished, tmp_path / "run"))
    (place / "checksums.json").unlink()
    return place


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("damage") / "run"
    JOB.run(out)
    return out


def one_line(words: list[str], capsys: Lines) -> str:
    capsys.readouterr()
    assert main(words) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and said.startswith("fewer: "), said
    return said


@pytest.mark.parametrize(
    "content", ["3", "[]", '"x"', "null", '{"a": "b"}', '{"replicas": 3}', '{"replicas": []}', '{"replicas": [3]}']
)
def test_metrics_that_are_no_figures_are_refused(run: Path, content: str, capsys: Lines) -> None:
    (run / "metrics.json").write_text(content)
    assert "metrics.json without metrics" in one_line(["evaluate", str(run)], capsys)
    with pytest.raises(UserError, match="without metrics"):
        JOB.run(run)


@pytest.mark.parametrize("line", [b"\xff\xfe", b"{}", b"3", b"[]", b'{"step": "x"}', b'{"loss/net": 1.0}', b'{"st'])
def test_a_log_that_is_damaged_is_refused_by_line(run: Path, line: bytes, capsys: Lines) -> None:
    before = (run / "metrics.jsonl").read_bytes()
    (run / "metrics.jsonl").write_bytes(before + line + b"\n" + before)
    page = run.parent / "page.html"
    assert "metrics.jsonl is damaged in line 2" in one_line(["report", str(run), "-o", str(page)], capsys)
    (run / "metrics.json").unlink()
    with pytest.raises(UserError, match="damaged in line 2"):
        JOB.run(run)
    (run / "metrics.jsonl").write_bytes(before + line)  # cut off by a kill
    assert len(Folder(run).lines()) == 1


@pytest.mark.parametrize("name", ["metrics.json", "config.json", "metrics.jsonl"])
def test_a_digit_that_changed_in_a_finished_run_is_refused_by_its_checksum(
    finished: Path, tmp_path: Path, name: str, capsys: Lines
) -> None:
    run = Path(shutil.copytree(finished, tmp_path / "run"))
    digits = [place for place, byte in enumerate((run / name).read_bytes()) if chr(byte).isdigit()]
    content = bytearray((run / name).read_bytes())
    content[digits[-1]] ^= 1
    (run / name).write_bytes(content)
    words = (
        ["report", str(run), "-o", str(tmp_path / "page.html")] if name == "metrics.jsonl" else ["evaluate", str(run)]
    )
    assert f"{name} is damaged (its checksum does not fit)" in one_line(words, capsys)
    (run / "checksums.json").write_text("{")
    assert "is damaged" in one_line(words, capsys)
    (run / "checksums.json").unlink()
    load(run)  # as those of version 0.1.0, which have none


def test_a_log_that_changed_before_a_training_goes_on_is_refused_and_can_be_removed(tmp_path: Path) -> None:
    out = tmp_path / "run"
    folder = Folder(out)
    with pytest.raises(KeyboardInterrupt):
        JOB.run(out, loop=Loop(log_every=1, save_seconds=0.0, on_log=_stop_at(2)))
    first, *others = (out / "metrics.jsonl").read_text().splitlines(keepends=True)
    changed = json.loads(first)
    changed["loss/net"] += 1.0
    (out / "metrics.jsonl").write_text(json.dumps(changed) + "\n" + "".join(others))
    with pytest.raises(UserError, match=r"metrics.jsonl is damaged; .*remove it"):
        JOB.run(out)
    (out / "metrics.jsonl").unlink()
    JOB.run(out)
    assert folder.finished


def _stop_at(step: int) -> Any:
    def told(line: dict[str, Any]) -> None:
        if line["step"] == step:
            raise KeyboardInterrupt

    return told


def test_a_number_in_the_settings_of_a_config_is_refused(run: Path, capsys: Lines) -> None:
    config = json.loads((run / "config.json").read_text())
    for settings in (3, [3], "x"):
        (run / "config.json").write_text(json.dumps({**config, "settings": settings}))
        assert "settings" in one_line(["evaluate", str(run)], capsys)


def _changed(content: Any, value: Any) -> list[Any]:
    """Copies in which one part, at any depth, is the value."""
    if not isinstance(content, dict):
        return [value]
    return [value] + [{**content, key: other} for key in content for other in _changed(content[key], value)]


@pytest.mark.parametrize("value", [3, -1.5, "x", None, [], [None], {}, True])
def test_whatever_a_config_holds_reading_it_is_a_job_or_one_line(finished: Path, value: Any, tmp_path: Path) -> None:
    config = json.loads((finished / "config.json").read_text())
    for number, changed in enumerate(_changed(config, value)):
        try:
            job_from(changed)
        except UserError as error:
            assert "\n" not in str(error)
            continue
        run = Path(shutil.copytree(finished, tmp_path / str(number)))
        (run / "checksums.json").unlink()
        (run / "config.json").write_text(json.dumps(changed))
        try:
            load(run)
        except UserError as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory\nframe"),
        RuntimeError("could not create a primitive"),
        RuntimeError("could not execute a primitive"),
    ],
)
def test_memory_that_ends_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Lines, error: Exception
) -> None:
    def ended(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr("fewer.run.job.Job.run", ended)
    said = one_line(["train", "tests.toys:Fit", "--out", str(tmp_path / "run")], capsys)
    assert "memory ended" in said
    monkeypatch.setattr("fewer.run.job.Job.run", lambda *_, **__: {}["a defect"])
    with pytest.raises(KeyError):
        main(["train", "tests.toys:Fit", "--out", str(tmp_path / "run")])


def test_a_task_that_asks_for_more_memory_than_there_is_is_one_line(tmp_path: Path, capsys: Lines) -> None:
    assert "memory ended" in one_line(["train", "tests.sweep.tasks:Hungry", "--out", str(tmp_path / "run")], capsys)
