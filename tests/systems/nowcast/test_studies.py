"""The nowcast studies on forecasts that were written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score

from fewer.core.errors import UserError
from fewer.studies.order import Order, studies
from fewer.systems.nowcast.studies.figure import fig1
from fewer.systems.nowcast.studies.members import QUICK
from fewer.systems.nowcast.studies.pieces import STEPS, levels, truth
from fewer.systems.nowcast.studies.place import Place
from fewer.systems.nowcast.studies.scales import SCALES
from fewer.systems.nowcast.studies.scored import assembly as nowcast_assembly
from fewer.systems.nowcast.studies.scored.assembly import Recorded, by_year, recalled, scored, threshold
from fewer.systems.nowcast.studies.scored.skill import entropy_below, precision_above, skill
from fewer.systems.nowcast.studies.tables import table1, table2
from fewer.systems.nowcast.task.scores.scores import Scores
from fewer.systems.nowcast.task.windows import Windows
from tests.systems.nowcast.small import SMALL


def test_recorded_forecasts_score_as_the_task_scores_them(pieces: Place) -> None:
    task = Recorded(pieces)
    predict = recalled("focus", pieces)
    scores = scored(task, predict, "test")
    held, fallen = levels("focus", "test", pieces) >= STEPS // 2, truth("test", pieces)
    for index, iou in enumerate(scores.by_place().values()):
        mine = fallen.place == index
        said, fell = (held & fallen.valid)[mine], fallen.raining[mine]
        assert iou == pytest.approx((said & fell).sum() / max((said | fell).sum(), 1)) or not (said | fell).any()
    years = by_year(scores)
    assert years["total"] == pytest.approx((years["2019"] + years["2020"]) / 2, abs=0.05)
    choice = threshold(task, predict)
    assert 0.2 <= choice.thresholds[0] <= 0.7


def test_a_dry_region_year_counts_neither_in_the_total_nor_in_its_year() -> None:
    scores = Scores(regions=("2019/a", "2019/b", "2020/a"), histograms=False)
    said = torch.zeros(3, 1, 2, 2)
    said[0, 0, 0] = said[2, 0, 0, 0] = 1.0
    fell = torch.zeros(3, 1, 2, 2)
    fell[0, 0, 0, 0] = fell[2, 0, 0, 0] = 1.0
    scores.add(said, fell, torch.ones_like(fell), torch.arange(3))
    assert by_year(scores) == {"total": 0.75, "2019": 0.5, "2020": 1.0}


def test_cross_entropy_of_recorded_forecasts_is_the_mean_over_valid_pixels_window_by_window(pieces: Place) -> None:
    found, fallen = skill(Recorded(pieces), recalled("focus", pieces), "test", 2.5), truth("test", pieces)
    chance = (levels("focus", "test", pieces) + 0.5) / STEPS
    each = -np.where(fallen.raining, 2.5 * np.log(chance), np.log(1 - chance))
    expected = [each[k][fallen.valid[k]].mean() for k in range(len(each))]
    assert found.entropy.numpy() == pytest.approx(expected, rel=1e-5)


def test_a_forecast_that_knows_only_how_wet_a_window_is_does_not_know_where(pieces: Place) -> None:
    task, fallen = Recorded(pieces), truth("test", pieces)
    wetness = torch.from_numpy(fallen.raining.mean((1, 2, 3))).float().clamp(0.01, 0.99).view(-1, 1, 1, 1)

    def wet_windows(batch: Windows) -> torch.Tensor:
        return wetness[batch.satellite.flatten()].expand_as(batch.rate)

    found = {
        "windows": skill(task, wet_windows, "test", 2.5),
        "focus": skill(task, recalled("focus", pieces), "test", 2.5),
    }
    assert found["windows"].metrics()["knows_where"] == pytest.approx(0.0, abs=1e-6)
    # right in three quarters of all pixels: 0.825 against 0.175, less what is wrong on both sides
    assert found["focus"].metrics()["knows_where"] == pytest.approx(0.5 * 0.65, abs=0.02)
    gap = entropy_below(found["focus"], found["windows"])
    assert gap.low <= gap.value <= gap.high
    mirrored = entropy_below(found["windows"], found["focus"])
    assert mirrored.value == pytest.approx(-gap.value)


def test_precision_of_recorded_forecasts_is_that_of_all_their_pixels_and_its_gap_is_paired(pieces: Place) -> None:
    task, fallen = Recorded(pieces), truth("test", pieces)
    good, poor = (skill(task, recalled(name, pieces), "test", 2.5) for name in ("focus", "baseline"))
    chance, wet = levels("focus", "test", pieces)[fallen.valid], fallen.raining[fallen.valid]
    expected = average_precision_score(wet, chance)
    assert good.metrics()["average_precision"] == pytest.approx(expected, rel=1e-6)
    gap = precision_above(good, poor)
    assert (
        gap.value == pytest.approx(expected - poor.metrics()["average_precision"]) and gap.low <= gap.value <= gap.high
    )
    assert precision_above(good, good) == (0.0, 0.0, 0.0)


def test_the_tables_put_the_papers_numbers_beside_and_mark_choices_on_the_test_windows(
    pieces: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SCALES, "quick", SMALL)
    one = table1(Order("nowcast/table1", "quick", pieces.out, pieces.log))
    titles = [row[0] for row in one.rows]
    by_title = {row[0]: row for row in one.rows}
    assert by_title["baseline, bce"][1] == "0.213, 0.241, 0.184"
    assert any("chosen on these very windows" in title for title in titles)
    assert "generated weather, 24 pixels" in one.title and "Generated weather" in one.notes[0]
    assert any(line.startswith("baseline-iou above baseline: IoU") and "cross-entropy" in line for line in one.notes)
    assert all(len(row) == len(one.columns) for row in one.rows)
    votes = [name for name in one.details if name.startswith("majority")]
    # independent mistakes in a quarter of the pixels: several voters are right more often than one
    assert all(one.details[name]["above_best_single"][1] > 0 for name in votes if "all models" in name)
    two = table2(Order("nowcast/table2", "quick", pieces.out, pieces.log))
    assert {row[0]: row[1] for row in two.rows}["improved, bce, train all"] == "0.270, 0.261, 0.278"
    json.dumps(two.record())


def test_a_table_reads_the_forecasts_of_a_split_once_and_those_of_other_splits_never(
    pieces: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[tuple[str, str]] = []

    def counted(name: str, split: str, place: Place) -> Any:
        read.append((name, split))
        return levels(name, split, place)

    monkeypatch.setitem(SCALES, "quick", SMALL)
    monkeypatch.setattr(nowcast_assembly, "levels", counted)
    table2(Order("nowcast/table2", "quick", pieces.out, pieces.log))
    needed = [*QUICK, "satellite-extrapolation"]  # which a member is held against
    assert sorted(read) == sorted((name, split) for name in needed for split in ("validation", "heldout"))


def test_the_figure_shows_a_window_of_the_papers_region(pieces: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCALES, "quick", SMALL)
    found = fig1(Order("nowcast/fig1", "quick", pieces.out, pieces.log))
    assert all(len(content) > 1000 for content in found.figures.values())
    assert len(found.columns) == 9 and found.rows[0][0] == "majority"


def test_a_full_study_without_a_gpu_or_pieces_is_one_line(tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("here it would train")
    with pytest.raises(UserError, match="no finished pieces"):
        table1(Order("nowcast/table1", "full", tmp_path))
    assert {"nowcast/table1", "nowcast/table2", "nowcast/fig1"} <= set(studies())
