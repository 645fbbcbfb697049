"""Measurements as they come: wide and long tables, semicolons, coordinates far from the origin, and wrong files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from fewer.cli import main
from fewer.core.errors import UserError
from fewer.systems.cellfree.maps import Box, _labels, map_of
from fewer.systems.cellfree.task.selectors.selector import Nearest
from fewer.systems.cellfree.task.settings import Settings
from fewer.systems.cellfree.task.survey import World

NAMES = ("roof", "mast", "Süd-3", "tower")
WEST, SOUTH = 500_120.0, 5_640_310.0  # a place in UTM
POINTS = np.array([[10.0, 20.0], [150.0, 40.0], [90.0, 200.0], [30.0, 150.0]]) + [WEST, SOUTH]


def drive(places: int = 40) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(places, 2) and (places, 4), some of it not heard."""
    random = np.random.default_rng(0)
    phones = (random.uniform(0, 200, (places, 2)) + [WEST, SOUTH]).round(1)
    away = np.linalg.norm(phones[:, None] - POINTS, axis=-1)
    signals = (-50 - 30 * np.log10(away / 10 + 1)).round(1)
    signals[3, 1] = signals[9, 2] = np.nan
    return phones, signals


def cell(value: float, nothing: str = "") -> str:
    return nothing if np.isnan(value) else f"{value:.1f}"


def wide(apart: str = ",", nothing: str = "", comma: bool = False) -> str:
    phones, signals = drive()
    heads = [f"{name}@{x:.1f}:{y:.1f}" for name, (x, y) in zip(NAMES, POINTS)]
    rows = [["x_m", "y_m", *heads]]
    rows += [[cell(v, nothing) for v in (*place, *heard)] for place, heard in zip(phones, signals)]
    lines = [[text.replace(".", ",") if comma else text for text in row] for row in rows]
    return "\n".join(apart.join(line) for line in lines) + "\n"


def long() -> str:
    """A row per phone and access point that was heard, with columns that nobody asked for."""
    phones, signals = drive()
    lines = ["time,phone,easting,northing,cell,ap_easting,ap_northing,pci,rsrp"]
    for number, (place, heard) in enumerate(zip(phones, signals)):
        for name, (x, y), value in zip(NAMES, POINTS, heard):
            if not np.isnan(value):
                lines.append(f"12:{number},{number},{place[0]},{place[1]},{name},{x},{y},7,{value}")
    return "\n".join(lines)


FORMATS: dict[str, Callable[[], str]] = {
    "wide": wide,
    "semicolons and N/A": lambda: wide(";", "N/A"),
    "semicolons and decimal commas": lambda: "\ufeff" + wide(";", comma=True).replace("\n", "\r\n"),
    "tabs": lambda: wide("\t", "NaN"),
    "long": long,
}


def world(path: Path) -> World:
    return World.make(Settings(maps=str(path), candidates=3, measured=3))


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_the_same_network(name: str, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(FORMATS[name](), encoding="utf-8")
    found = world(tmp_path / "log.csv").deployment
    phones, signals = drive()
    assert found.names == NAMES and np.allclose(found.access_points, POINTS)
    gain = found.gain_db(phones)
    assert np.allclose(gain[~np.isnan(signals)], signals[~np.isnan(signals)])
    assert (gain[np.isnan(signals)] < found.silent_db).all()


def test_a_pair_that_is_logged_twice_counts_with_its_mean(tmp_path: Path) -> None:
    phones, signals = drive()
    first = f"{phones[0, 0]},{phones[0, 1]},roof,{POINTS[0, 0]},{POINTS[0, 1]}"
    (tmp_path / "log.csv").write_text(f"{long()}\n0,0,{first},7,{signals[0, 0] + 3}\n")
    assert world(tmp_path / "log.csv").deployment.gain_db(phones[:1])[0, 0] == pytest.approx(signals[0, 0] + 1.5)


def test_maps_begin_where_they_say(tmp_path: Path) -> None:
    maps = np.random.default_rng(0).uniform(-110, -60, (4, 10, 12))
    given = {"access_points": POINTS, "maps_db": maps, "pixel_m": 20.0, "names": np.array(NAMES)}
    np.savez(tmp_path / "maps.npz", origin_m=[WEST, SOUTH], **given)  # type: ignore[arg-type]
    found = world(tmp_path / "maps.npz").deployment
    assert found.corner_m == (WEST, SOUTH) and found.side_m == 240.0 and found.names == NAMES
    assert found.gain_db(np.array([[WEST + 50, SOUTH + 30]]))[0] == pytest.approx(maps[:, 1, 2], abs=1e-4)
    assert (np.abs(found.phones(50, part="test") - [WEST + 120, SOUTH + 100]) <= [120, 100]).all()
    np.savez(tmp_path / "lost.npz", **given)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="add origin_m"):
        world(tmp_path / "lost.npz")


