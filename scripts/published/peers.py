"""The measured parts of docs/peers.md: against which tools which ratios were found, from the kept benches."""

from __future__ import annotations

import re
from typing import Any

from .records import ROOT, markdown, replaced, results

__all__ = ["page"]

SHOWN = {  # the result: what is compared, and with what
    "bench-speed": ("speed of packs", "onnxruntime, dense"),
    "bench-sparse": ("speed and size of pruned layers", "torch, onnxruntime, numpy, scipy"),
    "bench-attack": ("speed of attacks", "foolbox"),
    "bench-offline": ("policies from the same logs: scores, updates a second", "d3rlpy"),
    "bench-radar": ("rain extrapolated from radar: IoU and time", "pysteps"),
    "bench-nowcast": ("speed of training Swin-UNETR", "eager MONAI"),
    "bench-cohort": ("speed of many trainings at once", "one by one, on a GPU"),
}


def page() -> str:
    """The page with its tables."""
    records = results()
    parts = []
    for name in SHOWN:
        record = records[name]
        short = record.get("readme") if name == "bench-speed" else None  # all its rows are in RESULTS.md
        parts += [f"### {record['title']}", markdown((short or record)["columns"], (short or record)["rows"])]
        parts.append(f"`{record['command']}`; {record['hardware_in_words']}; {record['made']}; `results/{name}.json`.")
    text = replaced((ROOT / "docs" / "peers.md").read_text(), "benches", "results/", "\n\n".join(parts))
    return replaced(text, "ratios", "results/", _ranges(records))


def _ranges(records: dict[str, dict[str, Any]]) -> str:
    """Of each comparison the range of its ratios, and how often `fewer` was behind."""
    rows = []
    for name, (what, against) in SHOWN.items():
        cells = [str(cell) for row in records[name]["rows"] for cell in _compared(records[name]["columns"], row)]
        found = [float(match[1]) for cell in cells if (match := re.match(r"([\d.]+)x", cell))]
        behind = sum(ratio < 1 for ratio in found)
        rows.append([what, against, f"{min(found):.3g} to {max(found):.3g}", f"{behind} of {len(found)}"])
    return markdown(["compared", "with", "ratio", "behind in"], rows)


def _compared(columns: list[str], row: list[Any]) -> list[Any]:
    """The cells that hold ratios, and not what was required."""
    return [cell for name, cell in zip(columns, row) if name == "ratio" or name.endswith(" %")]
