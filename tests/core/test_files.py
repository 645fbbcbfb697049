"""What a kill leaves in a run folder, and how the next training clears it."""

from __future__ import annotations

from pathlib import Path

from fewer.core.folder import Folder


def test_what_a_killed_writer_left_is_cleared(tmp_path: Path) -> None:
    (tmp_path / ".weights.safetensors.123.part").write_bytes(b"half")
    with Folder(tmp_path).locked():
        assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_a_log_line_cut_in_half_is_dropped_when_the_run_goes_on(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.log({"step": 1, "loss": 0.5})
    with open(tmp_path / "metrics.jsonl", "a") as file:
        file.write('{"step": 2, "lo')
    folder.forget_after(5)
    folder.log({"step": 2, "loss": 0.25})
    assert [line["step"] for line in folder.lines()] == [1, 2]
