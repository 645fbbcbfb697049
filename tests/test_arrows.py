"""Who may import whom: tasks never import methods, methods never import tasks, core imports nothing of ours."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import fewer

ROOT = Path(fewer.__file__).parent
METHODS = ("prune", "attack", "ensemble", "sparse")
ALLOWED: dict[str, set[str]] = {
    "core": {"core"},
    "nn": {"core", "nn"},
    "tasks": {"core", "nn", "tasks"},
    **{method: {"core", method} for method in METHODS},
}
# one method on top of another, each said and each one way only
EXCEPTIONS: set[tuple[str, str]] = set()


def imports(path: Path) -> Iterator[str]:
    """Full names of everything of ours that a file imports, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "fewer")
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            if (node.module or "").split(".")[0] == "fewer":
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


def files(package: str) -> list[Path]:
    found = sorted((ROOT / package).rglob("*.py"))
    assert found, package
    return found


@pytest.mark.parametrize("package", sorted(ALLOWED))
def test_a_package_imports_only_what_lies_below_it(package: str) -> None:
    wrong = set()
    for path in files(package):
        for name in imports(path):
            layer = (name.split(".") + [""])[1]
            if layer not in ALLOWED[package] and layer != "__version__" and (package, layer) not in EXCEPTIONS:
                wrong.add(f"{path.relative_to(ROOT)} imports {name}")
    assert sorted(wrong) == []


def test_no_task_imports_another() -> None:
    wrong = set()
    for path in files("tasks"):
        own = path.relative_to(ROOT / "tasks").parts[0]
        for name in imports(path):
            parts = name.split(".")
            if parts[1] == "tasks" and len(parts) > 2 and parts[2] != own:
                wrong.add(f"{path.relative_to(ROOT)} imports {name}")
    assert sorted(wrong) == []


def test_exceptions_are_used_and_form_no_cycle() -> None:
    used = {
        (method, name.split(".")[1]) for method in METHODS for path in files(method) for name in imports(path)
    } & EXCEPTIONS
    assert used == EXCEPTIONS
    assert not {(b, a) for a, b in EXCEPTIONS} & EXCEPTIONS


def test_nothing_is_ever_unpickled() -> None:
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and ast.unparse(node) in ("torch.load", "joblib.load"):
                pytest.fail(f"{path}:{node.lineno} {ast.unparse(node)}")
            if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
                assert isinstance(node.value, ast.Constant) and node.value.value is False, f"{path}:{node.value.lineno}"
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names} | {getattr(node, "module", "")}
                assert not names & {"pickle", "dill", "joblib", "shelve", "marshal"}, path
