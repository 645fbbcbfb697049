"""A wheel in an environment with nothing but what the base installation asks for: the commands, a shipped pack."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from scripts.release.lower_bounds import requirements
from scripts.release.try_wheel import PREDICT
from scripts.release.wheel import build_wheel

ROOT = Path(__file__).parents[2]
LARGEST = 600_000  # bytes of an extension without what only a debugger reads


def needed(names: set[str]) -> set[str]:
    """These distributions and all that they ask for."""
    found: set[str] = set()
    while names:
        name = names.pop()
        found.add(name)
        for asked in importlib.metadata.requires(name) or []:
            if "extra ==" not in asked:
                names |= {re.match(r"[\w.-]+", asked)[0]} - found  # type: ignore[index]
    return found


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What pip would have put there: the wheel, and links to the few packages that it needs."""
    place = tmp_path_factory.mktemp("wheel")
    wheel = build_wheel(place / "dist", compiler=False)  # as on a machine without one; `make wheel` compiles
    site = place / "site"
    with zipfile.ZipFile(wheel) as content:
        content.extractall(site)
    for name in needed({re.match(r"[\w-]+", word)[0] for word in requirements("")}):  # type: ignore[index]
        files = importlib.metadata.files(name) or []
        for top in {file.parts[0] for file in files if file.parts[0] not in ("..", "__pycache__")}:
            source = Path(str(files[0].locate())).parents[len(files[0].parts) - 1] / top
            if source.exists() and not (site / top).exists():
                (site / top).symlink_to(source)
    return site


def told(site: Path, program: str) -> str:
    """What a Python prints that knows nothing but its own library and this folder."""
    code = f"import sys; sys.path.append({str(site)!r})\n{program}"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], cwd=site, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_wheel_without_a_compiler_shows_help_and_predicts_without_torch(installed: Path) -> None:
    assert "usage: fewer" in told(installed, "from fewer.cli import main\nmain(['--help'])")
    found = json.loads(told(installed, "import warnings; warnings.simplefilter('ignore')\n" + PREDICT).splitlines()[-1])
    assert found["finite"] and not found["torch"] and not found["compiled"]


def test_what_the_wheel_leaves_out_is_no_part_of_the_package(installed: Path) -> None:
    tracked = {path.relative_to(ROOT / "src") for path in (ROOT / "src/fewer").rglob("*") if path.is_file()}
    wanted = {path for path in tracked if path.suffix in {".py", ".pack", ".npz", ".html", ".css", ".js", ".svg"}}
    assert not sorted(path for path in wanted if not (installed / path).exists())


def test_extensions_hold_nothing_that_only_a_debugger_reads() -> None:
    for name in ("fewer.packs._codec", "fewer.packs._planes", "fewer.packs._runtime", "fewer.sparse._train"):
        found = importlib.util.find_spec(name)
        if found is not None and found.origin is not None:
            assert Path(found.origin).stat().st_size < LARGEST, name
