"""The ledger of claims as a page: how many verdicts of each kind, then every claim, paper by paper."""

from __future__ import annotations

from typing import Any

from fewer.core.registry import systems
from fewer.studies.claims import VERDICTS, counted

from .records import markdown

__all__ = ["page"]

HEAD = """# What the papers say, and what came out here

Every claim of the papers, in our words, with the study that tests it where that can be done (`fewer reproduce STUDY`)
and our numbers. Code judges it from the files in `results/`; `fewer reproduce --claims --out results` prints the same,
and judges results of your own. p is of a two-sided permutation test over seeds; behind it stands p corrected for all
tests of the same paper (Holm)."""


def page(lines: list[dict[str, Any]]) -> str:
    """All of it."""
    parts = [HEAD, "\n".join(f"- **{kind}**: {meaning}" for kind, meaning in VERDICTS.items()), counts(lines)]
    for paper in counted(lines):
        own = [line for line in lines if line["paper"] == paper]
        title = systems()[paper].paper
        parts += [f"## {paper}", *([f"Paper: {title}."] if title else []), claims(own)]
    return "\n\n".join(parts) + "\n"


def counts(lines: list[dict[str, Any]]) -> str:
    """Verdicts of each kind, and the share that could be tested."""
    rows, found = [], counted(lines)
    for paper, kinds in {**found, "all": {kind: sum(own[kind] for own in found.values()) for kind in VERDICTS}}.items():
        total = sum(kinds.values())
        rows.append([paper, *kinds.values(), total, f"{1 - kinds['untestable'] / max(total, 1):.0%}"])
    return markdown(["paper", *VERDICTS, "claims", "tested"], rows)


def claims(lines: list[dict[str, Any]]) -> str:
    """A row for each."""
    rows = []
    for line in lines:
        ours = "<br>".join(line[part] for part in ("numbers", "data", "why") if line[part])
        p = "" if line["p"] is None else f"{line['p']:.2g} ({line['corrected']:.2g})"
        places = ", ".join(f"`{study}`" for study in line["studies"])
        rows.append([line["where"], line["says"], f"**{line['verdict']}**", ours, p, places])
    return markdown(["where", "the paper says", "verdict", "ours", "p (corrected)", "study"], rows)