def test_the_reports_map_names_access_points_and_lies_inside_its_frame(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(wide().replace("mast@", "a<b>@"))
    found = world(tmp_path / "log.csv")
    phone = drive()[0][0]
    text = map_of(found, phone, Nearest(3).fit(found).select(0, [-60.0, -70.0, -75.0]))
    assert ">roof</text>" in text and "a&lt;b&gt;" in text and "a<b>" not in text
    places = [float(part.partition('"')[0]) for key in ('cx="', 'cy="') for part in text.split(key)[1:]]
    assert len(places) > 8 and all(0 <= place <= 400 for place in places)


def test_names_on_the_reports_map_do_not_cover_one_another() -> None:
    points, taken = np.array([[200.0, 200.0], [204.0, 203.0], [392.0, 60.0]]), list[Box]()
    texts = _labels(points, ["Marktplatz", "Rathaus Süd", "Hbf"], taken)
    assert [">Marktplatz<" in texts[0], ">Rathaus Süd<" in texts[1], 'text-anchor="end"' in texts[2]] == [True] * 3
    (left, top, right, bottom), second, third = taken
    assert second[0] >= right or second[2] <= left or second[1] >= bottom or second[3] <= top
    assert third[2] <= 400


def without_header(text: str) -> str:
    return text.partition("\n")[2]


def line(number: int, change: Callable[[list[str]], list[str]], make: Callable[[], str] = wide) -> str:
    """A file in which one line is another, counted from 1."""
    lines = make().splitlines()
    lines[number - 1] = ",".join(change(lines[number - 1].split(",")))
    return "\n".join(lines)


def put(column: int, text: str) -> Callable[[list[str]], list[str]]:
    return lambda cells: [*cells[:column], text, *cells[column + 1 :]]


WRONG: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "header (none)"),
    "header alone": (wide().splitlines()[0], "0 places"),
    "no header": (without_header(wide()), "expected x_m,y_m,NAME@X:Y"),
    "degrees": (wide().replace("x_m,y_m", "lat,lon"), "such as to UTM"),
    "degrees, long": (long().replace("easting,northing,cell", "latitude,longitude,cell"), "such as to UTM"),
    "a place without a number": (line(5, put(0, "N/A")), "no number in line 5"),
    "a column without a place": (line(1, put(3, "mast@150")), "'mast@150'"),
    "a column without @": (line(1, put(3, "mast")), "NAME@X:Y"),
    "names twice": (line(1, put(3, "roof@1:2")), "2 access points named roof"),
    "no name": (line(1, put(3, "@1:2")), "access point 2 without a name"),
    "one place for two": (
        line(1, lambda cells: put(3, "mast@" + cells[2].partition("@")[2])(cells)),
        "roof and mast at the same",
    ),
    "positive": (line(7, put(2, "71.5")), "71.5 dBm of access point roof in line 7"),
    "positive, long": (line(7, put(8, "71.5"), long), "in line 7"),
    "a mark": (line(7, put(2, "-999")), "-999 dBm of access point roof in line 7"),
    "a mark, long": (line(9, put(8, "-999"), long), "in line 9; expected received power"),
    "watts": (line(4, put(3, "1e-9")), "1e-09 dBm of access point mast in line 4"),
    "a word": (line(6, put(4, "weak")), "'weak' in line 6, column Süd-3@"),
    "thousands": (line(6, put(4, "-7_1")), "'-7_1' in line 6"),
    "a cell too few": (line(6, lambda cells: cells[:-1]), "5 cells in line 6"),
    "decimal commas between commas": (wide(",", comma=True), "cells in line 2"),
    "an access point that moves": (line(9, put(5, "7"), long), "in line 9; expected its place of line"),
    "long without powers": (long().replace(",rsrp\n", ",rssi\n"), "rsrp_dbm"),
    "nothing heard": (wide().splitlines()[0] + "\n1,2,,,,\n3,4,,,,\n5,6,,,,\n", "3 places where nothing was heard"),
    "two places": ("\n".join(wide().splitlines()[:3]), "2 places"),
    "latin-1": (wide().encode("latin-1"), "UTF-8"),
    "a spreadsheet": (b"PK\x03\x04\x14\x00\x06\x00\x80\x81", "UTF-8"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_is_one_line_and_exit_code_2(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content, expected = WRONG[name]
    path = tmp_path / "drive.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    words = ["train", "cellfree", "--set", f"maps={path}", "--set", "candidates=3", "--steps", "1"]
    assert main([*words, "--out", str(tmp_path / "run")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and expected in said and "drive.csv" in said
    assert not (tmp_path / "run" / "weights.safetensors").exists()
