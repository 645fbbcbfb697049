"""Radar files as four services write them, and npz: the same rain moving east, in each layout and projection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import xarray
from scipy.ndimage import gaussian_filter

LAEA = "+proj=laea +lat_0=55.0 +lon_0=10.0 +x_0=1950000.0 +y_0=-2100000.0 +units=m +ellps=WGS84"
STEREO = "+proj=stere +lat_0=90 +lon_0=0.0 +lat_ts=60.0 +a=6378.137 +b=6356.752 +x_0=0 +y_0=0"
STEP = 10  # minutes
_LONGEST = 30  # images, whatever is asked for: rain is the same


def showers(times: int, rows: int = 64, columns: int = 72, speed: int = 2) -> np.ndarray:
    """(times, rows, columns) in mm/h, moving that many columns to the east a step."""
    noise = np.random.default_rng(3).normal(size=(rows, columns + speed * _LONGEST))
    wide = gaussian_filter(noise, 4)
    wide = np.clip(wide / wide.std() - 0.4, 0, None) * 4
    return np.stack([wide[:, speed * (_LONGEST - t) :][:, :columns] for t in range(times)]).astype(np.float32)


def clock(number: int) -> tuple[str, str]:
    """Date and time of an image as digits."""
    when = np.datetime64("2021-06-01T12:00:00") + np.timedelta64(number * STEP, "m")
    digits = str(when).replace("-", "").replace(":", "")
    return digits[:8], digits[9:15]


def odim(folder: Path, rates: np.ndarray) -> list[Path]:
    paths = []
    for number, rate in enumerate(rates):
        date, time = clock(number)
        paths.append(folder / f"odim_{time}.h5")
        with h5py.File(paths[-1], "w") as file:
            file.create_group("what").attrs.update({"object": b"COMP", "date": date.encode(), "time": time.encode()})
            corner = {"UL_lon": 5.0, "UL_lat": 52.0, "xscale": 2000.0, "yscale": 2000.0}
            file.create_group("where").attrs.update({"projdef": LAEA.encode(), **corner})
            data = file.create_group("dataset1/data1")
            data.create_dataset("data", data=np.where(rate > 0, rate, -8888000.0))
            codes = {"quantity": b"RATE", "gain": 1.0, "offset": 0.0, "nodata": -9999000.0, "undetect": -8888000.0}
            data.create_group("what").attrs.update(codes)
    return paths


def knmi(folder: Path, rates: np.ndarray) -> list[Path]:
    paths = []
    for number, rate in enumerate(rates):
        paths.append(folder / f"knmi_{number}.h5")
        end, start = (
            np.datetime64("2021-06-01T12:00:00") + np.timedelta64(STEP * n, "m") for n in (number, number - 1)
        )
        with h5py.File(paths[-1], "w") as file:
            said = {f"product_datetime_{k}": _knmi_time(v) for k, v in (("start", start), ("end", end))}
            file.create_group("overview").attrs.update(said)
            place = {"geo_column_offset": np.float32([0]), "geo_row_offset": np.float32([1825])}
            sizes = {"geo_pixel_size_x": np.float32([2]), "geo_pixel_size_y": np.float32([-2])}
            file.create_group("geographic").attrs.update({**place, **sizes})
            file.create_group("geographic/map_projection").attrs["projection_proj4_params"] = STEREO.encode()
            image = file.create_group("image1")
            image.attrs["image_geo_parameter"] = b"ACCUMULATED_PRECIPITATION_[MM]"
            amount = np.round(rate * STEP / 60 * 100).astype(np.uint16)
            image.create_dataset("image_data", data=amount)
            codes = {"calibration_missing_data": 65535, "calibration_out_of_image": 65535}
            image.create_group("calibration").attrs.update({"calibration_formulas": b"GEO=0.01*PV+0.0", **codes})
    return paths


def _knmi_time(when: np.datetime64) -> bytes:
    day, clock_ = str(when).split("T")
    return f"{day[8:10]}-JUN-{day[:4]};{clock_}.000".encode()


def netcdf(folder: Path, rates: np.ndarray) -> list[Path]:
    """All times in one file, in UTM zone 32, y from south to north, in m/s."""
    path = folder / "radar.nc"
    times = np.datetime64("2021-06-01T12:00:00", "ns") + np.arange(len(rates)) * np.timedelta64(STEP, "m")
    rows, columns = rates.shape[1:]
    mapping = {
        "grid_mapping_name": "transverse_mercator", "scale_factor_at_central_meridian": 0.9996,
        "longitude_of_central_meridian": 9.0, "latitude_of_projection_origin": 0.0, "false_easting": 500000.0,
        "false_northing": 0.0, "semi_major_axis": 6378137.0, "inverse_flattening": 298.257223563,
    }  # fmt: skip
    axes: dict[str, Any] = {
        "y": ("y", 5600.0 + 2.0 * np.arange(rows), {"units": "km", "standard_name": "projection_y_coordinate"}),
        "x": ("x", 400.0 + 2.0 * np.arange(columns), {"units": "km", "standard_name": "projection_x_coordinate"}),
        "time": ("time", times),
    }
    rain = (
        ("time", "y", "x"),
        rates[:, ::-1] / 3.6e6,
        {"units": "m s-1", "standard_name": "rainfall_rate", "grid_mapping": "crs"},
    )
    xarray.Dataset({"rr": rain, "crs": ((), 0, mapping)}, axes).to_netcdf(path)
    return [path]


def radolan(folder: Path, rates: np.ndarray) -> list[Path]:
    """RY: sums over 5 minutes in hundredths of a mm on 900 x 900 pixels; the rain lies in the upper left corner."""
    paths = []
    for number, rate in enumerate(rates):
        date, time = clock(number)
        codes = np.zeros((900, 900), np.uint16)
        codes[800:, :] = 0x29C4  # no data in the south of the turned file
        block = np.kron(rate, np.ones((2, 2)))
        codes[: len(block), : block.shape[1]] = np.round(block / 12 * 100).astype(np.uint16)
        day = f"{date[6:8]}{time[:4]}10000{date[4:6]}{date[2:4]}"
        paths.append(folder / f"raa01-ry_10000-{date[2:]}{time[:4]}-dwd---bin")
        paths[-1].write_bytes(radolan_bytes(f"RY{day}", "E-02", 5, codes[::-1].astype("<u2")))
    return paths


def radolan_bytes(product: str, precision: str, minutes: int, codes: np.ndarray) -> bytes:
    """A composite whose header says how long it is; `product` with its time."""
    rows, columns = codes.shape
    rest = f"VS 3SW   2.28.1PR {precision}INT{minutes:4d}GP{rows:4d}x{columns:4d}MS  5<asb>"
    length = len(product) + len("BY1234567") + len(rest) + 1 + codes.nbytes
    return f"{product}BY{length:7d}{rest}".encode() + b"\x03" + codes.tobytes()


def npz(folder: Path, rates: np.ndarray) -> list[Path]:
    path = folder / "event.npz"
    times = np.array(["".join(clock(number))[:12] for number in range(len(rates))])
    np.savez(path, rain=rates, step_min=STEP, res_km=2.0, times=times)
    return [path]


LAYOUTS = {"odim": odim, "knmi": knmi, "netcdf": netcdf, "radolan": radolan}
