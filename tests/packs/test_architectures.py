"""The table of architectures: the page is what was measured, and what was measured holds the bar."""

from __future__ import annotations

import json
from pathlib import Path

from scripts.architectures.page import page

ROOT = Path(__file__).parents[2]
KNOWN = json.loads((ROOT / "results" / "architectures.json").read_text())


def test_the_page_is_written_from_the_results() -> None:
    assert (ROOT / "docs" / "architectures.md").read_text() == page(KNOWN)


def test_of_sixty_architectures_and_more_five_in_six_pack_and_agree() -> None:
    rows = KNOWN["rows"].values()
    assert len(rows) >= 60 and sum(row["library"] == "transformers" for row in rows) >= 30
    assert sum(row.get("pack", 1) <= 1e-5 for row in rows) >= max(50, len(rows) * 5 / 6)


def test_a_refusal_names_what_was_met_what_was_expected_and_a_way_round() -> None:
    refusals = [text for row in KNOWN["rows"].values() for key, text in row.items() if key.endswith("refused")]
    assert refusals and all(text.count("; ") >= 2 and "; expected " in text for text in refusals)
