"""Write the README's "Measured" section from results/; with --check only say whether it is current."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
BEGIN = "<!-- results: written by scripts/readme_tables.py from results/ -->"
END = "<!-- /results -->"


def markdown(columns: list[str], rows: list[list[Any]]) -> str:
    """A table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def section(path: Path) -> str:
    """One result: what it is, its table, where it comes from."""
    record = json.loads(path.read_text())
    shown = record.get("readme") or {"columns": record["columns"], "rows": record["rows"]}
    origin = f"`{record['command']}`; {record['hardware_in_words']}; `results/{path.name}`."
    return f"**{record['title']}**\n\n{markdown(shown['columns'], shown['rows'])}\n\n{origin}"


def text() -> str:
    """Every result that has words about its hardware, in the order of its `place`."""
    paths = sorted((ROOT / "results").glob("*.json"))
    chosen = [(json.loads(p.read_text()).get("place", 0), p) for p in paths]
    return "\n\n".join(section(path) for place, path in sorted(chosen) if place)


def main() -> int:
    """Rewrite the README, or say whether it is current."""
    readme = ROOT / "README.md"
    before = readme.read_text()
    head, rest = before.split(BEGIN, 1)
    after = f"{head}{BEGIN}\n{text()}\n{END}{rest.split(END, 1)[1]}"
    if "--check" in sys.argv:
        return int(after != before)
    readme.write_text(after)
    return 0


if __name__ == "__main__":
    sys.exit(main())
