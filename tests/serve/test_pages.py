"""The pages in a real browser: the main action of each, no error in the console, no request elsewhere."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fewer.bench.load import serving
from tests.waiting import GIVE_UP_SECONDS

CHROMIUM = next((path for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if path), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the path: apt install chromium")
sync_api = pytest.importorskip("playwright.sync_api", reason="no playwright: pip install playwright")

SIZES = {"desk": (1200, 900), "phone": (390, 844)}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as play:
        found = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


class Visit:
    """A page that remembers what went wrong and where it asked."""

    def __init__(self, browser: Any, url: str, size: tuple[int, int], scheme: str, *, touch: bool = False) -> None:
        self.url, self.faults, self.elsewhere = url, list[str](), list[str]()
        viewport = {"width": size[0], "height": size[1]}
        context = browser.new_context(viewport=viewport, color_scheme=scheme, has_touch=touch)
        context.set_default_timeout(1000 * GIVE_UP_SECONDS)
        self.page = context.new_page()
        self.page.on(
            "console", lambda said: self.faults.append(said.text) if said.type in ("error", "warning") else None
        )
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on(
            "request", lambda asked: None if asked.url.startswith((url, "data:")) else self.elsewhere.append(asked.url)
        )

    def end(self, picture: Path) -> None:
        """Nothing went wrong, nothing is wider than the window, and a picture was taken."""
        wide = self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        self.page.screenshot(path=picture, full_page=True)
        assert self.faults == [] and self.elsewhere == [] and wide <= 0
        assert picture.stat().st_size > 5000
        self.page.context.close()


@pytest.fixture(params=[("desk", "light"), ("phone", "dark")], ids="-".join)
def visit(request: pytest.FixtureRequest, browser: Any, server: serving) -> Visit:
    size, scheme = request.param
    return Visit(browser, server.url, SIZES[size], scheme)


def test_the_first_page_lists_the_models_and_leads_to_their_pages(visit: Visit, tmp_path: Path) -> None:
    visit.page.goto(visit.url)
    visit.page.wait_for_selector("#models article")
    names = visit.page.locator("#models h2").all_inner_texts()
    assert names == ["cellfree-80", "digits-dense", "digits-3197"]
    visit.page.get_by_role("link", name="cellfree", exact=True).click()
    visit.page.wait_for_url("**/cellfree")
    visit.page.wait_for_selector("#candidates .bar")
    visit.end(tmp_path / "index.png")


def test_a_click_on_the_map_shows_measurements_choice_and_ideal(visit: Visit, tmp_path: Path) -> None:
    page = visit.page
    page.goto(f"{visit.url}/cellfree")
    page.wait_for_selector("#candidates .bar")
    first = page.locator("#measured").inner_text()
    box = page.locator("#map").bounding_box()
    with page.expect_response("**/v1/cellfree/place") as answered:
        page.mouse.click(box["x"] + 0.3 * box["width"], box["y"] + 0.6 * box["height"])
    found = answered.value.json()
    page.wait_for_function("before => document.getElementById('measured').innerText !== before", arg=first)
    assert page.locator("#measured .bar").count() == 3
    chosen = [text.split()[0] for text in page.locator("#chosen li").all_inner_texts()]
    ideal = [text.split()[0] for text in page.locator("#ideal li").all_inner_texts()]
    assert chosen == [str(one) for one in found["access_points"]] and ideal == [str(one) for one in found["ideal"]]
    assert abs(int(page.locator("#map").get_attribute("data-x")) - 300) <= 3
    page.locator("#map").focus()
    with page.expect_response("**/v1/cellfree/place"):
        page.keyboard.press("ArrowRight")
    assert abs(int(page.locator("#map").get_attribute("data-x")) - 320) <= 4
    visit.end(tmp_path / "cellfree.png")


def test_a_drawn_digit_is_read_and_the_attack_changes_an_ordinary_mind(visit: Visit, tmp_path: Path) -> None:
    page = visit.page
    page.goto(f"{visit.url}/vision")
    page.wait_for_selector("article[data-label]")
    page.locator("#clear").click()
    assert page.locator("article[data-label]").count() == 0
    box = page.locator("#pad").bounding_box()
    at = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in ((0.5, 0.2), (0.5, 0.4), (0.5, 0.8))]
    page.mouse.move(*at[0])
    page.mouse.down()
    for place in at[1:]:
        page.mouse.move(*place, steps=6)
    page.mouse.up()
    page.locator("article[data-label='1']").nth(1).wait_for()  # a stroke is a one, say both networks
    page.locator("#budget").fill("0.3")
    page.wait_for_selector("article[data-model='digits-dense'][data-clean='1']:not([data-label='1'])")
    assert "now says" in page.locator("article[data-model='digits-dense'] .verdict").inner_text()
    visit.end(tmp_path / "vision.png")


CLEARED = """() => {
  // clear while an answer about the digit is on its way
  const ask = window.fetch;
  window.fetch = (...words) => String(words[0]).includes("attack")
    ? ask(...words).then((answer) => new Promise((done) => { window.deliver = () => done(answer); })) : ask(...words);
  document.getElementById("example").click();
}"""


def test_an_answer_that_comes_after_the_pad_was_cleared_is_not_shown(visit: Visit, tmp_path: Path) -> None:
    page = visit.page
    page.goto(f"{visit.url}/vision")
    page.wait_for_selector("article[data-label]")
    page.evaluate(CLEARED)
    page.wait_for_function("() => window.deliver")
    page.locator("#clear").click()
    page.evaluate("() => new Promise((done) => { window.deliver(); setTimeout(done, 0); })")
    page.evaluate("() => fetch('/healthz').then((answer) => answer.text())")  # by then it would have been shown
    assert set(page.locator(".verdict").all_inner_texts()) == {"draw something"}
    assert page.locator("article[data-label]").count() == 0
    visit.end(tmp_path / "cleared.png")


def scrolled(page: Any, place: str) -> float:
    """How far the page moves when a finger pushes it up by 120 pixels from the middle of an element."""
    element = page.locator(place).first
    element.evaluate("one => one.scrollIntoView({ block: 'center', behavior: 'instant' })")
    settled = "() => new Promise((done) => { let was; const look = () => { if (was === scrollY) done(scrollY); "
    settled += "was = scrollY; setTimeout(look, 100); }; look(); })"
    before, box = page.evaluate(settled), element.bounding_box()  # a finger's push goes on for a while
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    session = page.context.new_cdp_session(page)
    session.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
    for up in range(10, 130, 10):
        session.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [{"x": x, "y": y - up}]})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return float(page.evaluate("window.scrollY") - before)


def test_a_finger_scrolls_the_page_over_a_picture_and_draws_on_the_pad(browser: Any, server: serving) -> None:
    visit = Visit(browser, server.url, (390, 500), "light", touch=True)
    page = visit.page
    page.goto(f"{server.url}/cellfree")
    page.wait_for_selector("#candidates .bar")
    before = page.locator("#map").get_attribute("data-x"), page.locator("#map").get_attribute("data-y")
    assert scrolled(page, "#map") > 50
    assert (page.locator("#map").get_attribute("data-x"), page.locator("#map").get_attribute("data-y")) == before
    page.locator("#map").tap(position={"x": 40, "y": 60})
    page.wait_for_function("was => document.getElementById('map').dataset.x !== was", arg=before[0])
    page.goto(f"{server.url}/vision")
    page.wait_for_selector("article[data-label]")
    assert scrolled(page, ".seen canvas") > 50
    assert scrolled(page, "#pad") == 0
    visit.page.context.close()


def unnamed(page: Any) -> list[str]:
    """Controls and pictures that a screen reader cannot tell, as Chromium's accessibility tree has them."""
    session = page.context.new_cdp_session(page)
    session.send("Accessibility.enable")
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    roles = ("slider", "checkbox", "combobox", "button", "link", "image", "img", "Canvas", "application", "textbox")
    found = [node for node in nodes if not node.get("ignored") and node["role"]["value"] in roles]
    assert found
    return [str(node["role"]) for node in found if not node.get("name", {}).get("value", "").strip()]


