"""A real browser for the tests of pages: visits that remember what went wrong, and looks at what people meet."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import GIVE_UP_SECONDS

__all__ = ["CHROMIUM", "SIZES", "Visit", "scrolled", "unnamed", "violations"]

CHROMIUM = next((path for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if path), None)
SIZES = {"desk": (1280, 800), "phone": (390, 844)}


class Visit:
    """A page that remembers what went wrong and where it asked."""

    def __init__(self, browser: Any, url: str, size: tuple[int, int], scheme: str, **options: Any) -> None:
        self.url, self.faults, self.elsewhere = url, list[str](), list[str]()
        viewport = {"width": size[0], "height": size[1]}
        context = browser.new_context(viewport=viewport, color_scheme=scheme, **options)
        context.add_init_script(_WATCHED)
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
        assert picture.stat().st_size > 5000
        assert unnamed(self.page) == [] and violations(self.page) == []
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


_WATCHED = """window.shifted = 0;
new PerformanceObserver((list) => {
  for (const one of list.getEntries()) if (!one.hadRecentInput) window.shifted += one.value;
}).observe({ type: "layout-shift", buffered: true });
window.painted = 0;
new PerformanceObserver((list) => { for (const one of list.getEntries()) window.painted = one.startTime; })
  .observe({ type: "largest-contentful-paint", buffered: true });"""


def violations(page: Any) -> list[str]:
    """What axe finds wrong on a page: names, contrast, order of headings and all its other rules."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="no axe: make install")
    found = axe.Axe().run(page).response["violations"]
    return [f"{one['id']}: {node['html'][:120]}" for one in found for node in one["nodes"]]


def scrolled(page: Any, place: str, least: float = 0.0) -> float:
    """How far the page moves when a finger pushes it up by 120 pixels from the middle; waited for where it has to."""
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
    page.wait_for_function(f"() => window.scrollY >= {before + least}")
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return float(page.evaluate("window.scrollY") - before)
