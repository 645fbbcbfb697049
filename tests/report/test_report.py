"""The whole page of real runs: complete, offline, on a phone, light and dark."""

from __future__ import annotations

import contextlib
import html
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from fewer.cli import main
from fewer.core.engines.base import Training
from fewer.pruning.pruning import Pruning
from fewer.report.attacks import attack_curve, budgets
from fewer.report.chapter import chapter
from fewer.report.groups import grouped
from fewer.report.runs import measured_of
from fewer.report.sizes import sizes_of
from fewer.run.job import Job
from fewer.run.load import load
from tests.serve.browsing import CHROMIUM, violations


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    settings = ("network=mlp", "classes=3,7")
    short = Training(steps=30, batch=64)
    Job("vision", settings, short, seeds=(0, 1)).run(folder / "dense")
    Job("vision", settings, short, prune=Pruning("snip", 0.9)).run(folder / "snip90")
    Job("vision", settings, short, prune=Pruning("snip", 0.5), harden="fgsm:0.1").run(folder / "hardened")
    return folder


@pytest.fixture(scope="module")
def report(runs: Path) -> Path:
    place = runs / "report.html"
    words = ["report", *(str(runs / name) for name in ("dense", "snip90", "hardened")), "--attack", "fgsm:0.2"]
    with contextlib.redirect_stdout(io.StringIO()) as said:
        assert main([*words, "--limit", "50", "--compare", "-o", str(place)]) == 0
    place.with_suffix(".txt").write_text(said.getvalue())
    return place


def test_the_page_has_every_part_and_fetches_nothing(report: Path) -> None:
    text = report.read_text()
    for part in ("What was trained", "How well it went", "Learning", "Under attack", "Voting", "Size and speed",
                 "Seen: dense", "Seen: snip90", "Seen: hardened (hardened)",
                 "differences are real", "How to read this", "Where the numbers come from"):  # fmt: skip
        assert part in text, part
    fetched = re.findall(r'(?:src|href)="(?!data:|#)([^"]*)"', text) + re.findall(r"url\(([^)]*)\)|@import", text)
    assert fetched == []
    assert "Summary" in text and "against dense" in text and "Quality against sparsity" in text and "fgsm:0.2" in text
    told = re.search(r"The mean.{1,6}s accuracy is greater than that of (\d+) of (\d+) members", text)
    assert told and int(told[1]) <= int(told[2])


def test_the_page_opens_with_a_line_and_a_picture_of_each_system(report: Path) -> None:
    text = report.read_text()
    first = text[text.index("<section") : text.index("</section>")]
    assert "<h2>Summary</h2>" in first and re.search(r"[\d.]+ % fewer weights, accuracy [\d.]+ % instead of", first)
    for panel in ("weights left", "file, lossless", "one sample", "accuracy", "accuracy under attack"):
        assert f"<b>{panel}</b>" in first, panel
    assert first.count('class="track"') == 5 * 3 and "µs" in first
    apart = re.search(r"Difference from dense: \+?(−?[\d.]+) points \(([+−][\d.]+) to ([+−][\d.]+)\)", first)
    assert apart and ("not told apart" in first) == (apart[2].startswith("−") and apart[3].startswith("+"))


def test_a_run_has_one_colour_throughout(report: Path) -> None:
    text = report.read_text()
    names = ("dense", "snip90", "hardened")
    legends = re.findall(r'<i class="c(\d)"></i>([^<]*)</li>', text) + re.findall(r'dot c(\d)"></i>([^<]*)</td>', text)
    own = [(int(colour), name) for colour, name in legends if name in names]
    assert len(own) > 15 and set(own) == set(enumerate(names))


def test_one_seed_has_an_interval_and_every_card_its_change(runs: Path, tmp_path: Path) -> None:
    Job("vision", ("network=mlp", "classes=3,7"), Training(steps=30, batch=64)).run(tmp_path / "alone")
    (first,) = grouped([load(tmp_path / "alone")])
    found = first.metric("accuracy")
    assert found.low < found.mean < found.high and re.fullmatch(r"[\d,]+ test images", first.over)
    one = measured_of([load(tmp_path / "alone"), load(runs / "snip90")], ["none"])[0]
    cards = chapter(one, 20)[1]
    assert cards.count('class="card"') == cards.count("<em>") == 4 and "against alone" in cards


