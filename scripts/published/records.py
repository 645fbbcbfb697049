"""The kept results, and how pages show a table, a picture and a part that code writes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fewer.studies.order import file_of, studies

__all__ = ["FAMILIES", "LEDGER", "ROOT", "folded", "markdown", "placed", "replaced", "results"]

ROOT = Path(__file__).parents[2]
FAMILIES = ("vision", "control", "nowcast", "cellfree", "matrix", "smallest", "transfer", "bench", "service", "release")
LEDGER = "claims.json"  # made of the others
ELSEWHERE = (LEDGER, "architectures.json")  # with pages of their own


def results() -> dict[str, dict[str, Any]]:
    """Every kept result by the name of its file."""
    paths = sorted(path for path in (ROOT / "results").glob("*.json") if path.name not in ELSEWHERE)
    return {path.stem: json.loads(path.read_text()) for path in paths}


def placed() -> dict[str, list[str]]:
    """The names of all results, family by family: by their `place` where they have one, then in the studies' order."""
    order = [file_of(name).removesuffix(".json") for name in studies()]
    found: dict[str, list[tuple[float, int, str]]] = {family: [] for family in FAMILIES}
    for name, record in results().items():
        listed = order.index(name) if name in order else len(order)
        found.setdefault(name.partition("-")[0], []).append((record.get("place") or float("inf"), listed, name))
    return {family: [name for *_, name in sorted(entries)] for family, entries in found.items()}


def markdown(columns: Sequence[object], rows: Sequence[Sequence[object]]) -> str:
    """A table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def folded(line: str, content: str) -> str:
    """What opens at a click."""
    return f"<details><summary>{line}</summary>\n\n{content}\n\n</details>"


def replaced(text: str, name: str, source: str, content: str) -> str:
    """A page whose part of that name is written anew."""
    begin, end = f"<!-- {name}: written by scripts/readme_tables.py from {source} -->", f"<!-- /{name} -->"
    head, rest = text.split(begin, 1)
    return f"{head}{begin}\n{content}\n{end}{rest.split(end, 1)[1]}"
