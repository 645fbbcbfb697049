"""`fewer data nowcast`: what it says about good, bad and strange folders."""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np
import pytest

from fewer.cli import main
from fewer.systems.nowcast.task.files.check import WET, check
from fewer.systems.nowcast.task.files.layout import CONTESTS, read_layout
from tests.systems.nowcast.competition import NODATA, UNDETECT, rates, write_competition, write_h5

SIZE = 12
Said = pytest.CaptureFixture[str]
SATELLITE, RADAR = "2019/HRIT/{}.reflbt0.ns.h5", "2019/OPERA/{}.rates.crop.h5"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_competition(tmp_path, size=SIZE)
    return tmp_path


def report(root: Path, frames: int = 0):  # type: ignore[no-untyped-def]
    return check(root, read_layout("2022"), frames=frames)


def test_the_published_wet_fractions_are_of_the_core_contest() -> None:
    assert set(WET) == set(CONTESTS["core"])


def test_a_whole_folder_is_counted_and_nothing_is_wrong(root: Path) -> None:
    found = report(root)
    assert found.problems == [] and len(found.found) == 2 * 4
    one = found.found[0]
    assert (one.rows, one.windows, one.gaps, one.size, one.looked_at) == (139, 19, 3, SIZE, 139)
    rain = rates(139, SIZE, 10 * 2019)
    seen = rain != NODATA
    assert one.wet == pytest.approx((rain[seen] >= 0.2).mean())
    assert one.unseen == pytest.approx(1 - seen.mean()) and one.missing == 0
    assert one.published_wet == 0.0732 and found.found[1].published_wet == 0.0596
    assert found.found[2].wet is None and found.found[2].windows == 2
    assert found.contests[1].startswith("core: 2 of 14")


def test_missing_dry_and_unseen_frames_are_counted(root: Path) -> None:
    with h5py.File(root / SATELLITE.format("boxi_0015.train"), "r+") as file:
        file["REFL-BT"][7] = np.nan
        file["REFL-BT"][8, 3, 0, :6] = 0.0  # K
    with h5py.File(root / RADAR.format("boxi_0015.train"), "r+") as file:
        file["rates.crop"][3:6] = UNDETECT
        file["rates.crop"][9:11] = NODATA
    one = report(root).found[0]
    assert one.missing == pytest.approx((1 + 6 / SIZE**2) / 139) and one.empty_images == 1
    assert one.dry_frames == 3 and one.unseen_frames == 2
    assert "1 images empty" in one.line() and "3 dry" in one.line()


def test_every_problem_is_one_line_and_the_rest_is_still_told(root: Path, capsys: Said) -> None:
    path = root / SATELLITE.format("roxi_0004.train")
    path.write_bytes(path.read_bytes()[:5000])
    (root / SATELLITE.format("roxi_0004.test")).unlink()
    write_h5(root / SATELLITE.format("roxi_0004.heldout"), "REFL-BT", np.zeros((8, 10, SIZE, SIZE)))
    write_h5(root / RADAR.format("boxi_0015.val"), "rates.crop", np.full((108, 1, SIZE, SIZE), UNDETECT))
    write_h5(root / RADAR.format("roxi_0004.val"), "rates.crop", np.full((108, 1, SIZE, SIZE), NODATA))
    assert main(["data", "nowcast", "--check", str(root)]) == 0
    lines = capsys.readouterr().out.splitlines()
    problems = [line for line in lines if line.startswith("problem: ")]
    for words in (
        ("roxi_0004 2019 train", "truncated"), ("roxi_0004 2019", "no test files"), ("heldout", "11 bands"),
        ("boxi_0015 2019 validation", "no rain"), ("roxi_0004 2019 validation", "no radar saw anything"),
    ):  # fmt: skip
        assert sum(all(word in line for word in words) for line in problems) == 1, (words, problems)
    assert len(problems) == 5 and any(line.startswith("boxi_0015 2019 train: 139 rows") for line in lines)


def test_radar_files_without_a_satellites_are_a_problem(root: Path) -> None:
    for path in root.glob("2019/HRIT/boxi_0015.*"):
        path.unlink()
    assert report(root).problems == ["boxi_0015 2019: radar files without a satellite's"]


def test_the_csv_that_was_read_is_the_one_that_is_named(root: Path) -> None:
    table = root / "timestamps_and_splits_stage2.csv"
    lines = table.read_text().splitlines(keepends=True)
    (root / "timestamps_and_splits_2019.csv").write_text("".join(lines[:10] + lines[21:]))
    table.unlink()
    problems = [line for line in report(root).problems if "rows in" in line]
    assert problems and all("timestamps_and_splits_2019.csv" in line for line in problems)


def test_an_unusable_folder_ends_with_2(root: Path, capsys: Said) -> None:
    (root / "timestamps_and_splits_stage2.csv").unlink()
    assert main(["data", "nowcast", "--check", str(root)]) == 2
    said = capsys.readouterr()
    assert said.err.count("\n") == 1 and "no csv of times" in said.err
    assert main(["data", "nowcast", "--check", str(root / "none")]) == 2
    assert main(["data", "nowcast"]) == 2
    assert main(["data", "nowcast", "--pack", str(root)]) == 2
    assert capsys.readouterr().err.count("\n") == 3


def test_the_check_speaks_json(root: Path, capsys: Said) -> None:
    assert main(["data", "nowcast", "--check", str(root), "--frames", "5", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["found"][0]["place"] == ["boxi_0015", 2019] and said["found"][0]["looked_at"] == 5


def test_packing_ahead_reads_everything_once(root: Path, capsys: Said) -> None:
    words = ["data", "nowcast", "--pack", str(root), "--cache", str(root / "packed"), "--json"]
    assert main(words) == 0
    rows = 2 * (139 + 108 + 8 + 8)
    assert json.loads(capsys.readouterr().out)["records_read"] == rows + 2 * (139 + 108)  # images, and rain
    assert main(words) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["records_read"] == 0 and said["rows"] == rows


def test_generated_weather_is_a_folder_without_problems(tmp_path: Path, capsys: Said) -> None:
    words = ["data", "nowcast", "--generate", str(tmp_path / "made"), "--size", "24", "--contest", "stage1"]
    assert main(words) == 0
    found = report(tmp_path / "made", frames=8)
    # so small a domain may stay dry for hours
    assert all("no rain" in line for line in found.problems) and {one.place for one in found.found} == set(
        CONTESTS["stage1"]
    )
    assert all(one.windows >= 1 and one.size == 24 for one in found.found) and len(found.found) == 12
    assert main(["data", "nowcast", "--generate", str(tmp_path / "x"), "--contest", "cor"]) == 2
    assert "did you mean 'core'" in capsys.readouterr().err