def test_every_control_and_picture_has_a_name(browser: Any, server: serving) -> None:
    visit = Visit(browser, server.url, SIZES["desk"], "light")
    for path, ready in (("", "#models article"), ("cellfree", "#candidates .bar"), ("vision", "article[data-label]")):
        visit.page.goto(f"{server.url}/{path}")
        visit.page.wait_for_selector(ready)
        assert unnamed(visit.page) == [], path
    assert visit.page.get_by_role("slider", name="Attack budget").count() == 1
    visit.page.context.close()


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
        page.wait_for_selector("#models article")
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
    visit.page.wait_for_selector("#models article")
    visit.end(tmp_path / "missing.png")


def test_a_policy_is_watched_at_work_and_dragged_to_fewer_weights(browser: Any, tmp_path: Path) -> None:
    pytest.importorskip("mujoco", reason="no MuJoCo: pip install 'fewer[control]'")
    names = ["control-walker2d", "control-hopper-99", "control-hopper-dense", "control-hopper-95"]
    with serving(names) as server:
        visit = Visit(browser, server.url, SIZES["phone"], "light")
        page = visit.page
        page.goto(f"{server.url}/control")
        page.wait_for_selector("#stage[data-model='control-hopper-dense']")  # most policies, dense first
        page.wait_for_selector("#stage:not([data-frame='0'])")
        assert page.locator("#verdict").inner_text().startswith("Still going")
        assert page.locator("#stops span").all_inner_texts() == ["0 %", "94 %", "98 %"]
        assert unnamed(page) == [] and page.get_by_role("slider", name="Weights removed").count() == 1
        page.locator("#sparsity").fill("1")
        page.wait_for_selector("#stage[data-model='control-hopper-95']")
        assert page.locator("#removed").inner_text() == "94 %"
        page.locator("#sparsity").press("ArrowRight")
        page.wait_for_selector("#stage[data-model='control-hopper-99']")
        assert page.locator("#verdict").inner_text().startswith("Fell")
        page.screenshot(path=tmp_path / "fallen.png", full_page=True)
        page.locator("#world").select_option("Walker2d-v5")
        page.wait_for_selector("#stage[data-model='control-walker2d']")
        assert page.locator("#choose").is_hidden()  # one policy: nothing to drag
        visit.end(tmp_path / "control.png")


