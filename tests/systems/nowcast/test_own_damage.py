"""Damaged files of five layouts: each ends in one line, and exit code 2."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray

from fewer.cli import main
from tests.systems.nowcast.own_files import knmi, netcdf, npz, odim, radolan, showers

RATES = showers(2, 24, 24)
Damage = Callable[[Path], None]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 3])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def noise(path: Path) -> None:
    path.write_bytes(b"\x00\x01 not a picture")


def without(name: str) -> Damage:
    def damage(path: Path) -> None:
        with h5py.File(path, "a") as file:
            del file[name]

    return damage


def attribute(group: str, name: str, value: object) -> Damage:
    def damage(path: Path) -> None:
        with h5py.File(path, "a") as file:
            file[group].attrs[name] = value

    return damage


def header(before: bytes, after: bytes) -> Damage:
    return lambda path: path.write_bytes(path.read_bytes().replace(before, after, 1)) and None  # type: ignore[func-returns-value]


def changed(change: Callable[[xarray.Dataset], xarray.Dataset]) -> Damage:
    def damage(path: Path) -> None:
        with xarray.open_dataset(path) as file:
            loaded = file.load()
        change(loaded).to_netcdf(path)

    return damage


def instead(name: str, value: object) -> Damage:
    def damage(path: Path) -> None:
        with h5py.File(path, "a") as file:
            del file[name]
            file[name] = value

    return damage


def rotten(name: str) -> Damage:
    """Some bytes of what is packed are others."""

    def damage(path: Path) -> None:
        with h5py.File(path, "a") as file:
            data = file[name][()]
            del file[name]
            file.create_dataset(name, data=data, compression="gzip")
        with h5py.File(path) as file:
            start = file[name].id.get_chunk_info(0).byte_offset
        content = bytearray(path.read_bytes())
        content[start + 5 : start + 25] = bytes(20)
        path.write_bytes(content)

    return damage


def gap(name: str) -> Damage:
    return changed(lambda file: file.assign_coords({name: np.where(np.arange(24) == 7, np.nan, file[name].values)}))


def units(name: str, value: str) -> Damage:
    return changed(lambda file: file.assign({name: file[name].assign_attrs(units=value)}))


def packed(**arrays: object) -> Damage:
    return lambda path: np.savez(path, **arrays)  # type: ignore[arg-type]


DAMAGED = [
    (odim, cut), (odim, empty), (odim, noise), (odim, without("what")), (odim, without("dataset1/data1/what")),
    (odim, attribute("where", "xscale", 0.0)), (odim, attribute("where", "projdef", b"+proj=nonsense")),
    (odim, attribute("what", "time", b"noon")), (knmi, cut), (knmi, without("image1/calibration")),
    (knmi, without("overview")), (knmi, attribute("image1/calibration", "calibration_formulas", b"see manual")),
    (knmi, attribute("overview", "product_datetime_end", b"yesterday")), (netcdf, cut),
    (netcdf, units("rr", "furlongs")),
    (netcdf, changed(lambda file: file.drop_vars("time"))), (netcdf, changed(lambda file: file[["crs"]])),
    (netcdf, changed(lambda file: file.assign_coords(x=np.concatenate([[0.0, 7.0], np.arange(22) * 2.0 + 9])))),
    (radolan, cut), (radolan, header(b"GP 900x 900", b"GP 901x 900")), (radolan, header(b"\x03", b" ")),
    (radolan, header(b"GP", b"XX")), (radolan, header(b"PR E-02", b"PR E+99")), (npz, cut),
    (odim, instead("dataset1", np.zeros((3, 3)))), (odim, rotten("dataset1/data1/data")),
    (odim, instead("dataset1/data1/data", h5py.SoftLink("/nowhere"))),
    (odim, instead("dataset1", h5py.SoftLink("/nowhere"))),
    (knmi, rotten("image1/image_data")), (knmi, instead("image1/image_data", np.full((24, 24), b"x"))),
    (knmi, instead("image1/image_data", np.zeros((2, 24, 24), np.uint8))), (knmi, instead("image1", np.zeros(3))),
    (knmi, attribute("image1/calibration", "calibration_formulas", b"GEO=1.2.3*PV+0.0")),
    (knmi, attribute("image1/calibration", "calibration_formulas", b"GEO=0.01*PV+offset")),
    (knmi, attribute("geographic", "geo_pixel_size_x", 0.0)), (netcdf, gap("x")),
    (netcdf, changed(lambda file: file.assign(crs=((), 0, {"grid_mapping_name": "transverse_mercator"})))),
    (npz, packed(rain=np.zeros((2, 3)), step_min=5, res_km=1.0)),
]  # fmt: skip


@pytest.mark.parametrize(("write", "damage"), DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_file_is_one_line(
    write: Callable[[Path, np.ndarray], list[Path]], damage: Damage, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = write(tmp_path, RATES)
    damage(paths[0])
    assert main(["forecast", *map(str, paths), "-o", str(tmp_path / "f.nc")]) == 2
    said = capsys.readouterr().err
    assert said.startswith("fewer: ") and said.count("\n") == 1, said
    assert not (tmp_path / "f.nc").exists()
