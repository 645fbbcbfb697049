"""Drive tests as loggers write them: marks for not heard, silent places, numbers that cannot be."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from fewer.cli import main
from fewer.core.errors import Notice, UserError
from fewer.systems.cellfree.task.settings import Settings
from fewer.systems.cellfree.task.survey import World

POINTS = np.array([[10.0, 20.0], [150.0, 40.0], [90.0, 200.0]])
HEADER = "x_m,y_m,roof@10:20,mast@150:40,tower@90:200"


def walk(places: int = 30) -> NDArray[np.float64]:
    """(places, 5): x, y and three signals."""
    random = np.random.default_rng(0)
    return np.hstack([random.uniform(0, 200, (places, 2)).round(1), random.uniform(-110, -60, (places, 3)).round(1)])


def csv_of(path: Path, rows: NDArray[np.float64], **cells: str) -> Path:
    """`cells` by name such as l5c2: what stands in that line and column, counted from 1 as an editor does."""
    lines = [HEADER.split(","), *[["" if np.isnan(n) else f"{n:g}" for n in row] for row in rows]]
    for place, text in cells.items():
        line, column = (int(n) for n in place[1:].split("c"))
        lines[line - 1][column - 1] = text
    path.write_text("\n".join(",".join(line) for line in lines) + "\n")
    return path


def npz_of(path: Path, rows: NDArray[np.float64]) -> Path:
    np.savez(path, access_points=POINTS, phones=rows[:, :2], rsrp_db=rows[:, 2:])
    return path


def world(path: Path, unheard: str = "") -> World:
    return World.make(Settings(maps=str(path), candidates=2, measured=2, unheard=unheard))


@pytest.mark.parametrize("word", ["nan", "N/A", "n/a", "NA", "#N/A", "NULL", "-", "--", "None"])
def test_a_word_for_nothing_is_the_same_as_an_empty_cell(word: str, tmp_path: Path) -> None:
    said = world(csv_of(tmp_path / "said.csv", walk(), l7c3=word, l9c5=word)).deployment
    empty = world(csv_of(tmp_path / "empty.csv", walk(), l7c3="", l9c5="")).deployment
    assert np.array_equal(said.gain_db(walk()[:, :2]), empty.gain_db(walk()[:, :2]))


@pytest.mark.parametrize("mark", ["-999", "-9999", "-32768", "2147483647"])
def test_a_mark_is_refused_with_its_line_and_what_to_do(mark: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"log.csv with {mark} dBm of access point mast in line 7") as caught:
        world(csv_of(tmp_path / "log.csv", walk(), l7c4=mark))
    assert f"--set unheard={mark}" in str(caught.value)


@pytest.mark.parametrize("mark", ["-999", "-999.0", "-9999", "2147483647"])
def test_a_mark_that_is_named_is_the_same_as_an_empty_cell(mark: str, tmp_path: Path) -> None:
    marked = world(csv_of(tmp_path / "marked.csv", walk(), l7c3=mark, l9c5=mark), f"7,{mark}").deployment
    empty = world(csv_of(tmp_path / "empty.csv", walk(), l7c3="", l9c5="")).deployment
    assert np.array_equal(marked.gain_db(walk()[:, :2]), empty.gain_db(walk()[:, :2]))
    assert marked.silent_db == empty.silent_db > -130


@pytest.mark.parametrize("value", ["0", "85", "3.5", "-160.5", "-500", "inf", "-inf", "1e30"])
def test_a_power_that_cannot_be_is_refused_with_its_line(value: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="access point mast in line 7") as caught:
        world(csv_of(tmp_path / "log.csv", walk(), l7c4=value))
    said = str(caught.value)
    assert "log.csv" in said and f"{float(value):.10g} dBm" in said and "-160" in said and "\n" not in said


def test_the_ends_of_the_range_are_taken(tmp_path: Path) -> None:
    assert len(world(csv_of(tmp_path / "log.csv", walk(), l7c4="-160", l8c4="-0.1")).survey(99, part="train")) == 21


def test_an_array_is_refused_with_its_row(tmp_path: Path) -> None:
    rows = walk()
    rows[4, 3] = 90.0
    with pytest.raises(UserError, match=r"90 dBm of access point 2 in row 4 \(from 0\)"):
        world(npz_of(tmp_path / "log.npz", rows))
    rows = walk()
    rows[5, 0] = np.nan
    with pytest.raises(UserError, match=r"place that is no number in row 5"):
        world(npz_of(tmp_path / "log.npz", rows))


def test_lines_are_counted_as_an_editor_does_also_after_empty_ones(tmp_path: Path) -> None:
    path = csv_of(tmp_path / "log.csv", walk(), l9c3="12")
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:3], "", "", *lines[3:]]))
    with pytest.raises(UserError, match="line 11"):
        world(path)
    with pytest.raises(UserError, match="'loud' in line 6, column roof@10:20"):
        world(csv_of(tmp_path / "words.csv", walk(), l6c3="loud"))


@pytest.mark.parametrize("mark", [np.nan, -999.0])
def test_silent_places_are_left_out_and_counted(mark: float, tmp_path: Path) -> None:
    rows = walk(1500)
    rows[[7, 70, 700, 1400], 2:] = mark
    with pytest.warns(Notice, match=r"log.csv: left out 4 of 1,500 places where nothing was heard, first line 9"):
        found = world(csv_of(tmp_path / "log.csv", rows), "-999")
    kept = world(npz_of(tmp_path / "kept.npz", np.delete(rows, [7, 70, 700, 1400], axis=0)))
    for part in ("train", "test"):
        assert np.array_equal(found.survey(9999, part=part).phones, kept.survey(9999, part=part).phones)


def test_a_log_in_which_nothing_was_heard_is_refused(tmp_path: Path) -> None:
    rows = walk()
    rows[:, 2:] = np.nan
    with pytest.raises(UserError, match="30 places where nothing was heard"):
        world(npz_of(tmp_path / "log.npz", rows))


def test_the_command_line_tells_the_count_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = walk(60)
    rows[[3, 8], 2:] = np.nan
    path = csv_of(tmp_path / "log.csv", rows)
    words = ["train", "cellfree", "--set", f"maps={path}", "--set", "candidates=2", "--set", "measured=2"]
    assert main([*words, "--steps", "2", "--batch", "8", "--out", str(tmp_path / "run"), "--json"]) == 0
    said = capsys.readouterr().err
    assert said == "fewer: log.csv: left out 2 of 60 places where nothing was heard, first line 5\n"
    with pytest.raises(Notice):  # as before: the command line left no filter behind
        warnings.warn("again", Notice, stacklevel=1)


def test_marks_in_maps_are_pixels_that_are_not_heard(tmp_path: Path) -> None:
    maps = np.random.default_rng(0).uniform(-110, -60, (3, 10, 10))
    marked, empty = maps.copy(), maps.copy()
    marked[1, 2, 3], empty[1, 2, 3] = -9999.0, np.nan
    for name, one in (("marked", marked), ("empty", empty)):
        np.savez(tmp_path / f"{name}.npz", access_points=POINTS, maps_db=one, pixel_m=20.0)
    found = [world(tmp_path / f"{name}.npz", "-9999").deployment for name in ("marked", "empty")]
    grid = np.stack(np.meshgrid(np.arange(10) * 20.0 + 10, np.arange(10) * 20.0 + 10), axis=-1).reshape(-1, 2)
    assert np.array_equal(*[one.gain_db(grid) for one in found])
    with pytest.raises(UserError, match="-9999 dB in map 1, row 2, column 3"):
        world(tmp_path / "marked.npz")
