"""Pages as lists of blocks, and their commands run as printed, but small."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fewer.cli import main

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_BLOCK = re.compile(r"^<!-- data: (?P<data>\w+) -->|^```(?P<kind>[^\n]+)\n(?P<text>.*?)^```$", re.M | re.S)

# what is added to a command so that it takes seconds; everything printed in the page stays
_SMALL: dict[str, list[str]] = {
    "vision": ["--steps", "12", "--batch", "8", "--set", "network=cnn0"],
    "cellfree": ["--steps", "12", "--set", "train_phones=150", "--set", "test_phones=80", "--set", "pixel_m=20"],
    "control": ["--steps", "12", "--batch", "16", "--set", "fqe_steps=20", "--set", "episodes=1", "--set",
                "horizon=20"],
    "nowcast": ["--steps", "3", "--batch", "2", "--set", "width=4"],
}  # fmt: skip


class Block(NamedTuple):
    """`kind` is data, sh, python, text or another language; `word` what stands beside it."""

    kind: str
    word: str
    text: str


def blocks(page: Path) -> list[Block]:
    """In the order of the page."""
    found = []
    for match in _BLOCK.finditer(page.read_text()):
        if match["data"]:
            found.append(Block("data", match["data"], ""))
        else:
            kind, _, word = match["kind"].partition(" ")
            found.append(Block(kind, word.strip("{ .}"), match["text"]))
    return found


def commands(block: Block) -> list[list[str]]:
    """The words of every line of a shell block; comments and continued lines as the shell takes them."""
    lines = block.text.replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def run_page(page: Path) -> None:
    """Everything that the page tells its reader to do, in the present folder."""
    for block in blocks(page):
        if block.kind == "data":
            MAKERS[block.word]()
        elif block.word.startswith("title="):
            Path(block.word.split('"')[1]).write_text(block.text.replace("steps = 300", "steps = 5"))
        elif block.kind == "sh":
            for words in commands(block):
                if words[:2] != ["pip", "install"]:
                    assert words[0] == "fewer", words
                    assert main(small(words[1:])) == 0, " ".join(words)
        elif block.kind == "python":
            exec(compile(block.text, page.name, "exec"), {"__name__": "page"})


def small(words: list[str]) -> list[str]:
    """The same command on less."""
    more: list[str] = []
    if words[0] in ("train", "smallest"):
        more = list(_SMALL.get(words[1], ["--steps", "20", "--batch", "16"]))
        more += ["--max-loss", "9"] if words[0] == "smallest" else []
        if words[1] == "nowcast":
            more += ["--validate-every", "2"] if "--validate-every" in words else []
        if "--harden" in words:
            more += ["--harden", words[words.index("--harden") + 1] + ",steps=2"]
    elif words[0] == "evaluate" and "--limit" in words:
        more = ["--limit", "4"]
        words = [f"{word},queries=20" if word.startswith("suite:") else word for word in words]
    elif words[0] == "report":
        more = ["--limit", "4"]
    elif words[:2] == ["data", "control"] and "--transitions" in words:
        more = ["--transitions", "400"]
    elif words[:2] == ["data", "nowcast"] and "--generate" in words:
        more = ["--size", "24", "--windows", "2"]
    return [*words, *more]


def photos() -> None:
    """Three classes of grey squares, each brightest in another corner."""
    from PIL import Image

    random = np.random.default_rng(0)
    for number, name in enumerate(("bolt", "nut", "washer")):
        folder = Path("photos") / name
        folder.mkdir(parents=True)
        for index in range(1, 61):
            pixels = random.integers(0, 60, (28, 28))
            row, column = divmod(number, 2)
            pixels[row * 14 : row * 14 + 14, column * 14 : column * 14 + 14] += 120
            Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{index:04d}.png")


def drive() -> None:
    """Twelve access points heard along a walk, the weak ones not."""
    random = np.random.default_rng(1)
    points = random.uniform(0, 300, (12, 2)).round(1)
    names = [f"ap{index}@{x}:{y}" for index, (x, y) in enumerate(points)]
    lines = [",".join(["x_m", "y_m", *names])]
    for place in random.uniform(0, 300, (300, 2)).round(1):
        distance = np.hypot(*(points - place).T) + 10
        heard = -60 - 37.6 * np.log10(distance / 10) + random.normal(0, 4, 12)
        cells = [f"{value:.1f}" if value > -115 else "" for value in heard]
        lines.append(",".join([*map(str, place), *cells]))
    Path("drive.csv").write_text("\n".join(lines) + "\n")


MAKERS: dict[str, Callable[[], Any]] = {"drive": drive, "photos": photos}
