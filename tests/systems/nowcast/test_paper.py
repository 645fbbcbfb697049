"""The paper to the letter: presets, its scale, the competition's files, and the sentences that are judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fewer.core.registry import checked_settings
from fewer.run.options import job_of
from fewer.studies.claims import VERDICTS
from fewer.studies.making import make_pieces
from fewer.studies.order import Order, studies
from fewer.studies.pieces import silent
from fewer.studies.plan import planned
from fewer.systems.nowcast.presets import EPOCHS, PRESETS
from fewer.systems.nowcast.studies.claims import CLAIMS
from fewer.systems.nowcast.studies.claims.judging import alike, judged, ordered
from fewer.systems.nowcast.studies.described import settings
from fewer.systems.nowcast.studies.members import MEMBERS, ROWS
from fewer.systems.nowcast.studies.pieces import maps
from fewer.systems.nowcast.studies.scales import SCALES
from fewer.systems.nowcast.studies.tables import table1
from fewer.systems.nowcast.studies.where import where
from fewer.systems.nowcast.task.generated.windows import DrawnWindows, Wish, generated
from tests.systems.nowcast.competition import write_competition

MADE = [name for name, study in studies().items() if name.startswith("nowcast/") and study.plan]
RESULTS = Path(__file__).parents[3] / "results"


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two regions in two years of the competition's files, 24 pixels."""
    root = tmp_path_factory.mktemp("competition")
    write_competition(root, years=(2019, 2020), size=24)
    return str(root)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_words_that_train_understands(name: str) -> None:
    job = job_of("nowcast", PRESETS[name])
    checked_settings("nowcast", job.settings)
    rule = job.training.optimizer
    assert rule.clip_value == 2 and rule.warmup == 0 and rule.decay_from == 1  # a constant rate
    expected = (1e-3, 0.0, 1e-16) if "adabelief" in name else (1e-4, 2e-2, 1e-8)
    assert (rule.lr, rule.weight_decay, rule.epsilon) == expected
    assert "size=252" in job.settings and "positive_weight=2.577389" in job.settings


def test_presets_count_the_papers_epochs_from_nought_and_its_samples() -> None:
    assert PRESETS["paper"] == PRESETS["paper-swin-float32"] and PRESETS["paper"]["steps"] == 4 * 228_928 // 7
    assert PRESETS["paper-baseline-all-long"]["steps"] == 54 * 229_768 // 40
    assert PRESETS["paper-swin"]["precision"] == "bfloat16"
    assert {f"paper-{name}" for name in ROWS if name != "drift"} == set(PRESETS) - {"paper"} and "swin" in EPOCHS


def test_every_row_of_the_papers_tables_has_a_model_of_its_own() -> None:
    rows = [one.paper for one in MEMBERS.values() if one.paper]
    assert len(rows) == len(set(rows)) == 15  # and two thresholds, and the best per region: 18
    assert MEMBERS["swin"].paper == (0.252, 0.253, 0.250) and MEMBERS["swin-float32"].paper == (0.252, 0.262, 0.241)
    assert all(one.settings.get("train_on_all") for one in MEMBERS.values() if "train all" in one.title)


@pytest.mark.parametrize("study", MADE)
def test_at_the_papers_scale_a_study_says_what_it_would_train_on_the_competitions_files(
    study: str, files: str, tmp_path: Path
) -> None:
    order = Order(study, "paper", tmp_path, silent, data=files)
    found = settings(order)
    assert found["size"] == 24 and set(found["members"]) == {one.name for one in planned(order)}
    assert found["windows"]["train"] == 4 * 19 and found["windows"]["test"] == 4


