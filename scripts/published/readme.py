"""The README's "Measured" section: of each field one short table, and beside it what its paper says."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fewer.studies.claims import VERDICTS
from fewer.studies.matrix.picture import shares, uncertain

from .records import ROOT, markdown, replaced, results

__all__ = ["page"]

HELD = 0.95  # of the dense figure: the same job


@dataclass(frozen=True)
class Shown:
    """Which result stands for a field, which of its rows and columns, and the claim of the paper above it."""

    result: str
    claim: str = ""
    columns: Sequence[str] = ()  # none: all of them
    where: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # values that a column may have


SHOWN = {
    "vision": Shown(
        "vision-table2", "pgd-threshold",
        ("scale", "weights", "recipe", "seeds", "clean", "PGD-40", "paper, clean", "paper, PGD-40"),
        {"recipe": ["cured"]},
    ),
    "control": Shown(
        "control-fig1", "majority-95",
        ("environment", "algorithm", "0 %", "95 %", "95 % in % of dense", "the paper at 95 %"),
    ),
    "nowcast": Shown("nowcast-table1", "above-baseline-swin"),
    "cellfree": Shown(
        "cellfree-fig2", "fig2-precision",
        ("access points", "candidates", "metric", "paper", "literal, areas of the setup",
         "masks, scaling, FFT maps, areas of the setup"),
        {"metric": ["precision", "recall"], "access points": [100]},
    ),
    "bench": Shown("bench-speed"),
}  # fmt: skip


def page(lines: list[dict[str, Any]]) -> str:
    """The README, with the ledger's lines beside its tables."""
    records, parts = results(), [verdicts(lines)]
    for paper, shown in SHOWN.items():
        claims = [line for line in lines if (line["paper"], line["name"]) == (paper, shown.claim)]
        parts.append(section(shown, records[shown.result], claims))
        if paper == "control":
            parts[-1] += f" {by_default(records['control-defaults'])}"
    parts += every_method(records["matrix"])
    return replaced((ROOT / "README.md").read_text(), "results", "results/", "\n\n".join(parts))


def by_default(record: dict[str, Any]) -> str:
    """What the recipe keeps of the better dense network, on logs that it was not chosen on, in a sentence."""
    kept = dict[str, dict[str, str]]()
    for row in record["rows"]:
        algorithm, environment, *_, share = row[: record["columns"].index("% of the better dense") + 1]
        kept.setdefault(algorithm, {})[environment] = f"{float(share):.0f}"
    said = "; ".join(
        f"{algorithm} {', '.join(f'{share} ({where})' for where, share in shares.items())}"
        for algorithm, shares in kept.items()
    )
    return f"By default, {record['title'].partition(': ')[2]}, in % of the better dense network: {said}."


def every_method(record: dict[str, Any]) -> list[str]:
    """The matrix as its picture, with what its axes are; a quick one says too little to be shown."""
    if record["scale"] != "full" or "matrix.png" not in record["figures"]:
        return []
    vague = uncertain(record["rows"])
    known = {task: cells for task, cells in shares(record["rows"]).items() if task not in vague}
    found = [share for cells in known.values() for share in cells.values()]
    held = sum(share >= HELD for share in found)
    _, _, cut = record["title"].partition("; cut: ")
    title = f"What each way of pruning leaves: {', '.join([*known, *vague])}"
    said = (
        f"Down: how weights are chosen; across: the share that is removed; in a cell: what is left of the dense "
        f"network's figure, in percent, mean of the seeds. On {' and '.join(known)} {held} of {len(found)} cells keep "
        f"{HELD:.0%} or more; {sum(map(math.isnan, found))} could not be trained, those with a star not with every "
        "seed."
    )
    for task, half in vague.items():
        said += f" On {task} dense seeds alone differ by ± {half:.0%}: too much to judge its cells."
    origin = f"`{record['command']}`; {record['hardware_in_words']}; `results/matrix.json`."
    if cut:
        origin += f" Not run: {cut.replace('; ', ', ')}."
    return [f"**{title}**", f"![{title}](docs/matrix.png)", said, origin]


def verdicts(lines: list[dict[str, Any]]) -> str:
    """The ledger in a sentence."""
    kinds = Counter(line["verdict"] for line in lines)
    said = ", ".join(f"{kind}: {kinds[kind]}" for kind in VERDICTS)
    papers = len({line["paper"] for line in lines})
    return f"{len(lines)} sentences of {papers} papers, each judged in [CLAIMS.md](CLAIMS.md): {said}."


def section(shown: Shown, record: dict[str, Any], claims: list[dict[str, Any]]) -> str:
    """One result: what it is, what the paper says, the table, where it comes from."""
    columns, rows = chosen(shown, record)
    origin = f"`{record['command']}`; {record['hardware_in_words']}; `results/{shown.result}.json`"
    if len(rows) < len(record["rows"]):
        origin += f", {len(rows)} of its {len(record['rows'])} rows"
    said = [f"The paper: {claim['says'].rstrip('.')}. Here: *{claim['verdict']}*." for claim in claims]
    return "\n\n".join([f"**{record['title']}**", *said, markdown(columns, rows), f"{origin}."])


def chosen(shown: Shown, record: dict[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """The table, or the part of it that is shown."""
    table = record.get("readme") if not shown.columns else None
    columns, rows = (table or record)["columns"], (table or record)["rows"]
    kept = [row for row in rows if all(row[columns.index(name)] in values for name, values in shown.where.items())]
    places = [columns.index(name) for name in shown.columns or columns]
    return [columns[place] for place in places], [[row[place] for place in places] for row in kept]
