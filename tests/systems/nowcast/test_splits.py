"""Times and splits: which rows of a file are which, and that no window crosses a gap."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from fewer.core.errors import UserError
from fewer.systems.nowcast.task.files.splits import STEP, read_splits
from tests.systems.nowcast.competition import HEADER, Calendar, calendar, write_csv


def written(folder: Path, days: Calendar, padded: bool = True) -> Path:
    path = folder / "times.csv"
    write_csv(path, days.lines(padded))
    return path


def counted_windows(days: Calendar) -> int:
    """By hand: a run of n available training rows has n - 35 windows."""
    total = run = 0
    for split, _, available in [*days.rows, ("-", "-", True)]:
        if split == "training" and available:
            run += 1
        else:
            total, run = total + max(run - 35, 0), 0
    return total


PARTS = some.lists(
    some.one_of(
        some.tuples(some.just("training"), some.integers(1, 90)),
        some.tuples(some.just("hole"), some.integers(1, 3)),
        some.sampled_from([("validation", 0), ("test", 0), ("heldout", 0)]),
    ),
    min_size=1,
    max_size=12,
)


def built(parts: list[tuple[str, int]], start: datetime = datetime(2019, 12, 20)) -> Calendar:
    days = Calendar(start).training(1)
    for name, count in parts:
        if name == "training":
            days.training(count)
        elif name == "hole":
            days.training(count, available=False)
        elif name == "validation":
            days.validation()
        else:
            days.block(name)
    return days


@given(parts=PARTS)
def test_windows_never_cross_a_gap_and_none_is_lost(parts: list[tuple[str, int]], tmp_path_factory) -> None:  # type: ignore[no-untyped-def]
    days = built(parts, datetime(2019, 3, 1))
    splits = read_splits(written(tmp_path_factory.mktemp("csv"), days))
    rows = splits.rows("train", 2019)
    assert len(rows.minutes) == days.count("training")
    for start in rows.starts:
        assert (np.diff(rows.minutes[start : start + 36]) == STEP).all()
        assert rows.minutes[start + 35] - rows.minutes[start] == 8 * 60 + 45
    assert len(rows.starts) == counted_windows(days)
    blocks = sum(name == "validation" for name, _ in parts)
    found = splits.rows("validation", 2019)
    assert len(found.starts) == blocks and len(found.minutes) == 36 * blocks
    for split in ("test", "heldout"):
        count = sum(name == split for name, _ in parts)
        assert splits.rows(split, 2019).starts.tolist() == [4 * k for k in range(count)]


def test_the_year_2019_has_14450_windows_in_20308_rows(tmp_path: Path) -> None:
    """30720 rows from 15 February to 31 December: 60 blocks of each kind, 92 unavailable, as the competition has."""
    days = Calendar()
    runs = [122] * 166  # of at least 36 rows: 14450 windows, if 20260 rows lie in 166 of them
    for number in range(20260 - sum(runs)):
        runs[number] += 1
    short = [16, 16, 16]  # 48 rows too short for any window
    blocks = ["validation"] * 60 + ["test"] * 60 + ["heldout"] * 60
    for number, run in enumerate([*runs, *short]):
        days.training(run)
        if number < 60:
            days.validation()
        else:
            days.block(blocks[number])
    for name in blocks[len(runs) + len(short) :]:
        days.block(name)
    days.training(92, available=False)
    assert len(days.rows) == 30720 and days.lines()[-1][1] == "20191231"
    splits = read_splits(written(tmp_path, days))
    rows = splits.rows("train", 2019)
    assert len(rows.minutes) == 20308 and len(rows.starts) == 14450
    assert len(splits.rows("validation", 2019).starts) == 60
    assert len(splits.rows("test", 2019).minutes) == len(splits.rows("heldout", 2019).minutes) == 240
    assert int(sum(splits.kind == "test_buffer")) == int(sum(splits.kind == "heldout_target")) == 1920


def test_rows_are_counted_in_each_year_by_itself(tmp_path: Path) -> None:
    days = built([("training", 1500)], datetime(2019, 12, 25))
    splits = read_splits(written(tmp_path, days))
    first, second = splits.rows("train", 2019), splits.rows("train", 2020)
    assert len(first.minutes) == 7 * 96 and len(first.minutes) + len(second.minutes) == 1501
    assert len(first.starts) == 7 * 96 - 35  # none runs into the new year
    assert second.starts[0] == 0 and str(second.minutes[0].astype("datetime64[m]")) == "2020-01-01T00:00"


def test_lost_zeros_and_shuffled_lines_change_nothing(tmp_path: Path) -> None:
    days = calendar()
    whole = read_splits(written(tmp_path, days))
    lines = days.lines(padded=False)
    assert lines[0][0] == "0"
    write_csv(tmp_path / "other.csv", [lines[k] for k in np.random.default_rng(0).permutation(len(lines))])
    other = read_splits(tmp_path / "other.csv")
    for split in ("train", "validation", "test", "heldout"):
        for mine, theirs in zip(whole.rows(split, 2019), other.rows(split, 2019)):
            np.testing.assert_array_equal(mine, theirs)


def spoilt(lines: list[list[str]], row: int, column: str, value: str) -> list[list[str]]:
    lines[row][HEADER.index(column)] = value
    return lines


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda lines: spoilt(lines, 3, "time", "noon"), "line 5"),
        (lambda lines: spoilt(lines, 3, "time", "000700"), "line 5"),
        (lambda lines: spoilt(lines, 3, "date_str", "20191345"), "20191345"),
        (lambda lines: [*lines, lines[0]], "twice"),
        (lambda lines: [], "without rows"),
    ],
)
def test_a_spoilt_csv_is_one_line(change, expected: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    write_csv(tmp_path / "times.csv", change(calendar().lines()))
    with pytest.raises(UserError) as error:
        read_splits(tmp_path / "times.csv")
    assert "times.csv" in str(error.value) and expected.replace("20191345", "2019-13-45") in str(error.value)


def test_a_test_block_with_a_hole_is_refused(tmp_path: Path) -> None:
    days = calendar()
    lines = days.lines()
    del lines[next(k for k, line in enumerate(lines) if line[-1] == "test_in") + 1]
    write_csv(tmp_path / "times.csv", lines)
    with pytest.raises(UserError, match="broken test block"):
        read_splits(tmp_path / "times.csv").rows("test", 2019)


def test_a_csv_without_a_column_is_refused(tmp_path: Path) -> None:
    (tmp_path / "times.csv").write_text("time,date_str,split\n000000,20190215,training\n")
    with pytest.raises(UserError, match="all_vars"):
        read_splits(tmp_path / "times.csv")
