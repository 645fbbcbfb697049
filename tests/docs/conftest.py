"""The site, built once for all tests of it, and a browser to look at it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tests.serve.conftest import browser

__all__ = ["browser"]


@pytest.fixture(scope="package")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-W", "ignore", "-m", "mkdocs", "build", "--strict", "-q", "-f", str(ROOT / "mkdocs.yml")]
    done = subprocess.run([*words, "-d", str(out)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return out
