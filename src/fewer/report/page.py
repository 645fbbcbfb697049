"""One self-contained page: no request, readable on a phone, light and dark; its one script is the button for that."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fewer.core.html_table import table_rows
from fewer.report.style import COLOURS, SCRIPT, STYLE

__all__ = ["Card", "Page", "abreast", "cards", "details", "figure", "heading", "items", "table", "words"]


Card = tuple[str, str, str]  # a large figure, what it is, and its change


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    prose: bool = False,
    colours: Sequence[int] = (),
) -> str:
    """Rows under a head; with `prose` the later cells are sentences, which wrap; `colours` mark rows."""
    head = "".join(f'<th scope="col">{html.escape(str(name))}</th>' for name in columns)
    kind = "table wide" if prose else "table"
    top = f"<thead><tr>{head}</tr></thead>" if any(columns) else ""
    # a wide table scrolls by itself, also by the keyboard, and the page stays where it is
    label = html.escape(f"table: {', '.join(str(name) for name in columns if name)}")
    body = _marked(table_rows(rows), colours)
    inside = f"<table>{top}<tbody>{body}</tbody></table>"
    return f'<div class="{kind}" tabindex="0" role="group" aria-label="{label}">{inside}</div>'


def _marked(body: str, colours: Sequence[int]) -> str:
    """The first cell of each row after a dot of its colour."""
    first, *rest = body.split("<tr><td>")
    dots = [f'<i class="dot c{colour % COLOURS}"></i>' for colour in colours] or [""] * len(rest)
    return first + "".join(f"<tr><td>{dot}{row}" for dot, row in zip(dots, rest))


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
        anchors = [f"{number}-{_anchor(head)}" for number, (head, _) in enumerate(self.sections, 1)]
        links = "".join(
            f'<a href="#{anchor}">{html.escape(head.partition(":")[0])}</a>'
            for anchor, (head, _) in zip(anchors, self.sections)
        )
        body = "".join(
            f'<section id="{anchor}"><h2>{html.escape(head)}</h2>{content}</section>'
            for anchor, (head, content) in zip(anchors, self.sections)
        )
        return (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width,initial-scale=1"><link rel="icon" href="data:,">'
            f"<title>{html.escape(self.title)}</title><style>{STYLE}</style></head><body>"
            '<button id="theme" hidden title="light or dark" aria-label="dark page"></button>'
            f'<header><h1>{html.escape(self.title)}</h1><p class="lead">{html.escape(self.lead)}</p>'
            f'<nav aria-label="sections">{links}</nav></header><main>{body}</main>'
            '<div id="tip" role="status" hidden></div>'
            f"<footer><p>Written by fewer; nothing on this page is fetched from elsewhere.</p></footer>"
            f"<script>{SCRIPT}</script></body></html>\n"
        )


def _anchor(heading: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")


def words(text: str) -> str:
    """A paragraph."""
    return f"<p>{html.escape(text)}</p>"


def items(lines: Iterable[str]) -> str:
    """A list of sentences whose first part stands out."""
    parts = (html.escape(line).partition(", ") for line in lines)
    lists = (f'<li><b>{head}</b><span class="soft">{comma}{rest}</span></li>' for head, comma, rest in parts)
    return f"<ul>{''.join(lists)}</ul>"


def heading(text: str) -> str:
    """Of a part of a section."""
    return f"<h3>{html.escape(text)}</h3>"


def figure(content: str, caption: str) -> str:
    """A picture or chart with what it shows."""
    return f"<figure>{content}<figcaption>{html.escape(caption)}</figcaption></figure>"


def abreast(*parts: str) -> str:
    """Beside each other where there is room."""
    return f'<div class="pair">{"".join(parts)}</div>'


def cards(found: Iterable[Card]) -> str:
    """Large numbers, each with what it is and how it changed."""
    shown = "".join(
        f'<div class="card"><b>{html.escape(large)}</b><span>{html.escape(what)}</span>'
        + (f"<em>{html.escape(change)}</em>" if change else "")
        + "</div>"
        for large, what, change in found
    )
    return f'<div class="cards">{shown}</div>'


def details(summary: str, content: str) -> str:
    """What only some want to read, behind a line that opens it."""
    return f"<details><summary>{html.escape(summary)}</summary>{content}</details>"
