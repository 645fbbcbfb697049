"""The documentation builds without a complaint, asks nobody else for anything, and leaves no method out."""

from __future__ import annotations

import argparse
import html
import json
import re
from pathlib import Path

import pytest

import fewer
from fewer import zoo
from fewer.attack.attacks import ATTACKS, OPTIONS
from fewer.attack.hardening import KINDS
from fewer.cli import offered, parser
from fewer.cli.verbs.tasks import describe_any
from fewer.core.registry import systems
from fewer.ensemble import HOW
from fewer.pruning.criteria import CRITERIA
from tests.docs.pages import DOCS, blocks

METHODS = (DOCS / "methods.md").read_text()


def test_every_page_is_built_and_no_link_is_broken(site: Path) -> None:
    pages = {path.relative_to(DOCS).with_suffix(".html") for path in DOCS.rglob("*.md")}
    assert all((site / page).is_file() for page in pages)  # --strict refuses broken links and pages left out


def test_every_fence_of_a_page_is_a_block_of_code_of_its_site(site: Path) -> None:
    for page in DOCS.rglob("*.md"):
        built = (site / page.relative_to(DOCS).with_suffix(".html")).read_text()
        assert built.count("<pre><span></span>") == sum(block.kind != "data" for block in blocks(page)), page


def test_a_page_loads_nothing_from_elsewhere(site: Path) -> None:
    for path in [*site.rglob("*.html"), *site.rglob("*.css")]:
        text = path.read_text()
        loaded = re.findall(r"""<(?:script|img|iframe|source)[^>]*\bsrc=["']?([^"' >]+)""", text)
        loaded += re.findall(r"""<link[^>]*\bhref=["']?([^"' >]+)""", text)
        loaded += re.findall(r"""url\(["']?([^"')]+)""", text) + re.findall(r"""@import\s+["']([^"']+)""", text)
        assert loaded or path.suffix == ".css"
        assert not [place for place in loaded if re.match(r"(https?:)?//", place)], path


@pytest.mark.parametrize("name", sorted({*CRITERIA, *OPTIONS, *KINDS, *HOW, "set", "rigl", "gradual", "rounds"}))
def test_every_method_is_explained(name: str) -> None:
    assert re.search(rf"[`:,= ]{re.escape(name)}\b", METHODS), name


def test_every_criterion_and_attack_that_is_registered_is_listed_in_its_own_words() -> None:
    for option, registry in (("--prune", CRITERIA), ("--attack", ATTACKS)):
        assert re.findall(rf"^\| `{option} ([\w-]+)` \| \S", METHODS, re.M) == list(registry)


def test_every_section_on_a_method_says_when_it_fails() -> None:
    chapters = ("# Methods", "Which weights are kept", "When they are removed", "Attacks", "The suite")
    parts = [part for part in re.split(r"^#{2,3} ", METHODS, flags=re.M) if not part.startswith(chapters)]
    assert len(parts) >= 17
    assert [part.split("\n")[0] for part in parts if "**Fails**" not in part and "| fails |" not in part] == []


def test_every_public_name_verb_and_setting_is_in_the_reference() -> None:
    api, verbs, settings = ((DOCS / f"{name}.md").read_text() for name in ("reference", "verbs", "settings"))
    assert [name for name in fewer.__all__ if f"### `fewer.{name}`\n" not in api] == []
    assert [verb for verb in offered() if f"\n## fewer {verb}\n" not in verbs] == []
    for name in systems():
        assert [row[0] for row in describe_any(name) if f"| `{row[0]}` |" not in settings] == []


def test_every_pack_that_is_shipped_has_a_card() -> None:
    cards = (DOCS / "models.md").read_text()
    assert [name for name in zoo.names() if f"\n## {name}\n" not in cards] == []


def test_every_system_page_starts_with_its_picture_and_its_command() -> None:
    for name in systems():
        head = (DOCS / f"tutorials/{name}.md").read_text().split("\n## ")[0]
        assert re.search(r"!\[[^\]]+\]\(\.\./[\w-]+\.(png|svg)\)", head) and f"`fewer train {name}" in head, name


def test_every_task_has_a_tutorial() -> None:
    assert {path.stem for path in (DOCS / "tutorials").glob("*.md")} == {*systems(), "own"}


def options(verb: argparse.ArgumentParser) -> set[str]:
    """Of a verb and of its parts, such as those of `fewer data`."""
    parts = [action.choices for action in verb._actions if isinstance(action.choices, dict)]
    own = {option for action in verb._actions for option in action.option_strings}
    return own.union(*(options(part) for choices in parts for part in choices.values()))


def test_every_verb_named_in_prose_exists_with_its_options() -> None:
    known = {verb: options(part) for verb, part in parser().verbs.items()}
    for page in DOCS.rglob("*.md"):
        prose = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)
        for line in re.findall(r"`fewer ([^`]+)`", prose):
            verb, *words = line.split()
            if verb == "VERB":
                continue
            assert verb in known, f"{page.name}: fewer {line}"
            assert {word for word in words if word.startswith("--")} <= known[verb] | {"--out"}, f"{page.name}: {line}"


def test_the_search_finds_every_public_name_verb_method_and_setting(site: Path) -> None:
    found = json.loads((site / "search" / "search_index.json").read_text())
    text = " ".join(html.unescape(re.sub("<[^>]*>", " ", f"{part['title']} {part['text']}")) for part in found["docs"])

    def tokens(words: str) -> set[str]:
        return {part for part in re.split(found["config"]["separator"], words.lower()) if part}

    settings = {row[0] for name in systems() for row in describe_any(name)}
    wanted = {*fewer.__all__, *offered(), *CRITERIA, *OPTIONS, *KINDS, *HOW, *settings}
    known = tokens(text)
    assert [one for one in wanted if not tokens(one) <= known] == []


def test_every_picture_says_how_large_it_is_before_it_arrives(site: Path) -> None:
    shown = [tag for path in site.rglob("*.html") for tag in re.findall(r"<img\b[^>]*>", path.read_text())]
    assert len(shown) > 20 and [tag for tag in shown if "width=" not in tag or "height=" not in tag] == []
