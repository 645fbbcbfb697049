"""A pack in a notebook."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import numpy as np

from fewer import zoo
from fewer.packs.pack import load, write
from fewer.packs.program import Input, Node, Program
from fewer.packs.show import pack_shown, removed


class Cells(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags, self.cells = set[str](), list[str]()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: object) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.cells.append(data)

    def after(self, name: str) -> str:
        return self.cells[self.cells.index(name) + 1]


def test_a_pack_shows_what_goes_in_what_is_kept_and_how_well_it_did() -> None:
    pack = load(zoo.path("digits-9348"))
    found = Cells(pack._repr_html_())
    assert found.after("x, given to net") == "1 x 28 x 28, float32"
    assert found.after("weights removed") == "96.8%" and found.after("of the prunable ones") == "97.0%"
    assert found.after("accuracy") == f"{pack.settings['metrics']['accuracy']:.4f}"
    assert found.cells[0] == "vision: net" and any("network=small-cnn" in cell for cell in found.cells)


def test_every_pack_of_the_zoo_shows_itself_in_little_room_and_without_colours_of_its_own() -> None:
    for name in zoo.names():
        text = load(zoo.path(name))._repr_html_()
        assert (
            len(text) < 5000 and "style" not in text and Cells(text).tags <= {"table", "caption", "tr", "th", "td", "p"}
        )


def test_names_from_the_file_are_shown_as_text_and_nan_is_left_out(tmp_path: Path) -> None:
    program = Program((Input("<b>x</b>", (2,), "float32"),), (Node("linear", ("<b>x</b>", "w"), "y"),), ("y",))
    settings = {"task": "<script>", "metrics": {"loss": float("nan"), "score": 3}}
    mask = np.array([[True, False], [False, False]])
    write(tmp_path / "odd.pack", program, {"w": np.ones((2, 2), np.float32)}, masks={"w": mask}, settings=settings)
    pack = load(tmp_path / "odd.pack")
    text = pack_shown(pack)
    assert "<script>" not in text and "<b>" not in text and "loss" not in text
    assert removed(pack) == 0.75 and Cells(text).after("score") == "3"
