"""The nowcast studies on forecasts that were written by hand, and one piece trained for real."""

from __future__ import annotations

import dataclasses
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score

from fewer.core.engines.loop import Loop, fit
from fewer.core.engines.plain import Plain
from fewer.core.errors import UserError
from fewer.core.files.run_folder import Folder
from fewer.studies.study import studies
from fewer.systems.nowcast.studies import assembly as nowcast_assembly
from fewer.systems.nowcast.studies import full as nowcast_full
from fewer.systems.nowcast.studies import pieces as nowcast_pieces
from fewer.systems.nowcast.studies.assembly import Recorded, by_year, recalled, scored, threshold
from fewer.systems.nowcast.studies.figure import fig1
from fewer.systems.nowcast.studies.members import MEMBERS, SCALES, VOTERS
from fewer.systems.nowcast.studies.pieces import BASELINES, JUDGED, STEPS, Place, levels, run_piece, same_windows, truth
from fewer.systems.nowcast.studies.processes import run_together
from fewer.systems.nowcast.studies.skill import entropy_below, precision_above, skill
from fewer.systems.nowcast.studies.tables import FULL, QUICK, table1, table2
from fewer.systems.nowcast.task.scores.scores import Scores
from fewer.systems.nowcast.task.windows import Windows
from tests.waiting import until

SMALL = dataclasses.replace(
    SCALES["quick"], samples=4, batch=2, windows={"train": 4, "validation": 14, "test": 14, "heldout": 14}
)


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """The truth and two trained pieces; the other members say what these log, with their own mistakes."""
    place = Place(tmp_path_factory.mktemp("study"), SMALL, log=lambda line: None)
    for name in ("truth", "climatology", "baseline"):
        run_piece(name, place)
    random = np.random.default_rng(0)
    for name in QUICK:
        if name != "baseline":
            _write(name, place, random)
    return place


