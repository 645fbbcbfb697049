"""Radar events: ODIM HDF5 written by the standard's own words, and plain npz."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from fewer.cli import main
from fewer.core.errors import UserError
from fewer.systems.nowcast.task.files import radar
from fewer.systems.nowcast.task.files.own.reading import read_images

PROJECTION = "+proj=laea +lat_0=55.0 +lon_0=10.0 +x_0=1950000.0 +y_0=-2100000.0 +units=m +ellps=WGS84"
RATE: dict[str, Any] = {"quantity": b"RATE", "gain": 1.0, "offset": 0.0, "nodata": -9999000.0, "undetect": -8888000.0}
RAW = np.array([[-9999000.0, -8888000.0, 0.5], [1.25, 40.0, 0.0]])


def write_odim(path: Path, pictures: list[tuple[np.ndarray, dict[str, Any]]], time: str = "180000") -> None:
    """A composite as ODYSSEY's: one dataset a picture, `what` beside its data."""
    with h5py.File(path, "w") as file:
        file.attrs["Conventions"] = np.bytes_("ODIM_H5/V2_2")
        file.create_group("what").attrs.update({"object": b"COMP", "date": b"20180824", "time": time.encode()})
        where = {"projdef": PROJECTION.encode(), "xscale": 2000.0, "yscale": 2000.0, "UL_lon": -39.5, "UL_lat": 67.0}
        file.create_group("where").attrs.update(where)
        for number, (raw, what) in enumerate(pictures, 1):
            data = file.create_group(f"dataset{number}/data1")
            data.create_dataset("data", data=raw)
            data.create_group("what").attrs.update(what)


def test_nodata_is_unseen_undetect_is_dry_and_gain_and_offset_hold(tmp_path: Path) -> None:
    quality = (np.full(RAW.shape, 200, dtype=np.uint8), {"quantity": b"QIND", "gain": 1 / 255, "offset": 0.0})
    write_odim(tmp_path / "a.h5", [quality, (RAW, RATE)])
    rates, minutes, kilometres = radar.read(tmp_path / "a.h5")
    assert rates.shape == (1, 2, 3) and rates.dtype == np.float32 and kilometres == 2 and minutes.tolist() == [0]
    np.testing.assert_array_equal(rates[0], np.array([[np.nan, 0, 0.5], [1.25, 40, 0]], dtype=np.float32))
    scaled = {"quantity": b"RATE", "gain": 0.5, "offset": -0.5, "nodata": 255.0, "undetect": 0.0}
    write_odim(tmp_path / "b.h5", [(np.array([[0, 1, 5], [255, 2, 201]], dtype=np.uint8), scaled)])
    np.testing.assert_array_equal(radar.read(tmp_path / "b.h5").rates[0], [[0, 0, 2], [np.nan, 0.5, 100]])


def test_a_folder_is_a_sequence_in_times_order(tmp_path: Path) -> None:
    for name, time, scale in (("b.h5", "1815", 2), ("c.hdf", "1800", 1), ("a.h5", "1830", 3)):
        write_odim(tmp_path / name, [(np.full((2, 3), float(scale)), RATE)], time=f"{time}00")
    event = radar.read(tmp_path)
    assert event.minutes.tolist() == [0, 15, 30] and event.rates[:, 0, 0].tolist() == [1, 2, 3]


def test_several_datasets_of_one_file_are_several_times(tmp_path: Path) -> None:
    times = [{**RATE, "date": b"20180824", "time": time} for time in (b"181500", b"180000")]
    write_odim(tmp_path / "a.h5", [(RAW, times[0]), (RAW * 0 + 1, times[1])])
    event = radar.read(tmp_path / "a.h5")
    assert event.minutes.tolist() == [0, 15] and event.rates[0, 0, 0] == 1 and event.rates[1, 1, 1] == 40


def test_accumulations_and_reflectivities_become_rates(tmp_path: Path) -> None:
    period = {"startdate": b"20180824", "starttime": b"174500", "enddate": b"20180824", "endtime": b"180000"}
    write_odim(tmp_path / "sum.h5", [(RAW, {**RATE, "quantity": b"ACRR", **period})])
    assert radar.read(tmp_path / "sum.h5").rates[0, 1, :2].tolist() == [5, 160]  # mm in a quarter of an hour
    echo = 10 * np.log10(200 * np.array([[1.0, 10.0]]) ** 1.6)
    write_odim(tmp_path / "dbz.h5", [(echo, {**RATE, "quantity": b"DBZH"})])
    np.testing.assert_allclose(radar.read(tmp_path / "dbz.h5").rates[0], [[1, 10]], rtol=1e-6)


def test_the_domain_is_read_where_the_file_tells(tmp_path: Path) -> None:
    write_odim(tmp_path / "a.h5", [(RAW, RATE)])
    found = read_images(tmp_path / "a.h5").grid
    assert found.projection == PROJECTION and found.shape == (2, 3) and found.pixel == (2000, 2000)
    assert (found.x[0], found.y[0]) == pytest.approx((1000, -1000), abs=5000)


