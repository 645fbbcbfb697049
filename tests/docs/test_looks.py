"""The documentation in a real browser: every page is without a violation, a shift or an error, light and dark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.looks import browsed, look, pages_of
from tests.serve.browsing import CHROMIUM

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the path: apt install chromium")


@pytest.mark.parametrize(("size", "scheme"), [("desk", "light"), ("phone", "dark")])
def test_every_page_opens_without_a_violation_a_shift_or_an_error(
    site: Path, browser: Any, size: str, scheme: str
) -> None:
    with browsed(site) as root:
        seen = {path: look(browser, root, path, size, scheme) for path in pages_of(site)}
        # what a busy machine does to a page happens once; what is wrong with a page, each time
        again = {path: look(browser, root, path, size, scheme) for path, one in seen.items() if not one.clean}
    assert len(seen) > 20 and {path: (seen[path], one) for path, one in again.items() if not one.clean} == {}