def test_differences_are_told_in_words_and_to_programs(
    runs: Path, report: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = report.with_suffix(".txt").read_text().splitlines()
    told = r"(Real|Not shown): hardened .* accuracy under fgsm:0.2, .* points .*\(the same 50 images, exact sign test, "
    assert any(re.match(told + r"Holm over \d comparisons\)", line) for line in said)
    text = report.read_text()
    first = re.sub("<[^>]*>", "", text[: text.index("</section>")])  # the summary says it, before any picture
    assert all(html.escape(line) in first for line in said[:-1])  # the last is the report's path
    real = sum(line.startswith("Real: ") for line in said)
    assert f"{real} of {len(said) - 1} differences are real" in first
    assert "fewer: " not in text[: text.index("</h1>")] and "3 networks, measured</h1>" in text
    words = ["report", str(runs / "snip90"), str(runs / "hardened"), "--attack", "none", "--compare", "--json"]
    assert main([*words, "-o", str(runs / "two.html")]) == 0
    (found,) = json.loads(capsys.readouterr().out)["differences"]
    assert found["real"] == (found["p"] < 0.05) and found["low"] <= found["difference"] <= found["high"]
    assert re.match("(Real|Not shown): hardened", found["said"]) and "Holm" not in found["said"]


def test_figures_on_the_page_are_those_of_the_runs(runs: Path, report: Path) -> None:
    found = json.loads((runs / "snip90" / "metrics.json").read_text())
    assert f"{100 * found['accuracy']:.1f} %" in report.read_text()


def test_attacks_can_be_left_out(runs: Path) -> None:
    place = runs / "calm.html"
    assert main(["report", str(runs / "snip90"), "--attack", "none", "-o", str(place)]) == 0
    assert "Under attack" not in place.read_text()


def test_a_wrong_attack_is_one_line(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = runs / "no.html"
    assert main(["report", str(runs / "snip90"), "--attack", "pgd:much", "-o", str(place)]) == 2
    assert capsys.readouterr().err.count("\n") == 1 and not place.exists()


def test_budgets_go_from_nothing_to_what_was_asked() -> None:
    found = budgets("pgd:0.2,steps=5+fgsm:0.1")
    assert [budget for budget, _ in found] == [0.0, 0.05, 0.1, 0.2]
    assert found[-1][1] == "pgd:0.2,steps=5+fgsm:0.1" and found[0][1] == "pgd:0,steps=5+fgsm:0"


def test_every_group_is_attacked_on_its_own_data(runs: Path, tmp_path: Path) -> None:
    Job("vision", ("network=mlp", "classes=0,1"), Training(steps=30, batch=64)).run(tmp_path / "other")
    both = grouped([load(runs / "snip90"), load(tmp_path / "other")])
    curves = attack_curve(both, "fgsm:0.1", 10_000)
    for group in both:
        assert curves[group.name][0].found.mean == pytest.approx(group.first.metrics["accuracy"])


def test_sizes_are_those_of_the_files(runs: Path) -> None:
    run = load(runs / "snip90")
    size = sizes_of(run)
    assert size.dense == 4 * sum(p.numel() for p in run.modules["net"].parameters())
    assert size.packed["int8"] < size.packed["float16"] < size.packed["float32"] < size.dense / 5
    assert size.torch_us > 0 and size.pack_us > 0 and not size.why


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    playwright = pytest.importorskip("playwright.sync_api", reason="no playwright")
    if CHROMIUM is None:
        pytest.skip("no chromium on the path: apt install chromium")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.mark.parametrize("width", [390, 1280])
def test_it_fits_a_phone_and_a_desk_and_turns_dark(report: Path, browser: object, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme="light")  # type: ignore[attr-defined]
    page = context.new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(report.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    assert violations(page) == []
    page.click("#theme")
    assert page.evaluate(background) != light and violations(page) == []
    page.click("#theme")
    assert page.evaluate(background) == light
    page.locator(".track").first.scroll_into_view_if_needed()
    page.locator(".track").first.hover()
    assert "weights left" in page.locator("#tip").inner_text()
    assert page.locator(".panel").first.bounding_box()["width"] > 100
    assert said == [] and [url for url in asked if not url.startswith(("file:", "data:"))] == []
    context.close()
