"""How results show themselves in a notebook: a small table, no style of its own, nothing fetched."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["shown", "table_rows"]


def shown(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], notes: Sequence[str] = ()) -> str:
    """HTML of a table under a title, with sentences below it.

    >>> shown("sizes", ["what", "bytes"], [["a <pack>", 1200]])
    '<table><caption>sizes</caption><tr><th>what</th><th>bytes</th></tr><tr><td>a &lt;pack&gt;</td><td>1,200</td></tr></table>'
    """  # noqa: E501  one line of HTML
    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    body = table_rows(rows)
    below = "".join(f"<p>{html.escape(note)}</p>" for note in notes)
    return f"<table><caption>{html.escape(title)}</caption><tr>{head}</tr>{body}</table>{below}"


def table_rows(rows: Iterable[Sequence[Any]]) -> str:
    """HTML of rows of any table."""
    return "".join("<tr>" + "".join(f"<td>{html.escape(_text(cell))}</td>" for cell in row) + "</tr>" for row in rows)


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
