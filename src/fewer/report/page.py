"""One self-contained page: no script, no request, readable on a phone, light and dark."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Page", "table"]

_STYLE = """
:root{--ink:#1b1f24;--paper:#fff;--soft:#68707a;--rule:#d9dee4;--c0:#0b6bcb;--c1:#c2410c;--c2:#15803d;--c3:#7c3aed;
--c4:#b45309;--c5:#be185d}
@media (prefers-color-scheme:dark){:root{--ink:#e6e9ed;--paper:#14171b;--soft:#9aa4af;--rule:#333a42;--c0:#6cb2ff;
--c1:#ff9d6c;--c2:#6fd08c;--c3:#b79bff;--c4:#f2b45c;--c5:#ff8fc0}}
body{font:16px/1.55 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:46rem;margin:2rem auto;
padding:0 1rem}h1{font-size:1.7rem;line-height:1.2}h2{margin-top:2.2rem;border-bottom:1px solid var(--rule)}
table{border-collapse:collapse;display:block;overflow-x:auto;font-variant-numeric:tabular-nums}
td,th{padding:.3rem .7rem;text-align:right;border-bottom:1px solid var(--rule);white-space:nowrap}
td:first-child,th:first-child{text-align:left}th{color:var(--soft);font-weight:600}
svg{width:100%;height:auto}svg text{font:12px system-ui,sans-serif;fill:var(--ink)}.grid{stroke:var(--rule)}
.line{fill:none;stroke-width:2}figure{margin:1rem 0}figcaption,.soft{color:var(--soft);font-size:.9rem}
.digits{display:flex;flex-wrap:wrap;gap:.5rem}.digits figure{margin:0;text-align:center}
img{image-rendering:pixelated;max-width:100%}
""" + "".join(f".line.c{n}{{stroke:var(--c{n})}}text.c{n},rect.c{n}{{fill:var(--c{n})}}" for n in range(6))


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Figures with a head."""
    head = "".join(f"<th>{html.escape(str(name))}</th>" for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(_cell(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@dataclass
class Page:
    """Sections of HTML under a title."""

    title: str
    lead: str = ""
    sections: list[tuple[str, str]] = field(default_factory=list)

    def add(self, heading: str, *parts: str) -> None:
        """A section; parts are HTML, words go through `words`."""
        self.sections.append((heading, "".join(parts)))

    def html(self) -> str:
        """The whole file."""
        body = "".join(f"<section><h2>{html.escape(head)}</h2>{content}</section>" for head, content in self.sections)
        return (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width,initial-scale=1">'
            f"<title>{html.escape(self.title)}</title><style>{_STYLE}</style></head><body>"
            f"<h1>{html.escape(self.title)}</h1><p>{html.escape(self.lead)}</p>{body}</body></html>\n"
        )


def words(text: str) -> str:
    """A paragraph."""
    return f"<p>{html.escape(text)}</p>"


def figure(content: str, caption: str) -> str:
    """A picture or chart with what it shows."""
    return f"<figure>{content}<figcaption>{html.escape(caption)}</figcaption></figure>"


def facts(found: Mapping[str, Any]) -> str:
    """Names and values."""
    return table(["", ""], list(found.items()))
