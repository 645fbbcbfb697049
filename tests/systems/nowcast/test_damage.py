"""Folders that nobody should trust: each is one line and exit code 2, or a counted problem; never NaN, no traceback."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch

from fewer.cli import main
from fewer.systems.nowcast.task.files.archive import open_archive
from tests.systems.nowcast.competition import NODATA, write_competition, write_h5

torch.set_num_threads(1)
SIZE = 24
Said = pytest.CaptureFixture[str]
IMAGES = "2019/HRIT/boxi_0015.train.reflbt0.ns.h5"
RATES = "2019/OPERA/{}.{}.rates.crop.h5"
TABLE = "timestamps_and_splits_stage2.csv"
Array = np.ndarray[Any, Any]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("whole")
    write_competition(root, size=SIZE)
    return root


def images_of(change: Callable[[Array], Array]) -> Callable[[Path], None]:
    def damage(root: Path) -> None:
        with h5py.File(root / IMAGES) as file:
            held = file["REFL-BT"][()]
        (root / IMAGES).unlink()  # a file that is open cannot be written, but replaced
        write_h5(root / IMAGES, "REFL-BT", change(held))

    return damage


def rates_of(split: str, change: Callable[[Array], Array]) -> Callable[[Path], None]:
    def damage(root: Path) -> None:
        for region in ("boxi_0015", "roxi_0004"):
            path = root / RATES.format(region, split)
            with h5py.File(path) as file:
                held = file["rates.crop"][()]
            write_h5(path, "rates.crop", change(held))

    return damage


def lines_of(change: Callable[[list[str]], list[str]]) -> Callable[[Path], None]:
    def damage(root: Path) -> None:
        lines = (root / TABLE).read_text().splitlines()
        (root / TABLE).write_text("\n".join(change(lines)))

    return damage


def a_group(root: Path) -> None:
    with h5py.File(root / IMAGES, "w") as file:
        file.create_group("REFL-BT")


def a_link(root: Path) -> None:
    with h5py.File(root / IMAGES, "w") as file:
        file["REFL-BT"] = h5py.ExternalLink("gone.h5", "REFL-BT")


def a_folder(root: Path) -> None:
    (root / IMAGES).unlink()
    (root / IMAGES).mkdir()


# what is done, what training says, and whether --check can still say more than one line
DAMAGES: dict[str, tuple[Callable[[Path], None], str, bool]] = {
    "a group": (a_group, "expected a dataset REFL-BT", True),
    "a link to nowhere": (a_link, "expected a dataset REFL-BT", True),
    "a folder": (a_folder, "expected a whole HDF5 file", True),
    "words": (images_of(lambda x: np.full(x.shape, b"x")), "of type |S1", True),
    "complex numbers": (images_of(lambda x: x.astype(np.complex64)), "of type complex64", True),
    "records": (images_of(lambda x: np.zeros(x.shape, dtype=[("a", "f4")])), "expected real numbers", True),
    "whole numbers": (images_of(lambda x: x.astype(np.int16)), "of type int16", True),
    "bands last": (images_of(lambda x: x.transpose(0, 2, 3, 1)), "11 bands", True),
    "yes and no": (rates_of("train", lambda x: x > 0), "of type bool", True),
    "no channel": (rates_of("train", lambda x: x[:, 0]), "(139, 1, 24, 24)", True),
    "nothing seen": (rates_of("train", lambda x: np.full_like(x, NODATA)), "no radar saw anything", True),
    "nothing but NaN": (rates_of("train", lambda x: x * np.nan), "no radar saw anything", True),
    "a short row": (lines_of(lambda t: [*t[:9], "000000,20190301", *t[9:]]), "row 10 of", False),
    "a long row": (lines_of(lambda t: [*t[:9], t[9] + ",1", *t[10:]]), "row 10 of", False),
    "a table cut off": (lines_of(lambda t: [*t[:-1], t[-1][:30]]), "too few or too many columns", False),
    "two tables": (lines_of(lambda t: t + t[1:]), "twice", False),
    "two tables with headers": (lines_of(lambda t: t + t), "date_str", False),
    "semicolons": (lines_of(lambda t: [line.replace(",", ";") for line in t]), "without a column time", False),
    "no validation block": (lines_of(lambda t: [line.replace("_in", "_") for line in t]), "validation window", True),
    "training in pieces": (
        lines_of(lambda t: [*t[:1], *(line for line in t[1:] if ",training," not in line), *_scattered(139)]),
        "without a train window", True,
    ),
}  # fmt: skip


def _scattered(count: int) -> list[str]:
    """Training rows a day apart."""
    days = [f"2019{month:02d}{day:02d}" for month in range(5, 13) for day in range(1, 29)]
    return [f"000000,{day},x,1,1,1,1,1,training,-" for day in days[:count]]


def training(root: Path, out: Path) -> list[str]:
    words = ["train", "nowcast", "--set", f"data={root}", "--set", "width=4", "--steps", "2", "--batch", "2"]
    return [*words, "--json", "--out", str(out)]


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_folder_is_one_line_and_no_run(name: str, whole: Path, tmp_path: Path, capsys: Said) -> None:
    damage, expected, readable = DAMAGES[name]
    root = tmp_path / "data"
    shutil.copytree(whole, root)
    damage(root)
    assert main(training(root, tmp_path / "run")) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and expected in said and "Traceback" not in said, said
    assert not (tmp_path / "run").exists()
    assert main(["data", "nowcast", "--check", str(root), "--frames", "4"]) == (0 if readable else 2)
    told = capsys.readouterr()
    assert "problem: " in told.out if readable else told.err.count("\n") == 1


# what can be read is read, and nothing in the metrics is NaN
HARMLESS: dict[str, Callable[[Path], None]] = {
    "rows from last to first": lines_of(lambda t: t[:1] + t[:0:-1]),
    "blank lines": lines_of(lambda t: [*t[:9], "", *t[9:]]),
    "needed columns only": lines_of(lambda t: [",".join(line.split(",")[n] for n in (0, 1, 7, 8, 9)) for line in t]),
    "nothing seen in validation": rates_of("val", lambda x: np.full_like(x, NODATA)),
    "no images": images_of(lambda x: x * np.nan),
    "infinite images": images_of(lambda x: np.full_like(x, np.inf)),
    "numbers beyond single precision": images_of(lambda x: x.astype(np.float64) * 1e300),
    "big-endian doubles": images_of(lambda x: x.astype(">f8")),
    "rain everywhere": rates_of("train", lambda x: np.full_like(x, 3.0)),
    "whole millimetres": rates_of("train", lambda x: np.maximum(x, -1).astype(np.int32)),
}  # fmt: skip


@pytest.mark.parametrize("name", HARMLESS)
def test_what_is_odd_but_readable_trains_to_finite_figures(
    name: str, whole: Path, tmp_path: Path, capsys: Said
) -> None:
    root = tmp_path / "data"
    shutil.copytree(whole, root)
    HARMLESS[name](root)
    assert main([*training(root, tmp_path / "run"), "--set", "positive_weight=2"]) == 0
    metrics = json.loads(capsys.readouterr().out)
    assert all(np.isfinite(value) for value in metrics.values() if not isinstance(value, str)), metrics
    assert (metrics["pixels"] == 0) == (name == "nothing seen in validation")
    assert main(["data", "nowcast", "--check", str(root), "--frames", "4"]) == 0
    told = capsys.readouterr().out
    assert "nan" not in told.replace(str(root), "")
    if name == "rain everywhere":
        assert "are dry pixels lost?" in told


def test_a_file_that_was_replaced_is_read_anew(whole: Path, tmp_path: Path) -> None:
    root = tmp_path / "data"
    shutil.copytree(whole, root)
    first = open_archive(root, "train").take(torch.arange(1))
    images_of(lambda x: x + np.float32(0.1))(root)
    second = open_archive(root, "train").take(torch.arange(1))
    assert float((second.satellite - first.satellite).abs().min()) > 0
