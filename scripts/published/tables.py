"""RESULTS.md: every kept result with its table, pictures, remarks, notes and all commands; then the scale of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fewer.core.registry import systems
from fewer.studies.order import SCALES, file_of, studies

from .records import ROOT, folded, markdown, placed, results

__all__ = ["page"]

MOST = 30  # rows that are shown unfolded
FEW = 12  # sentences

HEAD = """# Results

Every table stands with what came out of it, how it was made, the commands that make it from nothing (`DIR` is a folder
of your own, `DATA` your files) and the machine; the files are in `results/`. What the papers say of it is judged in
[CLAIMS.md](CLAIMS.md)."""


def page() -> str:
    """All of it."""
    parts, records = [HEAD], results()
    for family, names in placed().items():
        if not names:
            continue
        paper = systems()[family].paper if family in systems() else ""
        parts += [f"## {family}", *([f"Paper: {paper}."] if paper else [])]
        parts += [section(name, records[name]) for name in names]
    return "\n\n".join([*parts, scales(records)]) + "\n"


def section(name: str, record: dict[str, Any]) -> str:
    """One result."""
    parts = [f"### {record['title']}", *tables(record)]
    parts += [f"![{record['title']}](docs/{picture})" for picture in pictures(name, record)]
    parts += sentences("What came out", record.get("remarks", []))
    parts += sentences("How it was made", record.get("notes", []))
    scale = f"Scale {record['scale']}; " if record.get("scale") else ""
    commands = "\n".join(record.get("commands") or [record["command"]])
    parts.append(f"{scale}{record['hardware_in_words']}; {record['made']}; `results/{name}.json`.")
    parts.append(f"```sh\n{commands}\n```")
    return "\n\n".join(parts)


def tables(record: dict[str, Any]) -> list[str]:
    """The table; a long one folded, behind its short form for readers where it has one."""
    whole, short = markdown(record["columns"], record["rows"]), record.get("readme")
    if len(record["rows"]) <= MOST:
        return [whole]
    shown = [markdown(short["columns"], short["rows"])] if short else []
    return [*shown, folded(f"All {len(record['rows'])} rows", whole)]


def pictures(name: str, record: dict[str, Any]) -> list[str]:
    """Those in docs/ that the study drew, or that bear its name."""
    named = [*record.get("figures", []), f"{name}.png"]
    return [picture for picture in dict.fromkeys(named) if (ROOT / "docs" / picture).exists()]


def sentences(title: str, lines: Sequence[str]) -> list[str]:
    """A list under a word or two, folded where it is long."""
    if not lines:
        return []
    content = "\n".join(f"- {line}" for line in lines)
    return [f"{title}:\n\n{content}" if len(lines) <= FEW else folded(f"{title}, {len(lines)} lines", content)]


def scales(records: dict[str, dict[str, Any]]) -> str:
    """Every study, and the scale of the result that is kept."""
    rows = []
    for name, study in studies().items():
        record = records.get(file_of(name).removesuffix(".json"), {})
        rows.append([f"`{name}`", study.line, record.get("scale", "not kept"), record.get("hardware_in_words", "")])
    meanings = "; ".join(f"{scale}: {meaning}" for scale, meaning in SCALES.items())
    return f"## Every study\n\nScales: {meanings}.\n\n{markdown(['study', 'what', 'scale', 'hardware'], rows)}"
