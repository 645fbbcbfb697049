"""What a browser meets on every page: `python -m tests.looks [REPORT.html ...]` prints a table (`make docs` first).

Of each page at desk and phone size, light and dark: what axe finds wrong, how much moved while it opened (CLS), when
its largest text or picture was painted (LCP), when its live pictures were there, and what the console said. Times
depend on how busy the machine is, and stand beside its load; the tests judge all the others.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from fewer.bench.load import serving
from tests.serve.browsing import CHROMIUM, SIZES, Visit, violations

__all__ = ["COMPLETE", "Look", "browsed", "look", "pages_of"]

SITE = Path(__file__).parents[1] / "build" / "site"
SCHEMES = ("light", "dark")
STILL = 0.02  # a shift that nobody sees; Chromium calls up to 0.1 good
# what each page of the service shows when it is complete; pages that move are looked at while they do
COMPLETE = {
    "": "document.querySelectorAll('.tile[data-drawn]').length === 4",
    "vision": "document.getElementById('verdict').textContent.length > 9",
    "cellfree": "document.getElementById('whole').textContent.length > 9",
    "control": "document.getElementById('stage').dataset.films > 1",
    "nowcast": "document.getElementById('map').dataset.step > 2",
}


@dataclass(frozen=True)
class Look:
    """One page in one size and scheme."""

    violations: list[str]
    shifted: float
    painted_ms: float
    complete_ms: float
    faults: list[str]  # what the console said, and what was asked of others

    @property
    def clean(self) -> bool:
        return not self.violations and not self.faults and self.shifted < STILL


def look(browser: Any, root: str, path: str, size: str, scheme: str, complete: str = "true") -> Look:
    """Open it, touch nothing, and wait until it is complete."""
    visit = Visit(browser, root, SIZES[size], scheme)
    visit.page.goto(f"{root}/{path}")
    visit.page.wait_for_function(f"() => {complete}")
    there = visit.page.evaluate("performance.now()")
    found = visit.page.evaluate("[window.shifted, window.painted]")
    seen = Look(violations(visit.page), found[0], found[1], there, [*visit.faults, *visit.elsewhere])
    visit.page.context.close()
    return seen


@contextmanager
def browsed(folder: Path) -> Iterator[str]:
    """The address at which a folder can be read by a browser."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *said: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def pages_of(site: Path) -> list[str]:
    """All pages of the documentation."""
    return sorted(str(path.relative_to(site)) for path in site.rglob("*.html") if path.name != "404.html")


def table(browser: Any, root: str, pages: Iterable[tuple[str, str]]) -> Iterator[str]:
    """A row for each page: the worst of all sizes and schemes."""
    for path, complete in pages:
        looks = [look(browser, root, path, size, scheme, complete) for size in SIZES for scheme in SCHEMES]
        wrong = sorted({one for seen in looks for one in seen.violations})
        faults = sorted({one for seen in looks for one in seen.faults})
        moved, painted = max(seen.shifted for seen in looks), max(seen.painted_ms for seen in looks)
        there = max(seen.complete_ms for seen in looks)
        yield f"| {path or 'first page'} | {len(wrong)} | {moved:.3f} | {painted:,.0f} | {there:,.0f} | {len(faults)} |"
        yield from (f"    {one}" for one in [*wrong, *faults])


def main(reports: list[str]) -> None:
    """The service with all packs, the documentation, and reports."""
    from playwright.sync_api import sync_playwright

    busy = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    print(f"the worst of {len(SIZES) * len(SCHEMES)} looks at each page; {busy}")
    print("| page | axe | CLS | LCP, ms | complete, ms | console |\n| --- | --- | --- | --- | --- | --- |")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        with serving([]) as server:
            for row in table(browser, server.url, COMPLETE.items()):
                print(row, flush=True)
        for file in map(Path, reports):
            with browsed(file.resolve().parent) as root:
                for row in table(browser, root, [(file.name, "true")]):
                    print(row, flush=True)
        with browsed(SITE) as root:
            for row in table(browser, root, [(path, "true") for path in pages_of(SITE)]):
                print(row, flush=True)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
