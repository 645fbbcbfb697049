"""Pieces of the nowcast studies: kept, found again, gone on with, made several at a time."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fewer.cli import main
from fewer.core.engines.loop import Loop, fit
from fewer.core.engines.plain import Plain
from fewer.core.errors import UserError
from fewer.core.files.run_folder import Folder
from fewer.studies.making import make_pieces
from fewer.studies.order import Order
from fewer.studies.pieces import silent
from fewer.systems.nowcast.studies import catalogue as nowcast_catalogue
from fewer.systems.nowcast.studies import pieces as nowcast_pieces
from fewer.systems.nowcast.studies.members import MEMBERS, ROWS, VOTERS
from fewer.systems.nowcast.studies.pieces import BASELINES, STEPS, levels, run_piece, same_windows, truth
from fewer.systems.nowcast.studies.place import JUDGED, Place
from tests.systems.nowcast.small import SMALL, WORDS
from tests.waiting import until

FEW = ("windows=train=4,validation=2,test=2,heldout=2", "device=cpu")
TABLE = ["reproduce", "nowcast/table1"]


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
    words = ["--pieces", "improved", "baseline", "--processes", "2", "--set", "samples=40000", "--set", FEW[0]]
    command = [sys.executable, "-m", "fewer", *TABLE, *words, "--set", "device=cpu", "--out", str(tmp_path)]
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
    names = ["baseline", "climatology", "truth"]
    assert make_pieces(Order("nowcast/table1", "quick", tmp_path, silent, WORDS), names, 2) == names
    for name in ("baseline", "climatology"):
        for split in JUDGED:
            assert np.array_equal(levels(name, split, place), levels(name, split, pieces))
    assert np.array_equal(truth("test", place).raining, truth("test", pieces).raining)


def test_a_mistake_in_one_of_several_processes_is_told_as_that_of_one(
    pieces: Place, capfd: pytest.CaptureFixture[str]
) -> None:
    order = Order("nowcast/table1", "quick", pieces.out, silent, FEW)
    with pytest.raises(UserError, match="another scale"):
        make_pieces(order, ["baseline", "climatology"], 2)
    assert "another scale" not in capfd.readouterr().err


def test_pieces_of_other_windows_are_told_apart(pieces: Place) -> None:
    one = run_piece("baseline", pieces)
    other = json.loads(json.dumps(one))
    assert same_windows(one, other)
    other["wet_pixels"]["test"][3] += 6 + other["wet_pixels"]["test"][3] // 500
    assert not same_windows(one, other)


def test_pieces_run_from_the_command_line_and_mistakes_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*TABLE, "--list"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in MEMBERS) and set(VOTERS) < set(MEMBERS) and "--set samples=" in listed
    small = ["--set", FEW[0], "--set", "batch=2", "--set", "samples=2"]
    assert main([*TABLE, "--pieces", "focus", "--out", str(tmp_path), *small]) == 0
    assert (tmp_path / "pieces" / "nowcast-focus.npz").exists()
    assert main([*TABLE, "--pieces", "focus", "--set", "seconds=60", "--out", str(tmp_path / "other"), *small]) == 0
    assert "samples in 60 s" in capsys.readouterr().err and not (tmp_path / "other").exists()
    for wrong in (
        ["swim"],
        ["focus", "--set", "windows=tests=1"],
        ["focus", "--set", "windows=test"],
        ["focus", "--set", "batch=0"],
        ["focus", "--set", "rates=fast"],
        ["focus", "--set", "rates=1e-3"],
        ["focus", "--seeds", "1"],
        ["focus", "--processes", "0"],
    ):
        assert main([*TABLE, "--pieces", *wrong, "--out", str(tmp_path)]) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_all_is_every_piece_of_the_full_study_the_slowest_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    monkeypatch.setattr(nowcast_catalogue, "run_piece", lambda name, place: made.append(name))
    order = Order("nowcast/table1", "full", tmp_path, silent)
    assert make_pieces(order, ["all"]) == made
    assert made[0] == "truth" and made[2] == "swin-float32" and len(made) == len(set(made))
    assert set(made) == {"truth", *BASELINES, *ROWS} and len(set(VOTERS) & set(made)) == 5
    assert set(make_pieces(order, ["all", "focus", "improved-plain"])) == {*made, "focus", "improved-plain"}
    with pytest.raises(UserError, match="'swim'"):
        make_pieces(order, ["all", "swim"])
