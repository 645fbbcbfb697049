"""Writing a file: the old one until the new one is whole, and nothing left lying about by whoever was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fewer.core.files import atomic as whole
from fewer.core.files.atomic import clear_parts, write_atomically


def test_whoever_has_the_old_file_open_keeps_reading_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "file"
    write_atomically(target, b"the old content")
    with open(target, "rb") as reader:
        write_atomically(target, b"new")
        assert reader.read() == b"the old content"
    assert target.read_bytes() == b"new"


def test_a_file_is_flushed_then_renamed_then_its_name_is_flushed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, order = tmp_path / "file", []
    write_atomically(target, b"old")
    fsync, replace = os.fsync, os.replace

    def flushed(handle: int) -> None:
        place = Path(os.readlink(f"/proc/self/fd/{handle}"))
        order.append(("flush", place.is_dir(), (target.read_bytes(), None if place.is_dir() else place.read_bytes())))
        fsync(handle)

    def renamed(source: Path, to: Path) -> None:
        order.append(("rename", False, (target.read_bytes(), source.read_bytes())))
        replace(source, to)

    monkeypatch.setattr(whole.os, "fsync", flushed)
    monkeypatch.setattr(whole.os, "replace", renamed)
    write_atomically(target, b"new")
    both = b"old", b"new"
    assert order == [("flush", False, both), ("rename", False, both), ("flush", True, (b"new", None))]


def test_a_process_killed_in_the_middle_leaves_the_old_file_and_the_next_writer_clears_the_rest(tmp_path: Path) -> None:
    target = tmp_path / "net.pack"
    write_atomically(target, b"good")
    code = f"""
import os, signal
from fewer.core.files import atomic as whole
whole.os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)
whole.write_atomically({str(target)!r}, b"better")
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL
    assert target.read_bytes() == b"good" and len(list(tmp_path.iterdir())) == 2
    write_atomically(target, b"best")
    assert [path.name for path in tmp_path.iterdir()] == ["net.pack"] and target.read_bytes() == b"best"


def test_what_another_is_writing_is_not_cleared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def look(handle: int) -> None:
        clear_parts(tmp_path)  # as another process would
        seen.append([path.name for path in tmp_path.glob(".*.part")])

    monkeypatch.setattr(whole.os, "fsync", look)
    write_atomically(tmp_path / "file", b"content")
    assert len(seen[0]) == 1 and (tmp_path / "file").read_bytes() == b"content"


def test_a_temporary_file_removed_before_it_was_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = whole.locked, []

    def late(file: object, *, wait: bool) -> bool:
        if wait and not calls:
            calls.append(1)
            next(tmp_path.glob(".*.part")).unlink()
        return real(file, wait=wait)  # type: ignore[arg-type]

    monkeypatch.setattr(whole, "locked", late)
    write_atomically(tmp_path / "file", b"content")
    assert calls and [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_file_before_stays_under_its_other_name(tmp_path: Path) -> None:
    for content in (b"1", b"2", b"3"):
        write_atomically(tmp_path / "file", content, previous=tmp_path / "before")
    assert (tmp_path / "file").read_bytes() == b"3" and (tmp_path / "before").read_bytes() == b"2"
