"""Generated windows in memory, and generated files read with h5py and csv alone, as the competition describes them."""

from __future__ import annotations

import csv
from collections import Counter
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

from fewer.core.errors import UserError
from fewer.systems.nowcast.task.files.layout import Place
from fewer.systems.nowcast.task.generated.archive import write_archive
from fewer.systems.nowcast.task.generated.timetable import timetable
from fewer.systems.nowcast.task.generated.windows import PackedWindows, coded, decoded, generated, places
from fewer.systems.nowcast.task.windows import Windows

PLACES = (Place("roxi_0004", 2019), Place("roxi_0009", 2021))
SIZE = 24


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("archive")
    written = write_archive(root, size=SIZE, seed=4, places=PLACES, windows=2)
    assert sorted(written) == sorted(path for path in root.rglob("*") if path.is_file())
    return root


def rows(root: Path) -> list[dict[str, str]]:
    with open(root / "timestamps_and_splits_stage2.csv", newline="") as file:
        return list(csv.DictReader(file))


def dataset(path: Path, key: str) -> np.ndarray:
    with h5py.File(path) as file:
        assert list(file) == [key]
        return np.asarray(file[key])


def test_windows_have_the_documented_shapes_and_say_what_is_missing() -> None:
    windows = generated("train", count=6, size=42, seed=1).take(torch.arange(6))
    assert [tuple(leaf.shape) for leaf in windows] == [
        (6, 4, 11, 42, 42), (6, 4, 42, 42), (6, 32, 42, 42), (6, 32, 42, 42), (6,)
    ]  # fmt: skip
    assert all(torch.isfinite(leaf.float()).all() for leaf in windows)
    assert windows.satellite.std() < 2 and windows.satellite.abs().max() < 9
    assert windows.rate.min() >= 0 and windows.rate.max() <= 128
    assert ((windows.rate == 0) | (windows.valid == 1)).all()
    assert 0.5 < windows.valid.mean() <= 1
    assert windows.place.tolist() == list(range(6))
    assert places()[:2] == (Place("boxi_0015", 2019), Place("boxi_0034", 2019))


def test_a_window_is_the_same_whatever_the_count_and_another_for_another_seed_or_split() -> None:
    first = torch.arange(2)
    few = generated("test", count=2, size=24, seed=1).take(first)
    more = generated("test", count=5, size=24, seed=1).take(first)
    assert all(torch.equal(one, other) for one, other in zip(few, more, strict=True))
    for split, seed in (("test", 2), ("train", 1), ("validation", 1), ("heldout", 1)):
        other = generated(split, count=2, size=24, seed=seed).take(first)
        assert not torch.equal(few.satellite, other.satellite)


def test_codes_keep_wet_and_dry_exactly_and_rates_to_two_percent() -> None:
    rate = torch.cat([torch.tensor([0.0, 0.05, 0.19999, 0.2, 0.20001, 120.0]), torch.logspace(-1.2, 2, 2000)])
    valid = torch.ones_like(rate, dtype=torch.bool)
    valid[-1] = False
    back, seen = decoded(coded(rate, valid))
    assert torch.equal(back[:-1] >= 0.2, rate[:-1] >= 0.2)
    assert torch.equal(back[:-1] > 0, rate[:-1] > 0)
    assert ((back[1:-1] / rate[1:-1]).log().abs() < 0.02).all()
    assert seen[-1] == 0 and back[-1] == 0 and seen[:-1].all()


def test_packed_windows_turn_nan_into_missing() -> None:
    satellite = torch.zeros(2, 4, 11, 12, 12, dtype=torch.float16)
    satellite[1, 2, :, 3] = float("nan")
    windows = PackedWindows(satellite, torch.zeros(2, 32, 12, 12, dtype=torch.uint8), torch.tensor([5, 6])).take(
        torch.tensor([1])
    )
    assert isinstance(windows, Windows) and windows.place.tolist() == [6]
    assert windows.missing.sum() == 12 and windows.missing[0, 2, 3].all()
    assert windows.satellite.isfinite().all() and windows.valid.all()


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"split": "training"}, "split 'training'"),
        ({"count": 0}, "0 windows"),
        ({"size": 40}, "size 40"),
        ({"regions": ["boxi_15"]}, "region 'boxi_15'"),
        ({"regions": []}, "no region"),
    ],
)
def test_wrong_wishes_are_refused_in_one_line(given: dict[str, object], line: str) -> None:
    wanted = {"split": "train", "count": 1, "size": 24, "seed": 0, **given}
    with pytest.raises(UserError) as caught:
        generated(**wanted)  # type: ignore[arg-type]
    assert str(caught.value).startswith(line) and "\n" not in str(caught.value)


