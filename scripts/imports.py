"""Who imports whom, read from the source: what the tests of the arrows and the picture of the rooms stand on."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

__all__ = ["circles", "imports", "modules", "room", "rooms"]


def modules(root: Path) -> dict[str, Path]:
    """Every module under `root`, the folder of the package `fewer`."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = ("fewer", *path.relative_to(root).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def _nodes(tree: ast.AST, *, types: bool) -> Iterator[ast.AST]:
    """Everything in a file, also inside functions; what only a type checker reads is left out unless `types`."""
    for node in ast.iter_child_nodes(tree):
        if not types and isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        yield node
        yield from _nodes(node, types=types)


@functools.cache
def _statements(path: Path, types: bool) -> list[ast.Import | ast.ImportFrom]:
    tree = ast.parse(path.read_text())
    return [node for node in _nodes(tree, types=types) if isinstance(node, ast.Import | ast.ImportFrom)]


def imports(path: Path, known: dict[str, Path], *, types: bool = True) -> set[str]:
    """Our modules that a file imports, deferred imports counted."""
    found = set()
    for node in _statements(path, types):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.split(".")[0] == "fewer"}
        elif (node.module or "").split(".")[0] == "fewer":
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found |= {name if name in known else str(node.module) for name in names}
    return found


def room(module: str) -> str:
    """The package a module lies in; a system's task is a room of its own."""
    parts = module.split(".")[1:]
    if not parts:
        return "the front door"
    if parts[0] == "systems" and len(parts) > 1:
        return "systems/*/task" if parts[2:3] == ["task"] else "systems/*"
    return parts[0]


def rooms(root: Path) -> dict[str, set[str]]:
    """Which rooms each room imports."""
    known = modules(root)
    found: dict[str, set[str]] = {}
    for module, path in known.items():
        here = found.setdefault(room(module), set())
        here |= {room(name) for name in imports(path, known)} - {room(module)}
    return found


def circles(arrows: dict[str, set[str]]) -> list[list[str]]:
    """Groups that import each other, directly or by way of others (Tarjan's strongly connected components)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(arrows.get(name, set()) & arrows.keys()):
            if other not in index:
                visit(other)
            if other in stack:
                low[name] = min(low[name], low[other])
        if low[name] == index[name]:
            group = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(group) > 1:
                found.append(sorted(group))

    for name in sorted(arrows):
        if name not in index:
            visit(name)
    return found
