"""The pages as text, where there is no browser: every control and picture has a name, and few of them take touches."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import fewer.serve

STATIC = Path(fewer.serve.__file__).parent / "static"
PAGES = sorted(STATIC.glob("*.html"))
LABELABLE = ("button", "input", "meter", "output", "progress", "select", "textarea")  # as HTML defines it


class Named(HTMLParser):
    """Which controls and pictures have which names; a label that names nobody binds its first labelable element."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.named: dict[str, str] = {}  # by id
        self.label: tuple[str, str] | None = None  # the element that the open label binds, "" as yet, and its words
        self.elements: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = {key: value or "" for key, value in attributes}
        if tag == "label":
            self.label = found.get("for", ""), ""
        if tag in ("input", "select", "canvas", "button", "textarea"):
            self.elements.append((tag, found["id"]))
        if tag in LABELABLE and self.label is not None and not self.label[0]:
            self.label = found["id"], self.label[1]
        if name := found.get("aria-label", ""):
            self.named[found["id"]] = name

    def handle_endtag(self, tag: str) -> None:
        if tag == "label" and self.label is not None:
            self.named[self.label[0]] = self.label[1].strip()
            self.label = None

    def handle_data(self, data: str) -> None:
        if self.label is not None:
            self.label = self.label[0], self.label[1] + data
        elif self.elements and self.elements[-1][0] == "button":
            self.named.setdefault(self.elements[-1][1], data.strip())


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_every_control_and_picture_of_a_page_has_a_name(page: Path) -> None:
    found = Named(page.read_text())
    assert [element for element in found.elements if not found.named.get(element[1])] == []


def test_a_label_around_an_output_names_the_output_and_not_the_slider() -> None:
    found = Named('<label>Budget <output id="said">0</output><input id="budget" type="range"></label>')
    assert "budget" not in found.named and found.named["said"]


def test_only_the_pad_takes_every_touch_and_the_map_leaves_scrolling() -> None:
    rules = dict(re.findall(r"([^{}]+)\{[^{}]*touch-action: ([a-z-]+)", (STATIC / "base.css").read_text()))
    assert {selector.strip().split("\n")[-1]: value for selector, value in rules.items()} == {
        "#map": "pan-y",
        "#pad": "none",
        "#scores": "pan-y",
        "#stage": "pan-y",
    }
