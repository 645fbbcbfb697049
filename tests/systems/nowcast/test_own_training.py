"""Training on a user's own files: radar to radar and satellite to radar, settings read from the files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import xarray

from fewer.cli import main
from fewer.core.errors import UserError
from fewer.systems.nowcast.task.files.own.windows import OwnWindows
from fewer.systems.nowcast.task.settings import Settings
from fewer.systems.nowcast.task.task import Nowcast
from tests.systems.nowcast.own_files import LAYOUTS, npz, showers

RATES = showers(16, 32, 40)


def events(folder: Path) -> str:
    """Three events of radar alone."""
    for number in range(3):
        (folder / f"e{number}").mkdir(parents=True)
        np.savez(folder / f"e{number}.npz", rain=np.roll(RATES, number, 1), step_min=10, res_km=2.0)
    for number in range(3):
        (folder / f"e{number}").rmdir()
    return str(folder)


def satellite(path: Path, times: int, shift: float = 0.0) -> None:
    """Two bands at three times the radar's pixels, the radar over the middle."""
    when = np.datetime64("2021-06-01T12:00:00", "ns") + np.arange(times) * np.timedelta64(10, "m")
    axes = {
        "y": (
            "y",
            30000.0 - 6000.0 * np.arange(16) + shift,
            {"units": "m", "standard_name": "projection_y_coordinate"},
        ),
        "x": ("x", -30000.0 + 6000.0 * np.arange(16), {"units": "m", "standard_name": "projection_x_coordinate"}),
        "time": ("time", when),
    }
    random = np.random.default_rng(0)
    bands = {
        name: (("time", "y", "x"), 250 + 10 * random.normal(size=(times, 16, 16)).astype(np.float32), {"units": "K"})
        for name in ("IR_108", "WV_062")
    }
    xarray.Dataset(bands, axes).to_netcdf(path)


def radar(path: Path, rates: np.ndarray, *, middle: float = 0.0) -> None:
    when = np.datetime64("2021-06-01T12:00:00", "ns") + np.arange(len(rates)) * np.timedelta64(10, "m")
    count = rates.shape[1]
    half = (count - 1) / 2
    axes = {
        "y": ("y", -15000.0 + middle + 2000.0 * (half - np.arange(count)), {"units": "m", "axis": "Y"}),
        "x": ("x", 15000.0 + 2000.0 * (np.arange(count) - half), {"units": "m", "axis": "X"}),
        "time": ("time", when),
    }
    rain = (("time", "y", "x"), rates, {"units": "mm/h", "standard_name": "rainfall_rate"})
    xarray.Dataset({"rain": rain}, axes).to_netcdf(path)