@pytest.mark.parametrize(("study", "name"), [("nowcast/table1", "vivit-deltas"), ("nowcast/scarce", "focus")])
def test_at_the_papers_scale_a_training_starts(study: str, name: str, files: str, tmp_path: Path) -> None:
    (one,) = (one for one in planned(Order(study, "paper", tmp_path, silent, data=files)) if one.name == name)
    engine = one.engine()
    engine.advance(1)
    assert bool(torch.isfinite(engine.mean_losses()).all())


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="the paper's networks at 252 pixels")
@pytest.mark.parametrize("name", ROWS)
def test_every_training_of_the_paper_takes_a_step_at_252_pixels(name: str, tmp_path: Path) -> None:
    (one,) = (one for one in planned(Order("nowcast/table1", "paper", tmp_path, silent)) if one.name == name)
    engine = one.engine()
    engine.advance(1)
    assert bool(torch.isfinite(engine.mean_losses()).all()) and one.updates > 10_000


def test_a_table_is_made_of_the_competitions_files(files: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCALES, "full", SCALES["quick"])  # narrow networks
    words = ("samples=4", "batch=2")
    order = Order("nowcast/table1", "full", tmp_path, silent, words, files)
    make_pieces(order, ["truth", "climatology", "baseline", "vivit"])
    found = table1(Order("nowcast/table1", "full", tmp_path, silent, data=files))
    assert "the competition's files, 24 pixels" in found.title and "never published" in found.notes[0]
    assert set(found.details["vivit"]["by_place"]) == {
        f"{year}/{region}" for year in (2019, 2020) for region in ("boxi_0015", "roxi_0004")
    }
    assert "--data DATA" in found.commands[0] and "--set samples=4" in found.commands[0]
    assert any("Not trained here: " in note and "swin" in note for note in found.notes)
    json.dumps(found.record())
    place = where(order)
    shares = [place.data(split).take(torch.arange(4)).place.tolist() for split in ("validation", "test", "heldout")]
    assert shares == [[0, 1, 2, 3]] * 3  # three windows of each region-year, one to each split
    wet = maps("train", place)
    assert wet.shape == (4, 24, 24) and 0.05 < np.median(wet) < 0.15


def test_windows_drawn_when_asked_for_are_those_that_are_kept() -> None:
    wish = Wish("train", 6, 24, 0)
    index = torch.tensor([4, 1])
    kept, drawn = (data.take(index) for data in (generated("train", count=6, size=24), DrawnWindows(wish, "cpu")))
    assert torch.equal(kept.place, drawn.place) and torch.equal(kept.missing, drawn.missing)
    assert float((kept.satellite - drawn.satellite).abs().max()) < 0.02  # half precision
    assert float(((kept.rate > 0.2) != (drawn.rate > 0.2)).float().mean()) < 1e-3


def test_a_difference_agrees_draws_or_contradicts() -> None:
    above, draw, below = ("a", (0.02, 0.01, 0.03)), ("b", (0.001, -0.01, 0.012)), ("c", (-0.02, -0.03, -0.01))
    kinds = [judged(found, 1).kind for found in ([above], [above, draw], [draw], [above, below], [below], [])]
    assert kinds == ["holds on ours", "partly", "partly", "partly", "fails", "untestable"]
    assert [judged([one], -1).kind for one in (above, draw, below)] == ["fails", "fails", "holds on ours"]
    assert [alike([one], 0.02).kind for one in (above, draw)] == ["fails", "holds on ours"]
    assert ordered({"a": (2, 1), "b": (1, 2)}).kind == "partly" and "+0.0200" in judged([above], 1).numbers


def test_every_claim_is_judged_by_what_is_kept() -> None:
    records: dict[str, Any] = {
        name: json.loads(path.read_text())
        for name in studies()
        if (path := RESULTS / f"{name.replace('/', '-')}.json").exists()
    }
    assert len({claim.name for claim in CLAIMS}) == len(CLAIMS) >= 20
    short = "contrasts" in records["nowcast/table1"]["details"]  # the table of every row, and not that of before
    for claim in CLAIMS:
        assert set(claim.studies) <= set(studies())
        if short or not {"nowcast/table1", "nowcast/table2"} & set(claim.studies):
            found = claim.judge(records)
            assert found.kind in VERDICTS and (found.numbers or found.why)
