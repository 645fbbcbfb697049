"""What somebody meets who opens a page and touches nothing: all of it is there, named, readable, and stays in place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fewer.bench.load import serving
from fewer.report.description import shown
from tests.looks import COMPLETE, look
from tests.serve.browsing import CHROMIUM, SIZES, Visit

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the path: apt install chromium")


@pytest.fixture(scope="module")
def everything() -> Iterator[serving]:
    pytest.importorskip("mujoco", reason="no MuJoCo: pip install 'fewer[control]'")
    names = ["cellfree-80", "digits-dense", "digits-pruned", "control-hopper-dense", "control-hopper-95", "nowcast-80"]
    with serving(names) as found:
        yield found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", COMPLETE, ids=lambda name: name or "first")
def test_a_page_opens_without_a_violation_a_shift_or_an_error(
    browser: Any, everything: serving, name: str, size: str, scheme: str
) -> None:
    seen = look(browser, everything.url, name, size, scheme, COMPLETE[name])
    assert seen.clean and seen.shifted == 0, seen


def test_a_share_of_tested_images_has_wilsons_interval(browser: Any, everything: serving) -> None:
    page = Visit(browser, everything.url, SIZES["desk"], "light").page
    page.goto(everything.url)
    row = page.locator("#models tr", has=page.get_by_role("link", name="digits-pruned", exact=True))
    row.wait_for()
    found = next(m for m in page.evaluate("fetch('/v1/models').then(a => a.json())") if m["name"] == "digits-pruned")
    assert found["metrics"]["test_images"] == 2000
    # 1,923 of 2,000 are right: Wilson's interval as R's prop.test(1923, 2000, correct = FALSE) has it
    assert found["metrics"]["accuracy"] == 0.9615 and "95.2 to 96.9\u00a0%" in row.inner_text()
    page.context.close()


def test_a_figure_of_a_pack_is_rounded_as_reports_round_it(browser: Any, everything: serving) -> None:
    page = Visit(browser, everything.url, SIZES["desk"], "light").page
    page.goto(everything.url)
    shares = [0.9325, 0.9335, 0.9152, 0.005, 0.0, 1.0]  # the first two are ties
    said = page.evaluate("async (all) => { const { percent } = await import('/static/base.js'); "
                         "return all.map((one) => percent(one, 1)); }", shares)  # fmt: skip
    assert [one.replace("\u00a0", " ") for one in said] == [shown(share, share=True) for share in shares]
    page.context.close()
