"""The pages with films, robots and weather, in a real browser: played, paused, scrubbed, pushed and swiped."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from fewer.bench.load import serving
from tests.serve.browsing import CHROMIUM, SIZES, Visit, scrolled

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the path: apt install chromium")


def test_policies_race_and_are_paused_scrubbed_and_pushed(browser: Any, tmp_path: Path) -> None:
    pytest.importorskip("mujoco", reason="no MuJoCo: pip install 'fewer[control]'")
    names = ["control-hopper", "control-walker2d", "control-hopper-99", "control-hopper-dense", "control-hopper-95"]
    with serving(names) as server:
        visit = Visit(browser, server.url, SIZES["phone"], "light", has_touch=True)
        page = visit.page
        page.goto(f"{server.url}/control")
        page.wait_for_selector("#stage[data-films='3']")  # the robot with most policies, without the expert
        heads = [text.strip() for text in page.locator("#runners th").all_inner_texts()]
        assert heads == ["all weights", "94\u00a0% fewer weights", "98\u00a0% fewer weights"]
        assert page.locator("#runners tr").nth(1).inner_text().count("3,971") == 1
        page.wait_for_function(
            "() => Number(document.getElementById('stage').dataset.seconds) > 0"
        )  # it plays by itself
        page.locator("#play").click()
        page.locator("#time").fill("4")
        page.wait_for_selector("#stage[data-seconds='4.00']")
        said = page.locator("#verdict").inner_text()
        assert said.startswith("Still going: all weights, 94")
        assert re.search(r"Fell at [123]\.\d s: 98\u00a0% fewer", said)
        assert page.locator("#when").inner_text() == "4.0 s"
        far = page.locator("#runners tr").nth(0).locator("td").last.inner_text()
        assert page.locator("#runners tr").nth(2).locator("td").last.inner_text().startswith("fell at ")
        assert scrolled(page, "#stage", least=50) >= 50
        page.locator("#time").fill("8")
        page.wait_for_function(
            "() => document.getElementById('verdict').textContent.startsWith('Still going after 8 s')"
        )
        page.locator("#time").fill("1")
        page.wait_for_function("() => !document.getElementById('verdict').textContent.includes('Fell')")  # not yet
        page.locator("#strength").select_option("2")
        with page.expect_response("**/v1/control/episode") as answered:
            page.locator("#back").click()
        assert '"metres_per_second":-2' in answered.value.request.post_data
        page.wait_for_selector("#stage[data-pushed]")
        page.locator("#time").fill("4")
        other = "was => document.querySelector('#runners tr td:last-child').innerText !== was"
        page.wait_for_function(other, arg=far)  # what was pushed got less far
        page.locator("#teacher").check()
        page.wait_for_selector("#stage[data-films='4']")
        assert page.locator("#runners th").last.inner_text().strip() == "their teacher, an expert"
        visit.end(tmp_path / "control.png")


def test_rain_plays_by_itself_and_is_scrubbed_swiped_and_scored(browser: Any, tmp_path: Path) -> None:
    with serving(["nowcast-80", "nowcast-90"]) as server:
        visit = Visit(browser, server.url, SIZES["desk"], "dark")
        page = visit.page
        page.goto(f"{server.url}/nowcast")
        page.wait_for_selector("#map[data-window='2']")  # the typical one
        opened = page.locator("#map").get_attribute("data-step")
        page.wait_for_function("was => document.getElementById('map').dataset.step !== was", arg=opened)  # it moves
        page.locator("#play").click()
        drawn = "document.getElementById('map').toDataURL()"
        page.locator("#lead").fill("31")
        assert page.locator("#when").inner_text() == "8 h"
        page.locator("#lead").fill("1")
        assert page.locator("#when").inner_text() == "30 min"
        rows = [row.split("\t") for row in page.locator("#lines tr").all_inner_texts()]
        assert [row[0] for row in rows] == [
            "networks",
            "the rain stays (persistence)",
            "it moves with the clouds (extrapolation)",
        ]
        assert all(share.endswith("\u00a0%") for row in rows for share in row[1:3])
        assert page.locator("#then").inner_text() == "in 30 min"
        best = max(rows[1:], key=lambda row: float(row[2].split("\u00a0")[0]))[2]
        said = f"{rows[0][2]} of these eight hours' rain in the right place; without a network {best} at best"
        assert page.locator("#verdict").inner_text() == said
        pictures = {page.evaluate(drawn)}
        page.locator("#swipe").fill("90")
        pictures.add(page.evaluate(drawn))
        page.locator("#members input[value='nowcast-90']").uncheck()
        pictures.add(page.evaluate(drawn))
        assert len(pictures) == 3  # another swipe, another member: another picture
        assert page.locator("#lines th").first.inner_text() == "network"
        page.locator("#members input[value='nowcast-80']").uncheck()
        assert page.locator("#verdict").inner_text() == "Choose at least one network"
        page.locator("#members input[value='nowcast-80']").check()
        page.locator("#other").click()
        page.wait_for_selector("#map[data-window='3']")
        visit.end(tmp_path / "nowcast.png")
