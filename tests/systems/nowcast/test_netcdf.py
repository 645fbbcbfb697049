"""Forecasts as CF-NetCDF, read back with netCDF4 alone."""

from __future__ import annotations

from pathlib import Path

import netCDF4
import numpy as np
import pytest

from fewer.core.errors import UserError
from fewer.systems.nowcast.task.files.netcdf import Forecast, write_netcdf
from fewer.systems.nowcast.task.files.own.grid import Grid, easting_northing, from_corner, unplaced

OPERA = "+proj=laea +lat_0=55.0 +lon_0=10.0 +x_0=1950000.0 +y_0=-2100000.0 +units=m +ellps=WGS84"
TIMES = np.array(["2019-02-15T00:45", "2019-02-16T12:00"], dtype="datetime64[m]")
MINUTES = [15.0, 30.0, 45.0]


def values(rows: int = 5, columns: int = 7) -> np.ndarray:
    found = np.random.default_rng(0).uniform(size=(2, 3, rows, columns)).astype(np.float32)
    found[0, 0, 0, 0] = np.nan
    return found


def forecast(name: str = "rain_probability", grid: Grid | None = None) -> Forecast:
    return Forecast({name: values()}, TIMES, MINUTES, grid or unplaced(5, 7, 2.0))


def test_any_tool_reads_values_units_and_times(tmp_path: Path) -> None:
    path = tmp_path / "out.nc"
    write_netcdf(path, forecast())
    assert [file.name for file in tmp_path.iterdir()] == ["out.nc"]
    with netCDF4.Dataset(path) as file:
        assert file.Conventions.startswith("CF-")
        rain = file["rain_probability"]
        assert rain.dimensions == ("time", "lead_time", "y", "x") and rain.units == "1"
        found = np.ma.filled(rain[:], np.nan)
        np.testing.assert_array_equal(found, values())
        assert file["lead_time"][:].tolist() == [15, 30, 45] and file["lead_time"].units == "minutes"
        clock = file["time"]
        when = netCDF4.num2date(clock[:], clock.units, clock.calendar, only_use_cftime_datetimes=False)
        assert [str(one) for one in when] == ["2019-02-15 00:45:00", "2019-02-16 12:00:00"]
        valid = file["valid_time"]
        assert str(netCDF4.num2date(valid[1, 2], valid.units)) == "2019-02-16 12:45:00"
        assert "valid_time" in rain.coordinates
        assert file["x"][:].tolist() == [-6, -4, -2, 0, 2, 4, 6] and file["x"].units == "km"
        assert file["y"][0] == 4 and file["y"][-1] == -4  # from north to south
        assert "grid_mapping" not in rain.ncattrs()


def test_a_known_domain_lies_on_the_map(tmp_path: Path) -> None:
    grid = from_corner(OPERA, (0.0, 0.0), pixel=(2000.0, 2000.0), shape=(5, 7))
    write_netcdf(tmp_path / "out.nc", forecast("rain_rate", grid))
    with netCDF4.Dataset(tmp_path / "out.nc") as file:
        rain = file["rain_rate"]
        assert rain.standard_name == "rainfall_rate" and rain.units == "mm h-1"
        mapping = file[rain.grid_mapping]
        assert mapping.grid_mapping_name == "lambert_azimuthal_equal_area"
        assert mapping.latitude_of_projection_origin == 55 and mapping.false_northing == -2100000
        assert mapping.GeoTransform == "0.0 2000.0 0 0.0 0 -2000.0"
        assert file["x"].standard_name == "projection_x_coordinate" and file["x"].units == "m"
        np.testing.assert_allclose(file["x"][:], 1000 + 2000 * np.arange(7), atol=0.1)
        np.testing.assert_allclose(file["y"][:], -1000 - 2000 * np.arange(5), atol=0.1)
        assert file["latitude"].shape == (5, 7) and file["longitude"][0, 0] == pytest.approx(-39.50, abs=0.01)


@pytest.mark.parametrize(
    ("longitude", "latitude", "x", "y"),
    [(-39.5357864125034, 67.0228327520103, 0, 0), (-10.4345768386404, 31.7462153193176, 0, -4400000),
     (57.8119647501499, 67.6210371071631, 3800000, 0), (10.0, 55.0, 1950000, -2100000)],
)  # fmt: skip
def test_operas_corners_are_where_opera_says(longitude: float, latitude: float, x: float, y: float) -> None:
    assert easting_northing(OPERA, longitude, latitude) == pytest.approx((x, y), abs=0.1)


def test_a_projection_that_nobody_knows_is_one_line() -> None:
    with pytest.raises(UserError, match="one that PROJ knows"):
        easting_northing("+proj=nonsense", 5, 52)


def test_shapes_that_do_not_fit_are_refused() -> None:
    grid = unplaced(5, 7, 2.0)
    for fields, times, words in (
        ({"rain": values()[0]}, TIMES, "lead_time"),
        ({"rain": values()}, TIMES[:1], "1 times"),
        ({"snow": values()}, TIMES, "rain_probability"),
    ):
        with pytest.raises(UserError, match=words):
            Forecast(fields, times, MINUTES, grid)
    with pytest.raises(UserError, match="lead_time"):
        Forecast({"rain": values()}, TIMES, MINUTES, unplaced(4, 4, 2.0))