def test_the_csv_has_the_competitions_columns_and_words(archive: Path) -> None:
    found = rows(archive)
    columns = ["time", "date_str", "date", "RATE", "ACRR", "DBZH", "REFL-BT", "all_vars", "split", "split_type"]
    assert list(found[0]) == columns
    kinds = Counter((row["split"], row["split_type"]) for row in found if row["date_str"] < "2021")
    assert kinds["training", "-"] == 43 + 43 + 6  # two stretches, one of them with a gap
    for split in ("validation", "test", "heldout"):
        assert (kinds[split, f"{split}_in"], kinds[split, f"{split}_target"]) == (8, 64)
    assert kinds["test", "test_buffer"] == kinds["heldout", "heldout_buffer"] == 64
    assert kinds["-", "-"] >= 1
    for row in found:
        assert len(row["time"]) == 6 and row["date"].replace("-", "") == row["date_str"]
        assert (row["all_vars"] == "1") == (row["split"] != "-")
        assert row["all_vars"] == str(int(all(row[name] == "1" for name in ("RATE", "ACRR", "DBZH", "REFL-BT"))))


def test_files_have_as_many_rows_as_the_csv_says_and_the_competitions_keys(archive: Path) -> None:
    table = rows(archive)
    for place in PLACES:
        year = [row for row in table if row["date_str"].startswith(str(place.year))]
        words = {"train": "training", "val": "validation", "test": "test_in", "heldout": "heldout_in"}
        for split, word in words.items():
            count = sum(word in (row["split"], row["split_type"]) for row in year)
            image = archive / str(place.year) / "HRIT" / f"{place.region}.{split}.reflbt0.ns.h5"
            radar = archive / str(place.year) / "OPERA" / f"{place.region}.{split}.rates.crop.h5"
            assert image.exists() == (count > 0) and radar.exists() == (count > 0 and split in ("train", "val"))
            if image.exists():
                assert dataset(image, "REFL-BT").shape == (count, 11, SIZE, SIZE)
            if radar.exists():
                assert dataset(radar, "rates.crop").shape == (count, 1, SIZE, SIZE)


def test_radar_files_use_both_codes_and_plausible_rates(archive: Path) -> None:
    rate = dataset(archive / "2019" / "OPERA" / "roxi_0004.train.rates.crop.h5", "rates.crop")
    coded_pixels = rate < 0
    assert set(np.unique(rate[coded_pixels])) <= {-9999000.0, -8888000.0}
    assert (rate == -8888000.0).any() and rate[~coded_pixels].max() <= 128


def test_times_of_one_stretch_follow_each_other_and_events_never_overlap() -> None:
    for year, windows in ((2019, 1), (2020, 7), (2019, 90)):
        events = timetable(year, windows, seed=0)
        quarter = timedelta(minutes=15)
        for before, after in pairwise(events):
            assert before.start + len(before.available) * quarter < after.start
        assert events[-1].start + len(events[-1].available) * quarter < datetime(year + 1, 1, 1)
        assert {event.split for event in events} == {"train", "validation", "test", "heldout"}
    assert timetable(2019, 1, 0)[0].start >= datetime(2019, 2, 15)
    assert {event.split for event in timetable(2021, 2, 0)} == {"test", "heldout"}


def test_equal_seeds_write_equal_files_and_images_follow_each_other(archive: Path, tmp_path: Path) -> None:
    write_archive(tmp_path, size=SIZE, seed=4, places=PLACES[1:], windows=2)
    name = Path("2021") / "HRIT" / "roxi_0009.test.reflbt0.ns.h5"
    again, before = dataset(tmp_path / name, "REFL-BT"), dataset(archive / name, "REFL-BT")
    assert np.array_equal(again, before, equal_nan=True)
    window = dataset(archive / "2019" / "HRIT" / "roxi_0004.val.reflbt0.ns.h5", "REFL-BT")[:, 4]  # IR_108
    step, block = (np.nanmean(np.abs(window[5] - window[other])) for other in (4, 36 + 5))
    assert step < 0.7 * block


def test_a_folder_that_cannot_be_written_is_one_line_and_nothing_half_written_stays(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match="folder that can be written"):
        write_archive(tmp_path / "file" / "data", size=SIZE, places=PLACES[:1])
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file"]


def test_a_folder_with_anything_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "2019").mkdir()
    (tmp_path / "2019" / "mine.h5").write_text("registered data")
    with pytest.raises(UserError, match="new or empty"):
        write_archive(tmp_path, size=SIZE, places=PLACES[:1])
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["mine.h5"]
