"""One module knows what the files of a run are called."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import fewer

ROOT = Path(fewer.__file__).parent
NAMES = re.compile(
    r"\bconfig\.json|\bmetrics\.jsonl?|\b(weights|mask|best|state)\.safetensors|\bstate\.previous|\bseed-(\*|$)"
)


def spelled(path: Path) -> list[str]:
    """Texts of a module that name a run's files, its documentation apart."""
    tree = ast.parse(path.read_text())
    places = [node for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)]
    told = {id(node.body[0].value) for node in places if node.body and isinstance(node.body[0], ast.Expr)}
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    found = [text.value for text in texts if id(text) not in told and NAMES.search(text.value)]
    paths = [node.right for node in ast.walk(tree) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)]
    return found + [part.value for part in paths if isinstance(part, ast.Constant) and part.value == "rounds"]


def test_only_the_run_folder_spells_the_names_of_a_runs_files() -> None:
    own = ROOT / "core" / "files" / "run_folder.py"
    assert len(spelled(own)) >= 9
    others = [path for path in sorted(ROOT.rglob("*.py")) if path != own and "studies" not in path.parts]
    assert {str(path.relative_to(ROOT)): found for path in others if (found := spelled(path))} == {}