def test_the_hours_are_scrubbed_and_members_toggled(browser: Any, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="no torch: pip install 'fewer[nowcast]'")
    with serving(["nowcast-80", "nowcast-90"]) as server:
        visit = Visit(browser, server.url, SIZES["desk"], "dark")
        page = visit.page
        page.goto(f"{server.url}/nowcast")
        page.wait_for_selector("#forecast[data-window='0']")  # the weather is made first
        assert unnamed(page) == [] and page.get_by_role("slider", name="Time ahead").count() == 1
        drawn = "document.getElementById('forecast').toDataURL()"
        pictures = {page.evaluate(drawn)}
        page.locator("#lead").fill("31")
        assert page.locator("#when").inner_text() == "8 h 00 min ahead"
        page.locator("#lead").fill("1")
        assert page.locator("#when").inner_text() == "0 h 30 min ahead"
        pictures.add(page.evaluate(drawn))
        assert page.locator("#who").inner_text() == "mean of 2 networks"
        page.locator("#members input[value='nowcast-90']").uncheck()
        assert page.locator("#who").inner_text() == "nowcast-80"
        pictures.add(page.evaluate(drawn))
        page.locator("#members input[value='nowcast-80']").uncheck()
        assert page.locator("#verdict").inner_text() == "Choose at least one network"
        page.locator("#members input[value='nowcast-80']").check()
        page.locator("#members input[value='nowcast-90']").check()
        assert len(pictures) == 3  # another hour, another member: another picture
        page.locator("#play").click()
        page.wait_for_selector("#forecast:not([data-step='1'])")  # it moves by itself
        page.locator("#play").click()
        page.locator("#other").click()
        page.wait_for_selector("#forecast[data-window='1']")
        visit.end(tmp_path / "nowcast.png")
