"""The plan of the house: one folder for each field, and rooms that know fields only through `System`."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import fewer
from fewer.core.registry import SYSTEMS
from fewer.core.system import imported

ROOT = Path(fewer.__file__).parent
SHARED = ("serve", "report", "cli", "sweep", "bench", "studies", "run", "custom", "pruning", "attack", "ensemble")
MOST_MODULES, MOST_LINES = 16, 320


@pytest.mark.parametrize("room", SHARED)
def test_no_field_is_named_outside_its_folder(room: str) -> None:
    named = re.compile(rf"\b({'|'.join(SYSTEMS)}|CellFree|Nowcast)\b")
    wrong = []
    for path in sorted((ROOT / room).rglob("*.py")):
        code = re.sub(r'""".*?"""', "", path.read_text(), flags=re.DOTALL)
        for line in code.splitlines():
            if found := named.search(line.partition("  # ")[0]):
                wrong.append(f"{path.relative_to(ROOT)}: {found[0]}: {line.strip()[:80]}")
    assert wrong == []


def test_no_folder_is_crowded_and_no_module_lies_loose() -> None:
    crowded = {
        str(folder.relative_to(ROOT)): count
        for folder in [ROOT, *(path for path in ROOT.rglob("*") if path.is_dir())]
        if (count := len([path for path in folder.glob("*.py") if path.stem != "__init__"])) > MOST_MODULES
    }
    assert crowded == {}
    assert {path.name for path in ROOT.glob("*.py")} == {"__init__.py", "__main__.py"}


def test_no_file_is_too_long_to_read() -> None:
    project = Path(__file__).parents[1]
    files = [path for folder in ("src", "tests", "scripts", "examples") for path in (project / folder).rglob("*.py")]
    long = {
        str(path.relative_to(project)): n for path in files if (n := len(path.read_text().splitlines())) > MOST_LINES
    }
    assert long == {}


@pytest.mark.parametrize("name", SYSTEMS)
def test_what_a_system_names_is_there(name: str) -> None:
    system = imported(SYSTEMS[name])
    places = [system.task, system.picture, system.shorten, system.carry, system.service, system.page, system.demo]
    places += [system.case, system.prepare, system.units, system.speed, system.claims]
    places += [*(place for place, _ in system.benches.values())]
    places += [place for place, _ in [*system.verbs.values(), *([system.data] if system.data else [])]]
    for study in system.studies.values():
        places += [study.place, study.settings, study.plan, study.pieces, study.remarks]
    for place in filter(None, places):
        assert imported(place) is not None, place


def test_no_object_is_patched_from_outside() -> None:
    wrong = []
    for path in sorted(ROOT.rglob("*.py")):
        if "__setattr__" not in (text := path.read_text()) and "vars(" not in text:
            continue
        tree = ast.parse(text)
        own = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "__post_init__"]
        fine = {id(node) for function in own for node in ast.walk(function)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and id(node) not in fine:
                called = ast.unparse(node.func)
                if called == "object.__setattr__" or re.match(r"vars\(.*\)\.(update|__setitem__)", called):
                    wrong.append(f"{path.relative_to(ROOT)}: {ast.unparse(node)[:80]}")
    assert wrong == []
