"""`fewer forecast`: files of four layouts and three projections become a NetCDF in the right place, and pictures."""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np
import pyproj
import pytest
import xarray
from PIL import Image

from fewer.cli import main
from fewer.systems.nowcast.task.files.own.reading import read_images
from tests.systems.nowcast.own_files import LAYOUTS, npz, showers

RATES = showers(6)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_forecast_in_its_place(layout: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(path) for path in LAYOUTS[layout](tmp_path, RATES)]
    coarse = ["--pixel-km", "2"] if layout == "radolan" else []
    out, picture = tmp_path / "f.nc", tmp_path / "f.png"
    words = ["forecast", *files, "--hours", "0.5", *coarse, "-o", str(out), "--picture", str(picture), "--json"]
    assert main(words) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["placed"] and said["images"] == 6 and said["minutes_ahead"] == [10, 20, 30]
    assert said["last_image"] == "2021-06-01T12:50:00"
    with Image.open(picture) as drawn:
        assert drawn.size[0] > 600
    with xarray.open_dataset(out, decode_timedelta=False) as found:
        assert found.time.values[0] == np.datetime64("2021-06-01T13:00:00") and found.lead_time.values.tolist() == [
            10,
            20,
            30,
        ]
        assert found.rain_rate.attrs["units"] == "mm h-1" and found.rain_probability.dims == ("time", "y", "x")
        system = pyproj.CRS.from_cf(found.crs.attrs)
        assert system.equals(pyproj.CRS.from_wkt(found.crs.attrs["spatial_ref"]))
        longitude, latitude = pyproj.Transformer.from_crs(system, system.geodetic_crs, always_xy=True).transform(
            float(found.x[0]), float(found.y[0])
        )
        corner = {"odim": (5.0, 52.0), "knmi": (0.0, 55.97), "netcdf": (7.5, 51.67), "radolan": (2.0715, 54.5877)}[
            layout
        ]
        assert (longitude, latitude) == pytest.approx(corner, abs=0.1)
        assert float(found.longitude[0, 0]) == pytest.approx(longitude, abs=1e-4)
        # what was seen moved two columns a step: the rate field of the next step lies there
        part = found.rain_rate.values[0][:64, 4:70]
        ahead = showers(7)[6][:, 4:70]
        assert np.corrcoef(part.ravel(), ahead.ravel())[0, 1] > 0.7
        probability = found.rain_probability.values
        assert np.nanmin(probability) >= 0 and np.nanmax(probability) <= 1
        if layout == "radolan":
            assert np.isnan(probability[0, 405:]).all() and np.isfinite(probability[0, :395]).all()


def test_rain_reads_alike_from_every_layout(tmp_path: Path) -> None:
    for layout, write in LAYOUTS.items():
        (tmp_path / layout).mkdir()
        images = read_images(write(tmp_path / layout, RATES[:2]))
        if layout == "radolan":
            images = images.coarser(2)
        found = images.rates[:, :64, :72]
        step = 0.12 if layout == "radolan" else 0.06 if layout == "knmi" else 1e-4  # what whole numbers round away
        np.testing.assert_allclose(found, RATES[:2], atol=step / 2 + 1e-4)
        assert images.grid.kilometres == pytest.approx(2, abs=0.01) and images.step_minutes == 10


def test_echoes_of_the_netherlands_are_read_as_their_formula_says(tmp_path: Path) -> None:
    path = LAYOUTS["knmi"](tmp_path, RATES[:1])[0]
    codes = np.arange(RATES[0].size).reshape(RATES[0].shape).astype(np.uint8)
    said = {"calibration_formulas": b"GEO = 0.500000 * PV + -32.000000", "calibration_missing_data": 0}
    with h5py.File(path, "a") as file:
        image = file["image1"]
        del image["image_data"]
        image["image_data"] = codes
        image.attrs["image_geo_parameter"] = b"REFLECTIVITY_[DBZ]"
        image["calibration"].attrs.update({**said, "calibration_out_of_image": 255})
    found = read_images([path]).rates[0]
    assert np.isnan(found[codes == 255]).all() and (found[codes == 0] == 0).all()
    between = (codes > 0) & (codes < 255)
    expected = (10 ** ((0.5 * codes[between] - 32) / 10) / 200) ** (1 / 1.6)
    strong = expected < 1000
    np.testing.assert_allclose(found[between][strong], expected[strong], rtol=1e-3)


def test_radolans_corner_is_where_the_weather_service_says(tmp_path: Path) -> None:
    grid = read_images(LAYOUTS["radolan"](tmp_path, RATES[:1])).grid
    west, south = grid.x[0] - 500, grid.y[-1] - 500
    system = pyproj.CRS.from_user_input(grid.projection)
    found = pyproj.Transformer.from_crs(system, system.geodetic_crs, always_xy=True).transform(west, south)
    assert found == pytest.approx((3.5889, 46.9526), abs=1e-3)


def test_missing_and_uneven_images_are_said_and_do_not_stop_the_forecast(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(path) for k, path in enumerate(LAYOUTS["odim"](tmp_path, RATES)) if k not in (2, 3)]
    assert main(["forecast", *files, "--hours", "0.5", "-o", str(tmp_path / "f.nc"), "--json"]) == 0
    told = capsys.readouterr()
    assert "2 of 6 images missing at a step of 10 minutes" in json.loads(told.out)["remarks"]
    assert "fewer: 2 of 6 images missing" in told.err
    # two images half an hour apart still show how fast rain moves
    with xarray.open_dataset(tmp_path / "f.nc", decode_timedelta=False) as found:
        ahead = showers(9)[8][:, 8:70]
        assert np.corrcoef(found.rain_rate.values[2][:, 8:70].ravel(), ahead.ravel())[0, 1] > 0.5


def test_a_half_covered_map_stays_unknown_where_nobody_looks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rates = RATES.copy()
    rates[:, :, 40:] = np.nan
    file = npz(tmp_path, rates)[0]
    assert main(["forecast", str(file), "--hours", "1", "--animate", str(tmp_path / "f.gif"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert any("56 % of the map was seen" in remark for remark in said["remarks"])
    with Image.open(tmp_path / "f.gif") as moving:
        assert moving.n_frames == 7  # type: ignore[attr-defined]


def test_what_cannot_be_forecast_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(npz(tmp_path, RATES)[0])
    one = str(LAYOUTS["odim"](tmp_path, RATES[:1])[0])
    dark = np.full_like(RATES, np.nan)
    np.savez(tmp_path / "dark.npz", rain=dark, step_min=10, res_km=2.0)
    out = ["-o", str(tmp_path / "f.nc")]
    for words, line in (
        ([file], "nowhere to write"),
        ([file, "--hours", "0", *out], "--hours 0"),
        ([file, "--hours", "9", *out], "at most 8"),
        ([file, "--show", "snow", *out], "--show snow"),
        ([file, "--pixel-km", "3", *out], "a multiple"),
        ([one, *out], "two or more"),
        ([str(tmp_path / "absent.h5"), *out], "no such file"),
        ([str(tmp_path / "dark.npz"), *out], "nothing was measured"),
        ([file, "--pack", "digits-3197", *out], "a pack of nowcast"),
    ):
        assert main(["forecast", *words]) == 2, words
        said = capsys.readouterr().err
        assert said.count("\n") == 1 and line in said, said
