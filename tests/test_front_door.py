"""`fewer` offers what users and authors need, lazily, and no package hides a function of it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import fewer

ROOT = Path(__file__).parents[1]
EVERY_MODULE = (
    "import importlib, pkgutil, fewer\n"
    "for found in pkgutil.walk_packages(fewer.__path__, 'fewer.'):\n"
    "    if found.name == 'fewer.__main__': continue\n"
    "    try: importlib.import_module(found.name)\n"
    "    except ModuleNotFoundError as error:\n"
    "        if error.name != 'triton': raise  # comes with CUDA builds of torch alone\n"
    "import types\n"
    "hidden = [name for name in fewer.__all__ if isinstance(getattr(fewer, name), types.ModuleType)]\n"
    "assert hidden == ['cellfree', 'lightning', 'sklearn', 'transformers'], hidden\n"
    "assert callable(fewer.train) and fewer.open_pack('digits-3197').settings['task'] == 'vision'\n"
)


def test_what_is_offered_is_sorted_and_there() -> None:
    assert fewer.__all__ == sorted(fewer.__all__, key=lambda name: (name[0].islower(), name))
    assert set(fewer.__all__) == set(dir(fewer))
    for name in fewer.__all__:
        assert name == "Predict" or getattr(fewer, name).__doc__, name  # an alias of a callable's type has none
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        fewer.trian  # noqa: B018


def test_every_name_is_still_itself_after_every_module_was_imported() -> None:
    subprocess.run([sys.executable, "-c", EVERY_MODULE], check=True)


def test_importing_it_loads_nothing_heavy() -> None:
    program = "import sys, fewer\nassert not {'torch', 'numpy', 'rich'} & set(sys.modules)\nassert fewer.__version__"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_version_is_that_of_the_project_file() -> None:
    assert fewer.__version__ == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def test_readme_docs_and_examples_import_from_the_front_door_alone() -> None:
    """A field's own library has a front door too, `fewer.systems.NAME`."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.py")]
    deep = re.compile(r"^\s*(?:from fewer\.(?!systems\.cellfree import)|import fewer\.).*", re.MULTILINE)
    assert {
        str(page.relative_to(ROOT)): deep.findall(page.read_text()) for page in pages if deep.search(page.read_text())
    } == {}
