"""What a result depends on beside its settings, and when it was made."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import date
from pathlib import Path
from typing import Any

from fewer.core.machine.version import VERSION

__all__ = ["origin", "versions"]


def origin() -> dict[str, Any]:
    """The day, and the versions: what every kept result says of itself."""
    return {"made": date.today().isoformat(), "versions": versions()}


def versions() -> dict[str, str]:
    """Of the package, of what it stands on, and the commit where its source lies in its own repository."""
    import numpy  # not above: help and benches are listed without them
    import torch

    found = {
        "fewer": VERSION, "python": platform.python_version(), "torch": torch.__version__,
        "numpy": numpy.__version__, "machine": platform.machine(),
    }  # fmt: skip
    return found | {"commit": commit} if (commit := commit_of(Path(__file__).resolve())) else found


def commit_of(file: Path) -> str:
    """Of the repository that keeps this file where fewer's own does; another one around it says nothing about it."""
    own = "/".join(("src", *file.parts[-4:]))
    tracked = _git(file.parent, "ls-files", "--full-name", "--", file.name)
    return _git(file.parent, "rev-parse", "HEAD") if tracked == own else ""


def _git(folder: Path, *words: str) -> str:
    # inside a hook these name the repository of the hook
    outside = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        return subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=5, check=False, env=outside
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
