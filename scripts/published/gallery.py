"""docs/gallery.md: every picture of a kept result, what the paper says of it, and the command that draws it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from fewer.core.registry import systems
from fewer.studies.claims import VERDICTS

from .picture import FIELDS
from .records import placed, results
from .tables import pictures

__all__ = ["page"]

HEAD = """# Gallery

Pictures that studies drew from the results they kept; under each stands the command that makes it (`DIR` is a folder of
your own). Their tables, notes, files and all commands from nothing are in `RESULTS.md` of the repository.

![the same job with less, in four fields](fewer.png){ .wide }

""" + "\n".join(f"![{field}: the same job with less](fewer-{field}.png){{ .narrow loading=lazy }}" for field in FIELDS)


def page(lines: Sequence[dict[str, Any]]) -> str:
    """All of them, field by field, beside the ledger's lines."""
    parts, records = [HEAD], results()
    for family, names in placed().items():
        shown = [(name, pictures(name, records[name])) for name in names]
        if any(drawn for _, drawn in shown):
            parts.append(f"## {systems()[family].description.heading if family in systems() else 'All systems'}")
        for name, drawn in shown:
            if drawn:
                parts += _entry(
                    records[name], drawn, [line for line in lines if records[name].get("study") in line["studies"]]
                )
    return "\n\n".join(parts) + "\n"


def _entry(record: dict[str, Any], drawn: Sequence[str], claims: Sequence[dict[str, Any]]) -> list[str]:
    """One result: a short heading, its pictures, what came out of it, what it shows exactly and how it is made."""
    title = record["title"]
    short = re.split("[;,]", title)[0]
    parts = [f"### {short}", *(f"![{short}]({picture})" for picture in drawn)]
    if claims:
        parts.append(_judged(claims))
    return [*parts, f"{title}.", f"`{record['command']}`; {record['hardware_in_words']}."]


def _judged(claims: Sequence[dict[str, Any]]) -> str:
    """The first sentence that the study tests, with its verdict, and how many others there are of each kind."""
    first, kinds = claims[0], Counter(line["verdict"] for line in claims)
    told = f"The paper: {first['says'].rstrip('.')}. Here: **{first['verdict']}**."
    if len(claims) > 1:
        every = ", ".join(f"{kind} {kinds[kind]}" for kind in VERDICTS if kinds[kind])
        told += f" Of [its {len(claims)} sentences](claims.md) on this: {every}."
    return told
