"""A real browser for the tests of pages: visits that remember what went wrong, and looks at what people meet."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from tests.waiting import GIVE_UP_SECONDS

__all__ = ["CHROMIUM", "SIZES", "Visit", "faint", "scrolled", "unnamed"]

CHROMIUM = next((path for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if path), None)
SIZES = {"desk": (1280, 800), "phone": (390, 844)}


class Visit:
    """A page that remembers what went wrong and where it asked."""

    def __init__(self, browser: Any, url: str, size: tuple[int, int], scheme: str, **options: Any) -> None:
        self.url, self.faults, self.elsewhere = url, list[str](), list[str]()
        viewport = {"width": size[0], "height": size[1]}
        context = browser.new_context(viewport=viewport, color_scheme=scheme, **options)
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
        """Nothing went wrong, nothing is wider than the window, all can be read, and a picture was taken."""
        wide = self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        self.page.screenshot(path=picture, full_page=True)
        assert self.faults == [] and self.elsewhere == [] and wide <= 0
        assert unnamed(self.page) == [] and faint(self.page) == []
        assert picture.stat().st_size > 5000
        self.page.context.close()


def unnamed(page: Any) -> list[str]:
    """Controls and pictures that a screen reader cannot tell, as Chromium's accessibility tree has them."""
    session = page.context.new_cdp_session(page)
    session.send("Accessibility.enable")
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    roles = ("slider", "checkbox", "combobox", "button", "link", "image", "img", "Canvas", "application", "textbox")
    found = [node for node in nodes if not node.get("ignored") and node["role"]["value"] in roles]
    assert found
    return [str(node["role"]) for node in found if not node.get("name", {}).get("value", "").strip()]


_FAINT = """() => {
  const number = (text) => text.match(/[\\d.]+/g).map(Number);
  const linear = (v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => [r, g, b].map((v) => linear(v / 255))
    .reduce((sum, v, n) => sum + v * [0.2126, 0.7152, 0.0722][n], 0);
  const behind = (one) => {
    for (let at = one; at; at = at.parentElement) {
      const found = number(getComputedStyle(at).backgroundColor);
      if (found.length === 3 || found[3] === 1) return found;
    }
    return [255, 255, 255];
  };
  const texts = [...document.querySelectorAll("body *")].filter((one) => one.checkVisibility()
    && [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()) && !one.disabled);
  return texts.map((one) => {
    const style = getComputedStyle(one);
    const [a, b] = [light(number(style.color)), light(behind(one))].sort((x, y) => y - x);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    return [(a + 0.05) / (b + 0.05), large ? 3 : 4.5, one.textContent.trim().slice(0, 40)];
  }).filter(([ratio, least]) => ratio < least).map(([ratio, , text]) => `${ratio.toFixed(2)}: ${text}`);
}"""


def faint(page: Any) -> list[str]:
    """Texts with less contrast than WCAG's AA asks for."""
    found: list[str] = page.evaluate(_FAINT)
    return found


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
