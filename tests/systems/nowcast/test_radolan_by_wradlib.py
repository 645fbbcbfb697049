"""RADOLAN composites are read as wradlib reads them, where it is installed: pip install wradlib."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pyproj
import pytest

from fewer.systems.nowcast.task.files.own.reading import read_images
from tests.systems.nowcast.own_files import radolan, radolan_bytes, showers

wradlib = pytest.importorskip("wradlib")
STEREO = "+proj=stere +lat_0=90 +lat_ts=60 +lon_0=10 +x_0=0 +y_0=0 +a=6370040 +b=6370040 +units=m +no_defs"
MISSING, CLUTTER, SECONDARY = 0x29C4, 0x8000, 0x1000


def composite(path: Path, product: str, precision: str, minutes: int, codes: np.ndarray) -> Path:
    path.write_bytes(radolan_bytes(f"{product}011250100000621", precision, minutes, codes))
    return path


def test_what_the_tests_write_reads_alike(tmp_path: Path) -> None:
    rates = showers(2)
    for path, rate in zip(radolan(tmp_path, rates), rates):
        theirs, said = wradlib.io.read_radolan_composite(str(path), missing=np.nan)
        images = read_images([path])
        assert said["producttype"] == "RY" and np.datetime64(said["datetime"], "s") == images.times[0]
        np.testing.assert_allclose(images.rates[0], theirs[::-1] * 12, atol=1e-4)  # mm in 5 minutes; south first
        assert rate.max() == pytest.approx(np.nanmax(theirs) * 12, abs=0.1)


@pytest.mark.parametrize(("product", "precision", "minutes", "each"), [("RW", "E-01", 60, 1.0), ("RY", "E-02", 5, 12)])
def test_flags_read_alike(product: str, precision: str, minutes: int, each: float, tmp_path: Path) -> None:
    codes = np.random.default_rng(0).integers(0, 3000, (900, 900)).astype("<u2")
    codes[:9] = MISSING
    codes[20:30] |= SECONDARY
    codes[40:50] |= CLUTTER
    path = composite(tmp_path / "a", product, precision, minutes, codes)
    theirs, said = wradlib.io.read_radolan_composite(str(path), missing=np.nan)
    theirs = np.array(theirs)
    theirs.ravel()[said["cluttermask"]] = np.nan
    ours = read_images([path]).rates[0]
    assert np.isnan(ours).sum() == 19 * 900
    np.testing.assert_allclose(ours, theirs[::-1] * each, rtol=1e-5)


def test_packed_files_and_echoes_read_alike(tmp_path: Path) -> None:
    codes = np.random.default_rng(1).integers(0, 190, (900, 900)).astype(np.uint8)  # up to 62 dBZ
    codes[:30], codes[30:40] = 250, 249  # missing, clutter
    path = composite(tmp_path / "a", "RX", "E+00", 5, codes)
    (tmp_path / "b.gz").write_bytes(gzip.compress(path.read_bytes()))
    theirs, said = wradlib.io.read_radolan_composite(str(path), missing=np.nan)
    theirs = np.array(theirs)
    theirs.ravel()[said["cluttermask"]] = np.nan
    ours = read_images([path]).rates[0]
    decibels = theirs[::-1] / 2 - 32.5  # wradlib leaves the codes as they are
    expected = (10 ** (decibels / 10) / 200) ** (1 / 1.6)
    there = np.isfinite(expected) & (codes[::-1] > 0)
    np.testing.assert_allclose(ours[there], expected[there], rtol=1e-3, atol=1e-4)
    assert np.isnan(ours[~np.isfinite(expected)]).all()
    np.testing.assert_array_equal(read_images([tmp_path / "b.gz"]).rates[0], ours)


def test_pixels_lie_where_wradlib_has_them(tmp_path: Path) -> None:
    body = np.zeros((900, 900), "<u2")
    grid = read_images([composite(tmp_path / "a", "RW", "E-01", 60, body)]).grid
    theirs = wradlib.georef.get_radolan_grid(900, 900, wgs84=True)  # lower left corners, south first
    back = pyproj.Transformer.from_crs(STEREO, pyproj.CRS(STEREO).geodetic_crs, always_xy=True)
    ours = back.transform(grid.x[0] - 500, grid.y[-1] - 500)
    assert ours == pytest.approx(tuple(theirs[0, 0]), abs=1e-3)
    assert back.transform(grid.x[-1] - 500, grid.y[0] - 500) == pytest.approx(tuple(theirs[-1, -1]), abs=1e-3)