def _write(name: str, place: Place, random: np.random.Generator) -> None:
    """Right in all but a random quarter of the pixels."""
    found = json.loads(place.path("baseline", "json").read_text())
    arrays = {}
    for split in ("validation", "test", "heldout"):
        fallen = truth(split, place).raining
        wrong = random.random(fallen.shape) < 0.25
        arrays[split] = np.where(fallen ^ wrong, 4 * STEPS // 5, STEPS // 7).astype(np.uint8)
    memory = io.BytesIO()
    np.savez_compressed(memory, **arrays)
    place.path(name, "npz").write_bytes(memory.getvalue())
    place.path(name, "json").write_text(json.dumps({**found, "piece": name}))


def test_a_piece_leaves_forecasts_in_steps_and_is_found_again(pieces: Place) -> None:
    held = levels("baseline", "test", pieces)
    assert held.shape == (14, 32, 24, 24) and held.max() < STEPS
    before = pieces.path("baseline", "npz").stat().st_mtime_ns
    found = run_piece("baseline", pieces)
    assert pieces.path("baseline", "npz").stat().st_mtime_ns == before
    assert found["samples"] == 4 and found["parameters"] > 1000 and len(found["wet_pixels"]["test"]) == 14


def test_a_training_that_was_cut_off_goes_on_and_ends_with_the_same_forecasts(
    pieces: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(Exception):
        pass

    def killed(engine: Plain, folder: Folder, *, loop: Loop) -> None:
        def stop(line: dict[str, Any]) -> None:
            if line["step"] == 2:
                raise Killed

        fit(engine, folder, loop=dataclasses.replace(loop, save_seconds=0.0, on_log=stop))

    place = dataclasses.replace(pieces, out=tmp_path)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(nowcast_pieces, "fit", killed)
        run_piece("baseline", place)
    assert not place.path("baseline", "json").exists()
    other = dataclasses.replace(place, scale=dataclasses.replace(SMALL, samples=8))
    with pytest.raises(UserError, match="holds another run"):
        run_piece("baseline", other)
    found = run_piece("baseline", place)
    assert found["went_on_after"] == 2 and len(found["losses"]) == 2
    assert not list((tmp_path / "unfinished").iterdir())
    for split in JUDGED:
        assert np.array_equal(levels("baseline", split, place), levels("baseline", split, pieces))


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks processes up in /proc")
def test_no_process_trains_on_when_the_one_that_started_it_is_killed(tmp_path: Path) -> None:
    words = ["improved", "baseline", "--scale", "quick", "--samples", "40000", "--processes", "2", "--device", "cpu"]
    command = [sys.executable, "-m", "fewer.systems.nowcast.studies.full", *words, "--out", str(tmp_path)]
    study = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until(lambda: len(_trainers(study.pid)) == 2)
        trainers = _trainers(study.pid)
        until(lambda: len(list(tmp_path.glob("unfinished/*"))) == 2)
    finally:
        study.kill()
        study.wait()
    until(lambda: not any(_runs(trainer) for trainer in trainers))


def _trainers(parent: int) -> list[int]:
    """Processes that another one has spawned to work for it."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [int(child) for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_the_truth_is_that_of_the_windows(pieces: Place) -> None:
    batch, fallen = pieces.data("test").take(torch.arange(14)), truth("test", pieces)
    assert np.array_equal(fallen.raining, ((batch.rate >= 0.2) & (batch.valid > 0)).numpy())
    assert np.array_equal(fallen.place, batch.place.numpy())
    assert fallen.wet_pixels() == run_piece("baseline", pieces)["wet_pixels"]["test"]


def test_pieces_of_another_scale_are_refused(pieces: Place) -> None:
    other = dataclasses.replace(pieces, scale=dataclasses.replace(SMALL, samples=8))
    with pytest.raises(UserError, match="another scale \\(samples\\)"):
        run_piece("baseline", other)
    with pytest.raises(UserError, match="a finished piece"):
        levels("swin-all", "test", pieces)


def test_pieces_in_steps_of_another_size_are_refused(pieces: Place, tmp_path: Path) -> None:
    place = dataclasses.replace(pieces, out=tmp_path)
    place.path("baseline", "json").parent.mkdir(parents=True)
    found = json.loads(pieces.path("baseline", "json").read_text())
    place.path("baseline", "json").write_text(json.dumps({**found, "steps": 20}))
    with pytest.raises(UserError, match="steps of another size"):
        run_piece("baseline", place)


def test_pieces_made_together_are_those_made_alone(pieces: Place, tmp_path: Path) -> None:
    place = dataclasses.replace(pieces, out=tmp_path)
    assert run_together(["baseline", "climatology", "truth"], place, 2, 0.0) == 0
    for name in ("baseline", "climatology"):
        for split in JUDGED:
            assert np.array_equal(levels(name, split, place), levels(name, split, pieces))
    assert np.array_equal(truth("test", place).raining, truth("test", pieces).raining)


def test_a_mistake_in_one_of_several_processes_ends_all_with_its_line(
    pieces: Place, capfd: pytest.CaptureFixture[str]
) -> None:
    other = dataclasses.replace(pieces, scale=dataclasses.replace(SMALL, samples=8))
    assert run_together(["baseline"], other, 2, 0.0) == 2
    assert capfd.readouterr().err.count("another scale (samples)") == 1


def test_pieces_of_other_windows_are_told_apart(pieces: Place) -> None:
    one = run_piece("baseline", pieces)
    other = json.loads(json.dumps(one))
    assert same_windows(one, other)
    other["wet_pixels"]["test"][3] += 6 + other["wet_pixels"]["test"][3] // 500
    assert not same_windows(one, other)


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
    one = table1("quick", pieces.out, pieces.log)
    titles = [row[0] for row in one.rows]
    by_title = {row[0]: row for row in one.rows}
    assert by_title["baseline, bce"][1] == "0.213, 0.241, 0.184"
    assert any("chosen on these very windows" in title for title in titles)
    assert "on generated weather" in one.title and "Generated weather" in one.notes[0]
    assert any(line.startswith("improved above baseline: IoU") and "cross-entropy" in line for line in one.notes)
    assert all(len(row) == len(one.columns) for row in one.rows)
    votes = [name for name in one.details if name.startswith("majority")]
    # independent mistakes in a quarter of the pixels: several voters are right more often than one
    assert all(one.details[name]["above_best_single"][1] > 0 for name in votes if "all models" in name)
    two = table2("quick", pieces.out, pieces.log)
    assert {row[0]: row[1] for row in two.rows}["Swin-UNETR, bce"] == "0.281, 0.283, 0.280"
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
    table2("quick", pieces.out, pieces.log)
    assert sorted(read) == sorted((name, split) for name in QUICK for split in ("validation", "heldout"))


def test_the_figure_shows_a_window_of_the_papers_region(pieces: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCALES, "quick", SMALL)
    found = fig1("quick", pieces.out, pieces.log)
    assert all(len(content) > 1000 for content in found.metrics.values())
    assert len(found.columns) == 9 and found.rows[0][0] == "majority"


def test_pieces_run_from_the_command_line_and_mistakes_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert nowcast_full.main(["--list"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in MEMBERS) and set(VOTERS) < set(MEMBERS)
    small = ["--scale", "quick", "--windows", "train=4,validation=2,test=2,heldout=2", "--batch", "2"]
    assert nowcast_full.main(["focus", "--samples", "2", "--out", str(tmp_path), *small]) == 0
    assert (tmp_path / "pieces" / "nowcast-focus.npz").exists()
    assert nowcast_full.main(["focus", "--seconds", "60", "--out", str(tmp_path / "other"), *small]) == 0
    assert "samples in 60 s" in capsys.readouterr().out and not (tmp_path / "other").exists()
    for wrong in (
        ["swim"],
        ["focus", "--windows", "tests=1"],
        ["focus", "--rates", "fast"],
        ["focus", "--processes", "0"],
    ):
        assert nowcast_full.main([*wrong, "--scale", "quick", "--out", str(tmp_path)]) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_all_is_every_piece_of_the_full_study_the_slowest_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[str] = []
    monkeypatch.setattr(nowcast_full, "run_piece", lambda name, place: made.append(name))
    assert nowcast_full.main(["all", "--scale", "quick", "--out", str(tmp_path)]) == 0
    assert made[0] == "truth" and MEMBERS[made[1]].settings["model"] == "swin" and len(made) == len(set(made))
    assert set(made) == {"truth", *BASELINES, *FULL} and set(VOTERS) < set(made)
    made.clear()
    assert nowcast_full.main(["all", "focus", "improved-plain", "--scale", "quick", "--out", str(tmp_path)]) == 0
    assert set(made) == {"truth", *BASELINES, *FULL, "improved-plain"} and len(made) == len(set(made))
    assert nowcast_full.main(["all", "swim", "--scale", "quick", "--out", str(tmp_path)]) == 2
    assert "'swim'" in capsys.readouterr().err


def test_a_full_study_without_a_gpu_or_pieces_is_one_line(tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("here it would train")
    with pytest.raises(UserError, match="no finished pieces"):
        table1("full", tmp_path, print)
    assert {"nowcast/table1", "nowcast/table2", "nowcast/fig1"} <= set(studies())
