"""Remarks follow from the numbers beside them, those of published results too."""

from __future__ import annotations

from typing import Any

import pytest

from fewer.studies.order import studies
from fewer.studies.remarks import remarks_on, with_remarks
from tests.studies import records

RESULTS = {name: record for name, record in records.RESULTS.items() if not name.startswith(records.NO_STUDIES)}


@pytest.mark.parametrize("name", RESULTS)
def test_the_remarks_of_a_published_result_are_those_computed_from_its_rows(name: str) -> None:
    record = RESULTS[name]
    assert remarks_on(record["study"], record) == record.get("remarks", [])
    assert not set(record.get("remarks", [])) & set(record["notes"])


def test_every_study_with_remarks_is_published_with_some() -> None:
    assert set(with_remarks()) <= set(studies())
    published = {record["study"] for record in RESULTS.values() if record.get("remarks")}
    assert set(with_remarks()) == published


def layers(**percentages: tuple[float, float]) -> dict[str, Any]:
    rows = [[name.replace("_", "."), 10, "", str(snip), "", str(grasp)] for name, (snip, grasp) in percentages.items()]
    return {"rows": rows}


def test_figure_3_says_which_last_layers_are_kept_most_and_by_whom() -> None:
    first = remarks_on("control/fig3", layers(actor_body_0=(10, 20), actor_body_2=(40, 30)))
    assert first[0].endswith("in actor.body.2; not in none.")
    assert first[2].endswith("here it keeps more of none and less of actor.body.2.")
    other = remarks_on("control/fig3", layers(actor_body_0=(50, 20), actor_body_2=(40, 60)))
    assert other[0].endswith("in none; not in actor.body.2.") and other[1].endswith("in actor.body.2; not in none.")
    assert other[2].endswith("here it keeps more of actor.body.2 and less of none.")


def test_both_heads_of_an_encoder_are_last_layers() -> None:
    found = remarks_on(
        "control/fig3", layers(encoder_body_0=(36, 25), encoder_mean=(34, 22), encoder_deviation=(38, 26))
    )
    assert found[0].endswith("in encoder.deviation; not in encoder.mean.")


def test_figure_4_names_the_sparsities_at_which_coordinates_are_larger() -> None:
    rows = [["50", "6.0", "9.0", "2.0"], ["90", "6.0", "3.0", "3.5"]]
    assert remarks_on("control/fig4", {"rows": rows}) == [
        "Coordinates take more bytes than the dense file at 50 % removed; the pack takes fewer than both at 1 of 2 "
        "sparsities."
    ]


def test_a_vote_is_called_above_only_beyond_its_interval() -> None:
    gains = {"one": [0.01, 0.002, 0.02], "two": [0.01, -0.002, 0.02], "three": [-0.01, -0.02, -0.001]}
    details = {name: {"above_best_single": gain} for name, gain in gains.items()}
    assert remarks_on("nowcast/table2", {"details": details}) == [
        "By IoU 1 of 3 votes are above their best member beyond the interval: one (+0.0100); below it: 1."
    ]


def test_a_winner_is_called_one_only_where_the_intervals_part() -> None:
    def said(*cells: tuple[str, str]) -> list[str]:
        return remarks_on("matrix", {"rows": [["vision", method, "50%", "accuracy", cell] for method, cell in cells]})

    apart = said(("random", "0.8 ± 0.02"), ("snip", "0.9 ± 0.01"), ("grasp", "-"), ("dense", "0.95 ± 0.01"))
    assert apart == ["vision at 50%: snip 0.9 ± 0.01, ahead of all others"]
    assert "not told apart from random" in said(("random", "0.8 ± 0.05"), ("snip", "0.9 ± 0.06"))[0]
    assert "not told apart from random" in said(("random", "0.8"), ("snip", "0.9"))[0]
