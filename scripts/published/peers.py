"""The measured part of docs/peers.md: against which tools which ratios were found, from the kept benches."""

from __future__ import annotations

from .records import ROOT, markdown, replaced, results

__all__ = ["page"]

SHOWN = ("bench-sparse", "bench-attack", "bench-radar", "bench-nowcast", "bench-cohort")


def page() -> str:
    """The page with its tables."""
    records = results()
    parts = []
    for name in SHOWN:
        record = records[name]
        parts += [f"### {record['title']}", markdown(record["columns"], record["rows"])]
        parts.append(f"`{record['command']}`; {record['hardware_in_words']}; {record['made']}; `results/{name}.json`.")
    return replaced((ROOT / "docs" / "peers.md").read_text(), "benches", "results/", "\n\n".join(parts))
