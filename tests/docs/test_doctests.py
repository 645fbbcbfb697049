"""Examples in docstrings are true."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import fewer

ROOT = Path(fewer.__file__).parent
WITH_EXAMPLES = sorted(path for path in ROOT.rglob("*.py") if ">>> " in path.read_text())


def test_there_are_examples_in_the_modules_that_people_import() -> None:
    names = {str(path.relative_to(ROOT)) for path in WITH_EXAMPLES}
    assert {"run/api.py", "attack/threat.py", "core/settings.py", "pruning/keep.py", "zoo/__init__.py"} <= names


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_examples_of_a_module_are_true(path: Path) -> None:
    name = ".".join(["fewer", *path.relative_to(ROOT).with_suffix("").parts]).removesuffix(".__init__")
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0 and result.failed == 0
