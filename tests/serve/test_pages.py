"""The pages in a real browser: the main action of each, no error in the console, no request elsewhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from fewer.bench.load import serving
from tests.serve.browsing import CHROMIUM, SIZES, Visit, scrolled, unnamed

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the path: apt install chromium")


@pytest.fixture(params=[("desk", "light"), ("phone", "dark")], ids="-".join)
def visit(request: pytest.FixtureRequest, browser: Any, server: serving) -> Visit:
    size, scheme = request.param
    return Visit(browser, server.url, SIZES[size], scheme)


def test_the_first_page_shows_each_system_and_leads_to_a_model(visit: Visit, tmp_path: Path) -> None:
    page = visit.page
    page.goto(visit.url)
    for task in ("cellfree", "vision"):
        page.wait_for_selector(f".tile[data-task={task}][data-drawn]")
    said = page.locator(".tile[data-task=vision]").inner_text()
    light = next(m for m in page.evaluate("fetch('/v1/models').then(a => a.json())") if m["name"] == "digits-3197")
    robust = round(100 * light["metrics"]["whole suite at 0.3"])
    assert f"{round(100 * light['removed'])}\u00a0% fewer weights" in said and f"right on {robust}\u00a0%" in said
    names = page.locator("#models tbody th a").all_inner_texts()
    assert sorted(names) == ["cellfree-80", "digits-3197", "digits-dense"]
    assert page.locator("#models thead small").filter(has_text="share of test images").count() >= 1
    page.locator("#examples button").first.click()
    page.wait_for_function("() => document.querySelector('#examples button').textContent === 'Copied'")
    page.screenshot(path=tmp_path / "index.png", full_page=True)
    page.get_by_role("link", name="digits-3197", exact=True).click()
    page.wait_for_selector("article[data-model='digits-3197'][data-label]")
    assert page.locator("article[data-model]").count() == 1  # of another architecture than the dense one
    visit.end(tmp_path / "chosen.png")


def test_a_click_on_the_map_shows_measurements_choice_and_ideal(visit: Visit, tmp_path: Path) -> None:
    page = visit.page
    page.goto(f"{visit.url}/cellfree")
    page.wait_for_selector("#walk[aria-pressed=true]")  # the phone walks by itself
    began = page.locator("#map").get_attribute("data-x")
    page.wait_for_function("was => document.getElementById('map').dataset.x !== was", arg=began)
    page.locator("#walk").click()
    box = page.locator("#map").bounding_box()
    page.mouse.click(box["x"] + 0.3 * box["width"], box["y"] + 0.6 * box["height"])
    page.wait_for_function("() => Math.abs(document.getElementById('map').dataset.x - 300) <= 4")
    x, y = (page.locator("#map").get_attribute(f"data-{axis}") for axis in "xy")
    found = page.evaluate(_ASKED, {"x_m": int(x), "y_m": int(y)})
    for place in ("measured", "chosen", "ideal"):
        wanted = [f"AP {one}" for one in found["access_points" if place == "chosen" else place]]
        page.wait_for_function(_NAMES, arg=[place, wanted])
    assert page.locator("#measured").inner_text().count("dBm") == 3
    page.wait_for_function("() => document.getElementById('gained').textContent.endsWith('instead of 100')")
    page.locator("#layer").check()
    page.wait_for_selector("#map[data-layer=right]")
    page.locator("#map").focus()
    page.keyboard.press("ArrowRight")
    assert abs(int(page.locator("#map").get_attribute("data-x")) - 320) <= 4
    visit.end(tmp_path / "cellfree.png")


_ASKED = """(place) => fetch("/v1/cellfree/place", { method: "POST", headers: { "content-type": "application/json" },
  body: JSON.stringify(place) }).then((answer) => answer.json())"""
_NAMES = """([place, wanted]) => {
  const shown = [...document.querySelectorAll(`#${place} li, #${place} > span:nth-child(3n + 1)`)];
  const names = shown.map((one) => one.textContent.split(/:| \\(/)[0]);  // what is said of one follows
  return JSON.stringify(names) === JSON.stringify(wanted);
}"""
_LABELS = """async () => {
  const { label } = await import("/static/cellfree/town.js");
  const context = document.getElementById("map").getContext("2d");
  const points = [[150, 150], [160, 158], [141, 162], [158, 140], [3, 3], [297, 150]];
  const taken = points.map(([x, y]) => ({ x: x - 11, y: y - 11, width: 22, height: 22 }));
  const room = { phone: [150, 175], taken, width: 300, height: 300 };
  points.forEach((point, n) => label(context, `Roof of house ${n}`, point, room));
  return taken;
}"""


def test_access_points_are_called_by_their_names_which_do_not_cover_one_another(browser: Any, server: serving) -> None:
    page = Visit(browser, server.url, SIZES["phone"], "light", reduced_motion="reduce").page

    def named(route: Any) -> None:
        answer = route.fetch()
        area = answer.json()
        route.fulfill(response=answer, json={**area, "names": [f"Süd {n}" for n in range(len(area["names"]))]})

    page.route("**/v1/cellfree/map*", named)
    page.goto(f"{server.url}/cellfree")
    page.wait_for_selector("#candidates .bar")
    shown = page.locator("#measured > span, #chosen li, #ideal li, #candidates > span").all_inner_texts()
    assert sum(text.startswith("Süd ") for text in shown) >= 3 + 1 + 1 + 11
    assert page.locator("#loudest").inner_text().endswith(" dBm")
    boxes = page.evaluate(_LABELS)
    for n, one in enumerate(boxes[6:], start=6):
        assert one["x"] >= 0 and one["x"] + one["width"] <= 300 and 0 <= one["y"] <= 270
        for other in boxes[6:n]:
            apart_x = one["x"] >= other["x"] + other["width"] or other["x"] >= one["x"] + one["width"]
            assert apart_x or one["y"] >= other["y"] + other["height"] or other["y"] >= one["y"] + one["height"]
    page.context.close()


def test_a_drawn_digit_is_read_and_the_attack_changes_an_ordinary_mind(visit: Visit, tmp_path: Path) -> None:
    page = visit.page
    page.goto(f"{visit.url}/vision")
    page.wait_for_selector(
        "article[data-model='digits-dense'][data-clean='3']:not([data-label='3'])"
    )  # it starts attacked
    assert page.locator("article[data-model='digits-3197']").get_attribute("data-label") == "3"
    assert "breaks at" in page.locator("article[data-model='digits-dense']").inner_text()
    told = page.locator("#verdict").inner_text().split()
    assert told == ["Now", "fooled:", "ordinary.", "Still", "right:", "pruned", "and", "hardened."]
    page.locator("#clear").click()
    assert page.locator("article[data-label]").count() == 0
    page.locator("#pad").focus()  # a stroke by keyboard: pen down in the upper middle, and straight down
    page.keyboard.press(" ")
    for _ in range(14):
        page.keyboard.press("ArrowDown")
    page.locator("article[data-clean='1']").nth(1).wait_for()  # a one, say both networks
    page.locator("#budget").fill("0")
    assert page.locator("#verdict").inner_text() == "Not attacked yet, and says 1: ordinary, pruned and hardened."
    slider, verdicts = page.locator("#budget").bounding_box(), page.locator("#verdict").bounding_box()
    page.mouse.wheel(0, 600)
    height = page.evaluate("window.innerHeight")
    assert all(one["y"] >= 0 and one["y"] + one["height"] <= height for one in (slider, verdicts))
    visit.end(tmp_path / "vision.png")


QUARTET = ["digits-dense", "digits-pruned", "digits-hardened", "digits-pruned-hardened"]


def test_four_networks_fit_a_screen_and_a_sentence_that_follows_the_slider(browser: Any) -> None:
    with serving(QUARTET) as server:
        page = Visit(browser, server.url, SIZES["desk"], "light").page
        page.goto(f"{server.url}/vision")
        page.wait_for_function("() => document.getElementById('verdict').textContent.includes('Still right')")
        cards = page.locator("article.network")
        assert cards.count() == 4
        for card in cards.all():
            box = card.bounding_box()
            assert box["y"] + box["height"] <= SIZES["desk"][1] and "breaks at" in card.inner_text()
        for budget in (1, 8, 25):
            page.locator("#budget").fill(str(budget))
            fooled = {one.inner_text().split("\n")[0] for one in cards.all() if "now says" in one.inner_text()}
            said = dict(re.findall(r"(Now fooled|Still right): ([a-z, ]+)\.", page.locator("#verdict").inner_text()))
            assert set(said.get("Now fooled", "").split(", ")) - {""} == fooled
            assert sum(len(names.split(", ")) for names in said.values()) == 4
        sizes = dict(zip(QUARTET, page.evaluate(_BITS, QUARTET)))
        assert sizes["digits-dense"].endswith("at 32 bit") and sizes["digits-hardened"].endswith("at 16 bit")
        page.context.close()


_BITS = """(names) => names.map((name) => document.querySelector(`[data-model='${name}'] > .soft`).textContent)"""
CLEARED = """() => {
  // clear while an answer about the digit is on its way
  const ask = window.fetch;
  window.fetch = (...words) => String(words[0]).includes("ladder")
    ? ask(...words).then((answer) => new Promise((done) => { window.deliver = () => done(answer); })) : ask(...words);
  document.getElementById("example").click();
}"""


def test_an_answer_that_comes_after_the_pad_was_cleared_is_not_shown(browser: Any, server: serving) -> None:
    page = Visit(browser, server.url, SIZES["desk"], "light").page
    page.goto(f"{server.url}/vision")
    page.wait_for_selector("article[data-label]")
    page.evaluate(CLEARED)
    page.wait_for_function("() => window.deliver")
    page.locator("#clear").click()
    page.evaluate("() => new Promise((done) => { window.deliver(); setTimeout(done, 0); })")
    page.evaluate("() => fetch('/healthz').then((answer) => answer.text())")  # by then it would have been shown
    assert set(page.locator(".network .verdict").all_inner_texts()) == {"draw something"}
    assert page.locator("article[data-label]").count() == 0
    page.context.close()


def test_a_server_that_is_gone_is_told_in_words_until_it_is_back(browser: Any, server: serving) -> None:
    page = Visit(browser, server.url, SIZES["phone"], "light").page
    page.goto(f"{server.url}/vision")
    page.wait_for_selector("article[data-label]")
    page.route("**/v1/**", lambda route: route.abort())
    page.locator("#example").click()
    page.wait_for_selector("#trouble:not([hidden])")
    assert page.locator("#trouble").inner_text().startswith("Cannot reach the server")
    page.unroute("**/v1/**")
    page.locator("#example").click()
    page.wait_for_selector("#trouble", state="hidden")
    page.context.close()


def test_a_finger_scrolls_the_page_over_a_picture_and_draws_on_the_pad(browser: Any, server: serving) -> None:
    visit = Visit(browser, server.url, (390, 500), "light", has_touch=True, reduced_motion="reduce")
    page = visit.page
    page.goto(f"{server.url}/cellfree")
    page.wait_for_selector("#candidates .bar")
    assert page.locator("#walk").get_attribute("aria-pressed") == "false"  # who wants no motion sees none
    before = page.locator("#map").get_attribute("data-x"), page.locator("#map").get_attribute("data-y")
    assert scrolled(page, "#map", least=50) >= 50
    assert (page.locator("#map").get_attribute("data-x"), page.locator("#map").get_attribute("data-y")) == before
    page.locator("#map").tap(position={"x": 40, "y": 60})
    page.wait_for_function("was => document.getElementById('map').dataset.x !== was", arg=before[0])
    page.goto(f"{server.url}/vision")
    page.wait_for_selector("article[data-label]")
    assert scrolled(page, ".seen canvas", least=50) >= 50
    assert scrolled(page, "#pad") == 0
    visit.page.context.close()


def test_the_keyboard_goes_from_the_header_through_every_control_in_reading_order(
    browser: Any, server: serving
) -> None:
    page = Visit(browser, server.url, SIZES["desk"], "light").page
    page.goto(f"{server.url}/vision")
    page.wait_for_selector("article[data-label]")
    met = []
    for _ in range(9):
        page.keyboard.press("Tab")
        met.append(page.evaluate("document.activeElement.id || document.activeElement.textContent"))
    assert met == ["fewer", "Cell-free radio", "Vision", "budget", "pad", "example", "clear", "steps", "group"]
    page.context.close()


def test_a_server_with_a_token_asks_for_it_once_in_a_tab(browser: Any, tmp_path: Path) -> None:
    with serving(["digits-dense"], "--token", "secret") as server:
        visit = Visit(browser, server.url, SIZES["desk"], "light")
        page = visit.page
        page.goto(f"{server.url}/vision")
        page.wait_for_url("**/token?next=%2Fvision")
        assert unnamed(page) == []
        page.get_by_label("Token").fill("wrong")
        page.get_by_role("button", name="Go on").click()
        page.wait_for_selector("#trouble:not([hidden])")
        page.get_by_label("Token").fill("secret")
        page.get_by_role("button", name="Go on").click()
        page.wait_for_url("**/vision")
        page.wait_for_selector("article[data-label]")
        page.goto(server.url)  # the same tab
        page.wait_for_selector("#models table")
        assert 'Bearer $FEWER_TOKEN"' in page.locator("#examples").inner_text()
        visit.faults = [fault for fault in visit.faults if "401" not in fault]  # the browser's own lines
        visit.end(tmp_path / "token.png")
        other = Visit(browser, server.url, SIZES["desk"], "light")  # another tab knows nothing of it
        other.page.goto(f"{server.url}/v1/models")
        assert other.page.get_by_label("Token").count() == 1
        other.page.context.close()


def test_a_page_that_is_not_there_leads_back(visit: Visit, tmp_path: Path) -> None:
    answer = visit.page.goto(f"{visit.url}/nowhere")
    assert answer.status == 404
    visit.faults.clear()  # the browser's own line about the 404
    visit.page.get_by_role("link", name="a list of its models").click()
    visit.page.wait_for_selector("#models table")
    visit.end(tmp_path / "missing.png")
