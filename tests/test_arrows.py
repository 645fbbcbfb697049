"""Who may import whom: up the arrows of ARCHITECTURE.md alone, deferred imports counted, and never in a circle."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from scripts.imports import circles, imports, modules, room, rooms

import fewer

ROOT = Path(fewer.__file__).parent
KNOWN = modules(ROOT)
METHODS = {"pruning", "attack", "ensemble", "packs", "sparse"}
TRAINING = METHODS | {"core", "run", "custom", "zoo"}
SHOWN = {"report", "serve", "sweep", "studies", "bench"}
ALLOWED: dict[str, set[str]] = {
    "core": set(),
    **{method: {"core"} for method in METHODS},
    "sparse": {"core", "packs"},
    "zoo": {"core", "packs"},
    "systems/*/task": {"core", "packs", "zoo"},  # the experts of control are packs of the zoo
    "run": METHODS | {"core", "zoo", "custom"},  # networks that are given as objects
    "custom": METHODS | {"core"},
    **dict.fromkeys(SHOWN, TRAINING),
    "studies": TRAINING | {"report", "sweep"},
    "bench": TRAINING | {"report", "serve", "sweep"},
    "systems/*": TRAINING | SHOWN | {"systems/*/task", "cli"},
    "cli": TRAINING | SHOWN,
    "__main__": {"cli"},
    "the front door": TRAINING | SHOWN | {"systems/*"},
}


def test_every_room_has_its_arrows() -> None:
    assert rooms(ROOT).keys() == ALLOWED.keys() | {"systems"}


@pytest.mark.parametrize("name", sorted(ALLOWED))
def test_a_room_imports_only_what_lies_below_it(name: str) -> None:
    wrong = [
        f"{module} imports {other}"
        for module, path in KNOWN.items()
        if room(module) == name
        for other in sorted(imports(path, KNOWN))
        if room(other) not in ALLOWED[name] | {name}
    ]
    assert wrong == []


def test_no_system_imports_another() -> None:
    wrong = [
        f"{module} imports {other}"
        for module, path in KNOWN.items()
        if module.startswith("fewer.systems.")
        for other in imports(path, KNOWN)
        if other.startswith("fewer.systems.") and other.split(".")[2] != module.split(".")[2]
    ]
    assert wrong == []


def test_rooms_form_no_circle() -> None:
    assert circles(rooms(ROOT)) == []


def test_modules_form_no_circle() -> None:
    arrows = {module: imports(path, KNOWN, types=False) - {module} for module, path in KNOWN.items()}
    assert circles(arrows) == []


def test_nothing_is_ever_unpickled() -> None:
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr == "load":
                assert ast.unparse(node) not in ("torch.load", "joblib.load"), f"{path}:{node.lineno}"
            if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
                assert isinstance(node.value, ast.Constant) and node.value.value is False, f"{path}:{node.value.lineno}"
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names} | {getattr(node, "module", "")}
                assert not names & {"pickle", "dill", "joblib", "shelve", "marshal"}, path