def test_radar_is_trained_packed_and_used_without_glue(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = events(tmp_path / "data")
    assert main(["data", "nowcast", "--check", data]) == 0
    said = capsys.readouterr().out
    assert "would see 4 images of rain_rate and forecast 8 maps, 10 minutes apart, 1 to 1" in said
    assert "train: 5 windows of 1 events" in said or "train: 10 windows of 1 events" in said, said
    run, pack, out = (str(tmp_path / name) for name in ("run", "m.pack", "f.nc"))
    words = ["--set", f"data={data}", "--set", "leads=3", "--set", "seen=2", "--set", "width=2", "--steps", "1"]
    assert main(["train", "nowcast", *words, "--batch", "2", "--out", run, "--json"]) == 0
    assert "iou_hour_1" in json.loads(capsys.readouterr().out)
    assert main(["pack", run, "-o", pack]) == 0
    file = str(npz(tmp_path, showers(6, 44, 60))[0])
    for model in (pack, run):
        assert main(["forecast", file, "--pack", model, "--hours", "0.5", "-o", out]) == 0
        with xarray.open_dataset(out, decode_timedelta=False) as found:
            assert found.rain_probability.shape == (3, 44, 60) and found.lead_time.values.tolist() == [10, 20, 30]
            kept = found.rain_probability.values
        assert (kept > 0).all() and (kept < 1).all()
    half = showers(6, 44, 60)
    half[:, :, 30:] = np.nan
    assert main(["forecast", str(npz(tmp_path, half)[0]), "--pack", pack, "--hours", "0.5", "-o", out]) == 0
    assert "50 % of the map was seen at the last time; the rest stays unknown" in capsys.readouterr().err
    with xarray.open_dataset(out, decode_timedelta=False) as found:
        for field in (found.rain_probability.values, found.rain.values):
            assert np.isnan(field[..., 30:]).all() and np.isfinite(field[..., :30]).all()


def test_events_too_short_to_train_on_are_said_with_what_would_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for number, times in enumerate((16, 16, 9)):
        np.savez(data / f"e{number}.npz", rain=RATES[:times], step_min=10, res_km=2.0)
    assert main(["data", "nowcast", "--check", str(data)]) == 0
    said = capsys.readouterr().out
    assert "problem: no test window: 4 + 8 images in a row are needed, its longest event has 9; --set leads=5" in said
    assert "no train window" not in said and "use: fewer train" not in said
    assert len(OwnWindows(Settings(data=str(data), leads=5)).split("test")) > 0
    LAYOUTS["odim"](tmp_path, RATES[:6])
    (tmp_path / "loose").mkdir()
    for path in tmp_path.glob("*.h5"):
        path.rename(tmp_path / "loose" / path.name)
    assert main(["data", "nowcast", "--check", str(tmp_path / "loose"), "--json"]) == 0
    problems = json.loads(capsys.readouterr().out)["problems"]
    assert len(problems) == 3 and problems[0].endswith(
        "its longest event has 4; longer events, or fewer seen and leads"
    )


def test_a_satellite_and_a_radar_of_finer_pixels_are_one_table(tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text("split,seen,forecast\ntrain,sat.nc,radar.nc\nvalidation,sat.nc,radar.nc\n")
    satellite(tmp_path / "sat.nc", 16)
    rates = RATES[:, :24, :24].copy()
    rates[7, 0, 0] = np.nan
    radar(tmp_path / "radar.nc", rates, middle=0.0)
    settings = Settings(data=str(tmp_path), seen=3, leads=4, bands=("WV_062", "IR_108"))
    task = Nowcast(settings)
    assert task.own and task.size == 24 and task.geometry.factor == 3 and task.geometry.bands == ("WV_062", "IR_108")
    batch = task.data("train").take(torch.tensor([2]))
    assert batch.satellite.shape == (1, 3, 2, 24, 24) and batch.rate.shape == (1, 4, 24, 24)
    # the third window forecasts from the sixth image on: what fell there is what the file has
    np.testing.assert_allclose(batch.rate[0, 0], RATES[5, :24, :24], rtol=1e-5)
    assert float(batch.valid[0, 2, 0, 0]) == 0 and float(batch.valid.sum()) == 4 * 24 * 24 - 1
    # sixteen pixels of what is seen lie in a window of twenty-four: beyond them all is missing
    assert float(batch.missing[0, 0].sum()) == 24 * 24 - 16 * 16
    out = task.networks()["net"](batch.satellite, batch.missing)
    assert out.shape == (1, 4, 24, 24)


def test_grids_that_do_not_fit_and_tables_that_say_too_little_are_one_line(tmp_path: Path) -> None:
    table = tmp_path / "events.csv"
    satellite(tmp_path / "sat.nc", 16, shift=900.0)
    radar(tmp_path / "radar.nc", RATES[:, :24, :24])
    for text, line in (
        ("split,seen,forecast\ntrain,sat.nc,radar.nc\n", "of a pixel apart"),
        ("split,seen,forecast\ntrain,sat.nc,\n", "forecasts of IR_108, WV_062"),
        ("split,seen\ntrain,sat.nc\n", "without forecast"),
        ("split,seen,forecast\nlater,radar.nc,\n", "split 'later'"),
        ("split,seen,forecast\ntrain,,\n", "without what is seen"),
        ("split,seen,forecast\ntrain,absent*.nc,\n", "absent"),
        ("", "without split"),
    ):
        table.write_text(text)
        with pytest.raises(UserError, match=line):
            OwnWindows(Settings(data=str(tmp_path)))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_windows_of_every_layout_hold_what_was_measured(layout: str, tmp_path: Path) -> None:
    rates = showers(7)
    (tmp_path / "event").mkdir()
    LAYOUTS[layout](tmp_path / "event", rates)
    (tmp_path / "events.csv").write_text("split,seen,forecast\ntrain,event,\n")
    found = OwnWindows(Settings(data=str(tmp_path), seen=2, leads=2, size=64))
    batch = found.split("train").take(torch.tensor([0]))
    expected = np.kron(rates, np.ones((1, 2, 2)))[:, :64, :64] if layout == "radolan" else rates[:, :64, :64]
    np.testing.assert_allclose(batch.rate[0].numpy(), expected[2:4], atol=0.07)
    assert batch.satellite.shape[1:3] == (2, 1) and float(batch.missing.sum()) == 0


def test_own_settings_without_files_are_refused() -> None:
    with pytest.raises(UserError, match="files of your own"):
        Settings(leads=4)
    with pytest.raises(UserError, match="one of drift, baseline, improved"):
        from fewer.systems.nowcast.task.models.networks import network
        from fewer.systems.nowcast.task.windows import Geometry

        network(Settings(model="vivit"), 24, Geometry(seen=2))
