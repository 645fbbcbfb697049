"""The map of the source is true: its picture is what the imports give, and every path that it names is there."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import pytest
from scripts.imports import rooms
from scripts.rooms import PICTURE, SOURCE, WORDS, drawn, levels, reduced

from tests.docs.pages import ROOT

_FILE = re.compile(r"[\w.*-]+\.(?:py|md|toml|txt|sh|svg|html|json|yml)")
_WRITTEN = {"layout.toml", "state.safetensors"}  # names of users' files


def named(page: str) -> list[str]:
    """Every path between backticks or behind an arrow of Markdown; `NAME` stands for any."""
    text = re.sub(r"^```.*?^```$", "", (ROOT / page).read_text(), flags=re.M | re.S)
    words = re.findall(r"`([^`\s]+)`", text) + re.findall(r"\]\(([^)]+)\)", text)
    paths = [word for word in words if re.fullmatch(r"[\w.*-]+(/[\w.*-]*)+", word) or _FILE.fullmatch(word)]
    return [path.replace("NAME", "*") for path in paths if path not in _WRITTEN]


def found(path: str) -> bool:
    """In the project, in the source, or in a system's folder."""
    places = (ROOT, SOURCE, *(SOURCE / "systems").iterdir())
    return any(next(place.glob(path.rstrip("/")), None) is not None for place in places if place.is_dir())


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_every_path_that_is_named_exists(page: str) -> None:
    assert len(named(page)) >= {"ARCHITECTURE.md": 60, "CONTRIBUTING.md": 4}[page]
    assert [path for path in named(page) if not found(path)] == []


def test_the_picture_is_what_the_imports_give_today() -> None:
    assert PICTURE.read_text() == drawn(SOURCE), "run `make docs`, or python scripts/rooms.py"


def test_every_room_is_drawn_with_its_words() -> None:
    shown = {element.text for element in ElementTree.parse(PICTURE).iter("{http://www.w3.org/2000/svg}text")}
    assert rooms(SOURCE).keys() - {"systems", "__main__"} == WORDS.keys()
    assert {*WORDS, *WORDS.values()} == shown


def test_arrows_that_others_imply_are_left_out() -> None:
    arrows = {"top": {"middle", "bottom"}, "middle": {"bottom"}, "bottom": set[str]()}
    assert reduced(arrows) == {"top": {"middle"}, "middle": {"bottom"}, "bottom": set()}
    assert levels(arrows) == {"top": 2, "middle": 1, "bottom": 0}


def test_the_map_is_two_pages() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text().split()) <= 1500
