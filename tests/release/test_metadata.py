"""What a package index shows of this project, and what an installation may change of a user's environment."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from scripts.release.lower_bounds import lowest, requirements
from scripts.release.tag import PLACES, disagreements

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]


@pytest.mark.parametrize("extra", [name for name in EXTRAS if name != "dev"])
def test_no_users_extra_pins_or_caps_a_version(extra: str) -> None:
    for word in requirements(extra):
        assert re.match(r"^[\w-]+(\[\w+\])?>=[\w.]+(;.*)?$", word), word  # torch, mujoco, ray and all others


def test_what_is_tested_with_lies_inside_the_ranges() -> None:
    pinned = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().split())
    for word in requirements("all"):
        name, bound = re.match(r"^([\w-]+)(?:\[\w+\])?>=([\w.]+)", word).groups()  # type: ignore[union-attr]
        parts = [int(part) for part in bound.split(".")]
        assert [int(part) for part in re.findall(r"\d+", pinned[name])][: len(parts)] >= parts, name


def test_everything_that_make_installs_is_pinned() -> None:
    pinned = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().split())
    waiting, seen = [Requirement(word) for word in requirements("dev")], set[tuple[str, str]]()
    while waiting:
        asked = waiting.pop()
        name = re.sub(r"[-_.]+", "-", asked.name).lower()
        new = {(name, extra) for extra in {"", *asked.extras}} - seen
        if name == "triton" or name.startswith(("nvidia-", "cuda-")) or (asked.marker and not asked.marker.evaluate()):
            continue  # what torch's builds for GPUs ask for goes with torch
        seen |= new
        if importlib.metadata.version(name).partition("+")[0] == pinned.get(name):
            for word in importlib.metadata.requires(name) or []:
                child = Requirement(word)
                if any(child.marker is None or child.marker.evaluate({"extra": extra}) for _, extra in new):
                    child.marker = None
                    waiting.append(child)
    assert not {name for name, _ in seen} - set(pinned)
    assert len(seen) > 100


def test_the_lowest_versions_are_the_bounds() -> None:
    assert "torch==2.11" in lowest("train") and "numpy==2.0" in lowest("")
    assert not [word for word in lowest("all") if ">=" in word]


def test_the_metadata_is_complete() -> None:
    assert PROJECT["authors"] == [{"name": "fewer contributors"}]
    assert PROJECT["urls"]["Repository"].startswith("https://") and PROJECT["keywords"]
    for version in ("3.11", "3.12", "3.13"):
        assert f"Programming Language :: Python :: {version}" in PROJECT["classifiers"]


def test_the_address_is_spelt_in_one_file_alone() -> None:
    address = PROJECT["urls"]["Repository"].removeprefix("https://")
    places = [*ROOT.glob("*.*"), *(p for folder in ("docs", "src", ".github") for p in (ROOT / folder).rglob("*.*"))]
    texts = [p for p in places if p.is_file() and p.suffix in {".md", ".py", ".toml", ".yml", ".cff", ".in"}]
    assert [path.name for path in texts if address in path.read_text()] == ["pyproject.toml"]


def test_a_tag_is_refused_until_every_file_that_names_the_version_names_its_own(tmp_path: Path) -> None:
    for name in PLACES:
        text, version = (ROOT / name).read_text(), PROJECT["version"]
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        text = text.replace(f"## {version.removesuffix('.dev0')}, in the making", "## 7.8.9").replace(version, "7.8.9")
        (tmp_path / name).write_text(re.sub(r"(?m)^(version:) .*$", r"\1 7.8.9", text))
    assert disagreements("v7.8.9", tmp_path) == []
    assert len(disagreements("v7.8.8", tmp_path)) == len(PLACES)
    assert len(disagreements("7.8.9", tmp_path)) == len(disagreements("v7.8.9.dev0", tmp_path)) == 1
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 7.8.9, in the making\n\n## 7.8.9\n")
    assert [line.split()[0] for line in disagreements("v7.8.9", tmp_path)] == ["CHANGELOG.md"]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="only a repository knows what is tracked")
def test_the_source_distribution_holds_everything_that_is_tracked() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    lines = [line.split() for line in (ROOT / "MANIFEST.in").read_text().splitlines()]
    folders = {name for verb, *names in filter(None, lines) if verb == "graft" for name in names}
    files = {name for verb, *names in filter(None, lines) if verb == "include" for name in names}
    always = {"MANIFEST.in", "LICENSE", "pyproject.toml", "setup.py"}  # setuptools puts them in unasked
    assert {name.partition("/")[0] for name in tracked} - folders - files - always == {".gitignore"}


@pytest.fixture(scope="module")
def description() -> str:
    """The long description that goes to the index."""
    command = [sys.executable, "setup.py", "--long-description"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_no_link_of_the_description_needs_the_repository(description: str) -> None:
    targets = re.findall(r"\]\(([^)\s]+)\)", description)
    assert len(targets) >= 3 and all(target.startswith(("https://", "#")) for target in targets), targets
    images = re.findall(r"!\[[^\]]*\]\(([^)\s]+)\)", description)
    assert images and all("/raw/v" in image for image in images)  # a page about an image is no image


@pytest.mark.skipif(importlib.util.find_spec("comrak") is None, reason="readme-renderer[md] is not installed")
def test_the_description_renders(description: str) -> None:
    from readme_renderer import markdown

    page = markdown.render(description)
    assert page is not None and "<table" in page and "<img" in page