def test_files_that_are_no_composites_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="without an image"):
        radar.read(tmp_path)
    write_odim(tmp_path / "a.h5", [(RAW, {**RATE, "quantity": b"QIND"})])
    with pytest.raises(UserError, match="QIND"):
        radar.read(tmp_path / "a.h5")
    write_odim(tmp_path / "a.h5", [(np.zeros((200, 200)), RATE)])
    (tmp_path / "a.h5").write_bytes((tmp_path / "a.h5").read_bytes()[:9000])
    with pytest.raises(UserError, match="HDF5"):
        radar.read(tmp_path / "a.h5")
    write_odim(tmp_path / "a.h5", [(RAW, RATE)])
    write_odim(tmp_path / "b.h5", [(RAW[:1], RATE)], time="181500")
    with pytest.raises(UserError, match="one domain"):
        radar.read(tmp_path)
    write_odim(tmp_path / "b.h5", [(RAW, RATE)])
    with pytest.raises(UserError, match="two images of one time"):
        radar.read(tmp_path)


def test_an_npz_event_keeps_unseen_and_loses_negative_rates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rain = np.array([[[np.nan, -0.6]], [[0.0, 4.0]], [[np.inf, 1.0]]], dtype=np.float16)
    np.savez(tmp_path / "e.npz", rain=rain, times=np.array(["a", "b", "c"]), step_min=5, res_km=1.0)
    event = radar.read(tmp_path / "e.npz")
    np.testing.assert_array_equal(event.rates, np.array([[[np.nan, 0]], [[0, 4]], [[np.nan, 1]]], dtype=np.float32))
    assert event.minutes.tolist() == [0, 5, 10] and event.kilometres == 1
    assert main(["data", "nowcast", "--radar", str(tmp_path / "e.npz"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["seen"] == pytest.approx(4 / 6) and said["wet"] == 0.5 and said["largest_mm_per_hour"] == 4


def test_an_npz_that_is_no_event_is_one_line(tmp_path: Path) -> None:
    np.savez(tmp_path / "e.npz", rain=np.zeros((2, 2)), step_min=5, res_km=1.0)
    with pytest.raises(UserError, match="time, y, x"):
        radar.read(tmp_path / "e.npz")
    np.savez(tmp_path / "e.npz", rain=np.zeros((2, 2, 2)), step_min=5)
    with pytest.raises(UserError, match="res_km"):
        radar.read(tmp_path / "e.npz")
    (tmp_path / "e.npz").write_bytes(b"no zip")
    with pytest.raises(UserError, match="npz"):
        radar.read(tmp_path / "e.npz")


@pytest.mark.parametrize(
    ("raw", "what", "line"),
    [
        (RAW, {"gain": 0.0}, "gain 0"),
        (RAW, {"gain": np.nan}, "gain nan"),
        (RAW, {"gain": b"much"}, "could not convert"),
        (RAW, {"offset": np.inf}, "offset inf"),
        (RAW[:0], {}, "(0, 3)"),
        (np.zeros((2, 3, 4)), {}, "(2, 3, 4)"),
        (RAW.astype(np.complex64), {}, "complex64"),
        (np.full((2, 3), b"x"), {}, "expected ODIM"),
        (RAW, {"nodata": None}, "no attribute nodata"),
    ],
)
def test_a_composite_that_cannot_be_rates_is_one_line(
    raw: Any, what: dict[str, Any], line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    attributes = {key: value for key, value in {**RATE, **what}.items() if value is not None}
    write_odim(tmp_path / "a.h5", [(raw, attributes)])
    assert main(["data", "nowcast", "--radar", str(tmp_path / "a.h5")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and line in said, said


def test_faster_than_any_rain_on_record_is_unseen(tmp_path: Path) -> None:
    write_odim(tmp_path / "a.h5", [(np.array([[1.0, 1900.0, 2100.0, 1e300]]), RATE)])
    expected = np.array([[[1, 1900, np.nan, np.nan]]], dtype=np.float32)
    np.testing.assert_array_equal(radar.read(tmp_path / "a.h5").rates, expected)
    np.savez(tmp_path / "e.npz", rain=[[[1.0, 1900.0, 2100.0, 1e300]]], step_min=5, res_km=1.0)
    np.testing.assert_array_equal(radar.read(tmp_path / "e.npz").rates, expected)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"rain": np.zeros((0, 4, 4))}, "(0, 4, 4)"),
        ({"rain": np.zeros((2, 4, 4), dtype=bool)}, "bool"),
        ({"rain": np.zeros((2, 4, 4), dtype=np.complex64)}, "complex64"),
        ({"times": np.array(["1800"])}, "times (1,) of 2"),
        ({"times": np.array(["1815", "1800"])}, "rising"),
        ({"times": np.array(["1800", "1800"])}, "rising"),
        ({"step_min": np.nan}, "step_min nan"),
        ({"res_km": np.ones(2)}, "res_km"),
    ],
)
def test_an_event_that_cannot_be_is_one_line(
    change: dict[str, Any], line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    times = np.array(["1800", "1815"])
    np.savez(
        tmp_path / "e.npz", **{"rain": np.ones((2, 4, 4)), "times": times, "step_min": 15, "res_km": 2.0, **change}
    )
    assert main(["data", "nowcast", "--radar", str(tmp_path / "e.npz")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and line in said, said
