"""Write RESULTS.md, and the README's "Measured" section, from results/, and the lists of docs/methods.md from the
registries; with --check only say whether they are current.

RESULTS.md has every result with a `place`, the remarks computed from it, and the scale of every study; the README,
which stays short, has one of each family.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from fewer.attack.attacks import ATTACKS
from fewer.core.system import imported
from fewer.pruning.criteria import CRITERIA
from fewer.studies.order import studies

ROOT = Path(__file__).parents[1]
BEGIN = "<!-- results: written by scripts/readme_tables.py from results/ -->"
END = "<!-- /results -->"
FAMILIES = ("vision", "control", "nowcast", "cellfree", "matrix", "bench")
SHOWN = {"vision": "vision-lightest"}  # where it is not the first of the family
MOST = 8  # rows of a table in the README
HEAD = "# Results\n\nEvery table names the command that made it and the machine; the files are in `results/`."


def markdown(columns: list[str], rows: list[list[Any]]) -> str:
    """A table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def section(path: Path, most: int | None = None) -> str:
    """One result: what it is, its table, where it comes from."""
    record = json.loads(path.read_text())
    shown = record.get("readme") or {"columns": record["columns"], "rows": record["rows"]}
    rows = shown["rows"][:most]
    origin = f"`{record['command']}`; {record['hardware_in_words']}; `results/{path.name}`."
    if len(rows) < len(shown["rows"]):
        origin += f" The first {len(rows)} of {len(shown['rows'])} rows."
    text = f"**{record['title']}**\n\n{markdown(shown['columns'], rows)}\n\n{origin}"
    if most is None and record.get("remarks"):
        text += "\n\n" + "\n".join(f"- {remark}" for remark in record["remarks"])
    if most is None and (ROOT / "docs" / f"{path.stem}.png").exists():
        text += f"\n\n![{record['title']}](docs/{path.stem}.png)"
    return text


def placed() -> list[Path]:
    """Every result that is to be shown, family by family, in the order of its `place`."""
    found = []
    for path in sorted((ROOT / "results").glob("*.json")):
        family, place = path.stem.partition("-")[0], json.loads(path.read_text()).get("place", 0)
        if place:
            found.append((FAMILIES.index(family) if family in FAMILIES else len(FAMILIES), place, path))
    return [path for *_, path in sorted(found)]


def chosen() -> list[Path]:
    """One of each family, for the README."""
    found = []
    for family in FAMILIES:
        own = [path for path in placed() if path.stem.partition("-")[0] == family]
        found += [path for path in own if path.stem == SHOWN.get(family)][:1] or own[:1]
    return found


def scales() -> str:
    """Every study, and the scale of the result that is kept."""
    rows = []
    for name, study in studies().items():
        path = ROOT / "results" / f"{name.replace('/', '-')}.json"
        record = json.loads(path.read_text()) if path.exists() else {}
        rows.append([f"`{name}`", study.line, record.get("scale", "not kept"), record.get("hardware_in_words", "")])
    title = "**Every study, and the scale of the result in `results/`; notes in the files say what a scale left out**"
    return f"{title}\n\n{markdown(['study', 'what', 'scale', 'hardware'], rows)}"


def methods(before: str) -> str:
    """The page of methods with its two lists: every criterion and attack that is registered, in its own first words."""
    for name, option, registry in (("criteria", "--prune", CRITERIA), ("attacks", "--attack", ATTACKS)):
        begin, end = f"<!-- {name}: written by scripts/readme_tables.py from the registry -->", f"<!-- /{name} -->"
        rows = [[f"`{option} {word}`", _first_line(one.place)] for word, one in registry.items()]
        head, rest = before.split(begin, 1)
        before = f"{head}{begin}\n{markdown([name, 'what it does'], rows)}\n{end}{rest.split(end, 1)[1]}"
    return before


def _first_line(place: str) -> str:
    text: str = imported(place).__doc__.partition("\n")[0]
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def main() -> int:
    """Rewrite the files, or say whether they are current."""
    results = ROOT / "RESULTS.md"
    readme, page = ROOT / "README.md", ROOT / "docs" / "methods.md"
    before = readme.read_text()
    head, rest = before.split(BEGIN, 1)
    tables = "\n\n".join(section(path, MOST) for path in chosen())
    written = {
        readme: f"{head}{BEGIN}\n{tables}\n{END}{rest.split(END, 1)[1]}",
        results: "\n\n".join([HEAD, *map(section, placed()), scales()]) + "\n",
        page: methods(page.read_text()),
    }
    if "--check" in sys.argv:
        return int(any(not path.exists() or path.read_text() != text for path, text in written.items()))
    for path, text in written.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
