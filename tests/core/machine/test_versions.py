"""The commit in a result is of fewer's own repository, or there is none."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fewer.core.machine.versions import commit_of, versions


def repository(root: Path, place: str, *, tracked: bool) -> tuple[Path, str]:
    """A file in a repository with one commit; that commit."""
    file = root / place
    file.parent.mkdir(parents=True)
    file.write_text("")
    (root / "thesis.tex").write_text("")
    author = ["-c", "user.name=a", "-c", "user.email=a@b"]
    added = [place] if tracked else ["thesis.tex"]
    for words in (["init", "-q"], ["add", *added], [*author, "commit", "-q", "--no-gpg-sign", "-m", "first"]):
        subprocess.run(["git", "-C", str(root), *words], check=True)
    done = subprocess.run(["git", "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    return file, done.stdout.strip()


def test_a_repository_around_an_installed_package_is_not_its_own(tmp_path: Path) -> None:
    place = ".venv/lib/python3.11/site-packages/fewer/core/versions.py"
    for number, tracked in enumerate((False, True)):
        file, commit = repository(tmp_path / str(number), place, tracked=tracked)
        assert commit and commit_of(file) == ""
    assert commit_of(Path("/nowhere/src/fewer/core/machine/versions.py")) == ""


def test_the_repository_that_keeps_the_source_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, commit = repository(tmp_path / "own", "src/fewer/core/machine/versions.py", tracked=True)
    _, other = repository(tmp_path / "other", "src/fewer/core/machine/versions.py", tracked=True)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))  # as in a hook
    assert commit_of(file) == commit and "fewer" in versions() and other


def test_without_a_commit_there_is_no_such_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert "commit" not in versions() and versions()["torch"]
