"""What is handled is told by an error's class: its words are for people alone."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from pathlib import Path

import pytest

import fewer
from fewer.core import errors
from fewer.core.engines.loop import not_finite
from fewer.core.errors import Busy, Diverged, MissingExtra, NoFiles, UserError
from fewer.core.files.run_folder import Folder
from fewer.sweep.failure import failure_of

ROOT = Path(fewer.__file__).parent
FOREIGN = {"core/machine/memory.py"}  # torch and Ray say in words that memory ended
ASKS = ("startswith", "endswith", "find", "index", "count", "match", "search")


def texts_of(tree: ast.AST) -> Iterator[tuple[ast.AST, tuple[str, ...]]]:
    """Places that hold an error, and how they would spell its text."""
    for node in ast.walk(tree):
        name = None
        if isinstance(node, ast.ExceptHandler):
            name = node.name
        elif isinstance(node, ast.FunctionDef):
            held = [entry.arg for entry in node.args.args if entry.annotation and _is_error(entry.annotation)]
            name = held[0] if held else None
        if name:
            yield node, (f"str({name})", f"{name}.given", f"{name}.expected", f"{name}.cure", f"{name}.args")


def _is_error(annotation: ast.expr) -> bool:
    return ast.unparse(annotation).endswith(("Error", "Exception"))


def decided_by_text(path: Path) -> list[str]:
    """Comparisons and questions about an error's text."""
    found = []
    for place, texts in texts_of(ast.parse(path.read_text())):
        for node in ast.walk(place):
            asked: list[ast.expr] = []
            if isinstance(node, ast.Compare):
                asked = [node.left, *node.comparators]
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ASKS:
                asked = [node.func.value, *node.args]
            if any(ast.unparse(part).startswith(texts) for part in asked):
                found.append(ast.unparse(node))
    return found


def test_nothing_is_decided_by_the_text_of_an_error() -> None:
    paths = {str(path.relative_to(ROOT)): path for path in sorted(ROOT.rglob("*.py"))}
    assert all(decided_by_text(paths[name]) for name in FOREIGN)  # the search finds what there is
    assert {name: found for name in paths.keys() - FOREIGN if (found := decided_by_text(paths[name]))} == {}


def test_every_kind_of_error_is_the_users_to_mend() -> None:
    assert all(issubclass(kind, UserError) for kind in (Busy, Diverged, MissingExtra, NoFiles))
    assert set(errors.__all__) == {"Busy", "Diverged", "MissingExtra", "NoFiles", "Notice", "UserError"}


def test_a_folder_in_use_is_busy_and_weights_that_are_not_finite_diverged(tmp_path: Path) -> None:
    with Folder(tmp_path / "run").locked(), pytest.raises(Busy), Folder(tmp_path / "run").locked():
        pass
    assert failure_of(not_finite(3)).kind == "diverged"
    assert failure_of(UserError("weights that are not finite", "others")).kind == "user error"


def test_an_error_comes_whole_from_another_process() -> None:
    error = MissingExtra("no scipy", "it installed", "pip install scipy")
    again = copy.copy(error)  # by the same way as between processes
    assert type(again) is MissingExtra and str(again) == str(error) and again.cure == "pip install scipy"
