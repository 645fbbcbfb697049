"""Charts say in words what they draw, keep to their frame, and do not fall over odd values."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree

import pytest

from fewer.report.chart import bars, curves, ratios


def svg_of(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text[: text.index("</svg>") + 6])


def points(text: str) -> list[list[tuple[float, float]]]:
    lines = re.findall(r'<polyline[^>]*points="([^"]*)"', text)
    return [[(float(x), float(y)) for x, y in (pair.split(",") for pair in line.split())] for line in lines]


def test_a_chart_is_an_image_with_a_label_that_names_lines_and_ends() -> None:
    root = svg_of(curves({"dense": [(0, 1.0), (10, 0.25)]}, "step", "loss"))
    assert root.get("role") == "img"
    assert root.get("aria-label") == "loss against step: dense goes from 1 at 0 to 0.25 at 10"


def test_higher_values_are_drawn_higher_and_later_ones_further_right() -> None:
    (line,) = points(curves({"a": [(0, 1.0), (1, 3.0), (2, 2.0)]}, "x", "y"))
    assert [x for x, _ in line] == sorted(x for x, _ in line)
    assert line[1][1] < line[2][1] < line[0][1]


def test_values_over_decades_get_a_logarithmic_axis() -> None:
    text = curves({"a": [(0, 1000.0), (1, 10.0), (2, 0.1)]}, "x", "y")
    assert "(logarithmic)" in text
    (line,) = points(text)
    assert line[1][1] - line[0][1] == pytest.approx(line[2][1] - line[1][1], abs=0.2)


def test_shares_never_get_one_and_are_spelt_in_percent() -> None:
    text = curves({"a": [(0, 0.9), (1, 0.001)]}, "x", "accuracy", percent=True)
    assert "(logarithmic)" not in text and "90 %" in text


def test_intervals_become_a_band_around_the_line() -> None:
    text = curves({"a": [(0, 1.0, 0.5), (1, 2.0, 0.5)]}, "x", "y")
    corners = re.search(r'<path class="band c0" d="M([^Z]*)Z"', text)
    assert corners is not None and corners[1].count("L") == 3
    assert "<path" not in curves({"a": [(0, 1.0, math.nan), (1, 2.0, math.nan)]}, "x", "y")


def test_a_diverged_run_leaves_the_others_to_see() -> None:
    text = curves({"good": [(0, 1.0), (1, 0.5)], "bad": [(0, math.nan), (1, math.inf)]}, "x", "y")
    assert len(points(text)) == 1 and "bad" not in text
    assert "nothing to draw" in curves({"bad": [(0, math.nan)]}, "x", "y")


def test_names_are_escaped_everywhere() -> None:
    name = '<b onclick="x">&'
    for text in (curves({name: [(0, 1.0)]}, name, name), bars({name: 1.0}, name), ratios({name: 2.0})):
        assert "<b " not in text
        svg_of(text)


def test_bars_are_as_long_as_their_values_say() -> None:
    widths = [float(rect.get("width", "0")) for rect in svg_of(bars({"a": 50.0, "b": 100.0}, "%")).iter("rect")]
    assert widths[1] == pytest.approx(2 * widths[0])


def test_ratios_below_one_point_the_other_way() -> None:
    win, loss = svg_of(ratios({"win": 4.0, "loss": 0.25})).iter("rect")
    assert win.get("class") != loss.get("class")
    assert float(loss.get("x", "0")) + float(loss.get("width", "0")) == pytest.approx(float(win.get("x", "0")), abs=0.2)
