"""`__all__` is sorted, true and complete enough: what a module exports exists and is documented."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import fewer

ROOT = Path(fewer.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))


def exported(tree: ast.Module) -> list[str] | None:
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [str(ast.literal_eval(item)) for item in node.value.elts]  # type: ignore[attr-defined]
    return None


def defined(tree: ast.Module) -> dict[str, ast.AST]:
    names: dict[str, ast.AST] = {}
    lazy = [part for node in tree.body if isinstance(node, ast.If) for part in node.body]  # for type checkers
    for node in [*tree.body, *lazy]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names[node.name] = node
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name): node for alias in node.names}
        elif isinstance(node, ast.Assign):
            names |= {
                name.id: node for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)
            }
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names[node.target.id] = node
    return names


def order(name: str) -> tuple[int, str]:
    """Constants, then classes, then functions, as the linter sorts them."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_exports_are_sorted_exist_and_are_documented(path: Path) -> None:
    tree = ast.parse(path.read_text())
    names = exported(tree)
    if names is None:
        return
    assert len(set(names)) == len(names) and names == sorted(names, key=order)
    found = defined(tree)
    for name in names:
        assert name in found, f"{name} is exported but not defined"
        node = found[name]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            assert ast.get_docstring(node), f"{name} has no docstring"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_module_with_code_says_what_one_finds_in_it(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert not tree.body or ast.get_docstring(tree)
