"""The README's "Measured" section: of each field one table, and beside it what its paper says."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fewer.studies.claims import VERDICTS

from .records import ROOT, markdown, placed, replaced, results

__all__ = ["page"]

MOST = 8  # rows of a table
SHOWN = {"vision": "vision-table2", "control": "control-fig1", "nowcast": "nowcast-table1", "cellfree": "cellfree-fig2"}


def page(lines: list[dict[str, Any]]) -> str:
    """The README, with the ledger's lines beside its tables."""
    records, chosen = results(), [*SHOWN.values(), placed()["bench"][0]]
    parts = [verdicts(lines), *(section(name, records[name], lines) for name in chosen)]
    return replaced((ROOT / "README.md").read_text(), "results", "results/", "\n\n".join(parts))


def verdicts(lines: list[dict[str, Any]]) -> str:
    """The ledger in a sentence."""
    kinds = Counter(line["verdict"] for line in lines)
    said = ", ".join(f"{kind}: {kinds[kind]}" for kind in VERDICTS)
    papers = len({line["paper"] for line in lines})
    return f"The {len(lines)} testable sentences of {papers} papers, each judged in [CLAIMS.md](CLAIMS.md): {said}."


def section(name: str, record: dict[str, Any], lines: list[dict[str, Any]]) -> str:
    """One result: what it is, what the paper says, the table, where it comes from."""
    shown = record.get("readme") or {"columns": record["columns"], "rows": record["rows"]}
    rows = shown["rows"][:MOST]
    origin = f"`{record['command']}`; {record['hardware_in_words']}; `results/{name}.json`."
    if len(rows) < len(shown["rows"]):
        origin += f" The first {len(rows)} of {len(shown['rows'])} rows."
    claim = next((line for line in lines if line["studies"][:1] == [record["study"]] and line["numbers"]), None)
    said = [f"The paper: {claim['says'].rstrip('.')}. Ours, *{claim['verdict']}*: {claim['numbers']}"] if claim else []
    return "\n\n".join([f"**{record['title']}**", *said, markdown(shown["columns"], rows), origin])
