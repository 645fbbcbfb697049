"""The README's "Measured" section: of each field one table, and beside it what its paper says."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fewer.studies.claims import VERDICTS

from .records import ROOT, markdown, placed, replaced, results

__all__ = ["page"]

MOST = 8  # rows of a table
# of each field the result, and the claim of its paper that stands above it
SHOWN = {
    "vision": ("vision-table2", "pgd-threshold"),
    "control": ("control-fig1", "majority-95"),
    "nowcast": ("nowcast-table1", "above-baseline-swin"),
    "cellfree": ("cellfree-fig2", "fig2-precision"),
}


def page(lines: list[dict[str, Any]]) -> str:
    """The README, with the ledger's lines beside its tables."""
    records, parts = results(), [verdicts(lines)]
    for paper, (name, claim) in SHOWN.items():
        parts.append(
            section(name, records[name], [line for line in lines if (line["paper"], line["name"]) == (paper, claim)])
        )
    bench = placed()["bench"][0]
    parts.append(section(bench, records[bench], []))
    return replaced((ROOT / "README.md").read_text(), "results", "results/", "\n\n".join(parts))


def verdicts(lines: list[dict[str, Any]]) -> str:
    """The ledger in a sentence."""
    kinds = Counter(line["verdict"] for line in lines)
    said = ", ".join(f"{kind}: {kinds[kind]}" for kind in VERDICTS)
    papers = len({line["paper"] for line in lines})
    return f"The {len(lines)} testable sentences of {papers} papers, each judged in [CLAIMS.md](CLAIMS.md): {said}."


def section(name: str, record: dict[str, Any], claims: list[dict[str, Any]]) -> str:
    """One result: what it is, what the paper says, the table, where it comes from."""
    shown = record.get("readme") or {"columns": record["columns"], "rows": record["rows"]}
    rows = shown["rows"][:MOST]
    origin = f"`{record['command']}`; {record['hardware_in_words']}; `results/{name}.json`."
    if len(rows) < len(shown["rows"]):
        origin += f" The first {len(rows)} of {len(shown['rows'])} rows."
    said = [
        f"The paper: {claim['says'].rstrip('.')}. Ours, *{claim['verdict']}*: {claim['numbers'] or claim['why']}"
        for claim in claims
    ]
    return "\n\n".join([f"**{record['title']}**", *said, markdown(shown["columns"], rows), origin])
