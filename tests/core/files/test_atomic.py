"""What a kill leaves in a run folder, and how the next training clears it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from fewer.core.errors import Busy, UserError
from fewer.core.files.run_folder import Folder


def test_what_a_killed_writer_left_is_cleared_also_in_the_rounds(tmp_path: Path) -> None:
    (tmp_path / "rounds" / "round-03").mkdir(parents=True)
    Folder(tmp_path).write_json("config.json", {})
    for place in (tmp_path, tmp_path / "rounds", tmp_path / "rounds" / "round-03"):
        (place / ".weights.safetensors.123.part").write_bytes(b"half")
    with Folder(tmp_path).locked():
        assert not list(tmp_path.rglob("*.part"))


def test_a_folder_that_is_no_run_keeps_what_looks_like_a_killed_writers(tmp_path: Path) -> None:
    (tmp_path / ".film.1.part").write_bytes(b"half of a download")
    with Folder(tmp_path).locked():
        assert (tmp_path / ".film.1.part").exists()


def test_a_log_line_cut_in_half_is_dropped_when_the_run_goes_on(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.log({"step": 1, "loss": 0.5})
    with open(tmp_path / "metrics.jsonl", "a") as file:
        file.write('{"step": 2, "lo')
    folder.forget_after(5)
    folder.log({"step": 2, "loss": 0.25})
    assert [line["step"] for line in folder.lines()] == [1, 2]


def test_a_folder_that_cannot_be_locked_is_refused_by_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fewer.core.files.run_folder.locked", lambda handle, wait: False)
    with pytest.raises(Busy, match="being trained by another process"), Folder(tmp_path / "run").locked():
        pass
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "fcntl" else found(name))
    with pytest.raises(UserError, match=r"without file locks.*WSL"), Folder(tmp_path / "run").locked():
        pass


def test_a_file_that_cannot_be_taken_away_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "state.safetensors").mkdir()  # which no unlink removes
    with pytest.raises(UserError, match=r"state\.safetensors") as caught:
        Folder(tmp_path).remove("state.safetensors")
    assert "\n" not in str(caught.value)
