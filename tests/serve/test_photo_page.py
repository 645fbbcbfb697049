"""A photograph on the page: chosen, attacked, judged by the two networks of the zoo, whose classes have names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fewer.bench.load import serving
from tests.serve.browsing import CHROMIUM, SIZES, Visit

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the path: apt install chromium")
PACKS = ["photos-pruned", "photos-hardened"]


def test_a_photograph_is_chosen_attacked_and_judged_by_name(browser: Any, tmp_path: Path) -> None:
    with serving(["digits-dense", *PACKS]) as server:
        visit = Visit(browser, server.url, SIZES["desk"], "light")
        page = visit.page
        page.goto(f"{server.url}/vision")
        page.wait_for_selector("article[data-model='digits-dense'][data-label]")  # a digit first
        page.locator("[data-kind=photo]").click()
        page.wait_for_selector("article[data-model='photos-pruned'][data-clean='0']")
        assert page.locator("article[data-model='digits-dense']").count() == 0
        assert page.locator("#shown").inner_text() == "This is an airplane."
        page.locator("#steps").select_option("1")
        page.locator("[data-photo=ship]").click()
        for name in PACKS:
            page.wait_for_selector(f"article[data-model='{name}'][data-clean='8']")
        page.locator("#budget").fill("0")
        assert page.locator("#said").inner_text() == "0.0\u00a0% (0/255)"
        assert page.locator(".network .verdict").all_inner_texts() == ["says ship", "says ship"]
        changed = "document.querySelectorAll('.network canvas')[1].toDataURL()"
        before = page.evaluate(changed)
        page.locator("#budget").fill("16")
        assert page.locator("#said").inner_text() == "6.3\u00a0% (16/255)"
        pruned = page.locator("article[data-model='photos-pruned']")
        assert pruned.locator(".verdict").inner_text().startswith("said ship, now says ")
        assert pruned.locator(".breaks").inner_text().endswith("/255)")
        assert page.evaluate(changed) != before
        visit.end(tmp_path / "photograph.png")


def test_a_page_of_photographs_alone_asks_for_no_digit(browser: Any, tmp_path: Path) -> None:
    with serving(["photos-pruned"]) as server:
        visit = Visit(browser, server.url, SIZES["phone"], "dark")
        visit.page.goto(f"{server.url}/vision")
        visit.page.wait_for_selector("article[data-model='photos-pruned'][data-clean='0']")
        assert not visit.page.locator("#kinds").is_visible() and not visit.page.locator("#pad").is_visible()
        visit.end(tmp_path / "alone.png")


def test_class_names_travel_in_the_pack_and_are_listed() -> None:
    from fewer.serve.models import open_models
    from fewer.systems.vision.service import VisionService

    models = open_models(["photos-pruned", "digits-dense"])
    service = VisionService("vision", models)
    assert service.described(models[0])["classes"][8] == "ship"
    assert "classes" not in service.described(models[1])
