"""Somebody who follows a page, and nothing else, arrives: every command and every piece of Python in it works."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.docs.pages import DOCS, blocks, commands, run_page

PAGES = sorted(path.relative_to(DOCS) for path in DOCS.rglob("*.md"))
# need a server that runs beside them, and an installed package: see test_service and systems/test_installed
APART = {Path("service.md"), Path("system.md")}


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(1)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("FEWER_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("page", [page for page in PAGES if page not in APART], ids=str)
def test_everything_a_page_tells_to_do_works(page: Path) -> None:
    run_page(DOCS / page)


@pytest.mark.parametrize("task", ["cellfree", "control", "nowcast", "own", "vision"])
def test_a_tutorial_goes_from_nothing_to_a_pack(task: str) -> None:
    lines = [
        words for block in blocks(DOCS / f"tutorials/{task}.md") if block.kind == "sh" for words in commands(block)
    ]
    verbs = [words[1] for words in lines if words[0] == "fewer"]
    if "check" in verbs:  # before it a network that is trained already is pruned, trained and packed in Python
        verbs = verbs[verbs.index("check") :]
    assert verbs.index("train") < verbs.index("pack")
