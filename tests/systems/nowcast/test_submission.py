"""Submissions: written so that h5py reads what the competition documents, and refused when they are not."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from fewer.cli import main
from fewer.core.engines.evaluate import predictor
from fewer.core.errors import UserError
from fewer.run.load import load
from fewer.systems.nowcast.commands.submit import _renumbered
from fewer.systems.nowcast.task.files.archive import Reading, open_archive
from fewer.systems.nowcast.task.files.layout import CONTESTS, Place
from fewer.systems.nowcast.task.files.submission import RULES, Expected, verify, write_forecast, write_zip
from tests.systems.nowcast.competition import write_competition

SIZE, SAMPLES = 24, 2
PLACES = (Place("boxi_0015", 2019), Place("roxi_0004", 2020))
WANTED = {place: Expected(SAMPLES, SIZE) for place in PLACES}
Said = pytest.CaptureFixture[str]


def decisions(seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 2, (SAMPLES, 32, SIZE, SIZE), dtype=np.uint8)


def member(array: NDArray[np.generic], key: str = "submission") -> bytes:
    """An HDF5 file as bytes, by h5py alone."""
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        file.create_dataset(key, data=array)
    return buffer.getvalue()


def zipped(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def good() -> dict[str, bytes]:
    return {
        "2019/boxi_0015.pred.h5.gz": gzip.compress(member(decisions()[:, None].astype(np.float32))),
        "2020/roxi_0004.pred.h5": member(decisions(1)),
    }


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_h5py_finds_in_the_zip_what_the_competition_documents(dtype: str, tmp_path: Path) -> None:
    for seed, place in enumerate(PLACES):
        batches = (decisions(seed)[k : k + 1] for k in range(SAMPLES))
        write_forecast(tmp_path / "parts", place, batches, WANTED[place], dtype=dtype)
    write_zip(tmp_path / "parts", tmp_path / "out.zip")
    assert verify(tmp_path / "out.zip", WANTED) == [] == verify(tmp_path / "parts", WANTED)
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        assert archive.namelist() == ["2019/boxi_0015.pred.h5.gz", "2020/roxi_0004.pred.h5.gz"]
        assert all(entry.compress_type == zipfile.ZIP_STORED for entry in archive.infolist())
        content = gzip.decompress(archive.read("2020/roxi_0004.pred.h5.gz"))
    with h5py.File(io.BytesIO(content)) as file:
        assert list(file) == ["submission"] and file["submission"].dtype == dtype
        assert file["submission"].shape == (SAMPLES, 1, 32, SIZE, SIZE)
        np.testing.assert_array_equal(file["submission"][:, 0], decisions(1))


def test_the_same_forecasts_give_the_same_bytes(tmp_path: Path) -> None:
    found = []
    for name in ("a", "b"):
        write_forecast(tmp_path / name, PLACES[0], [decisions()], WANTED[PLACES[0]])
        write_zip(tmp_path / name, tmp_path / f"{name}.zip")
        found.append((tmp_path / f"{name}.zip").read_bytes())
    assert found[0] == found[1]


def test_both_shapes_and_types_are_accepted(tmp_path: Path) -> None:
    assert verify(zipped(tmp_path / "x.zip", good()), WANTED) == []


Members = dict[str, bytes]
CASES: dict[str, tuple[Callable[[Members], object], str]] = {
    "no region": (lambda m: m.pop("2020/roxi_0004.pred.h5"), "no forecast of roxi_0004 2020"),
    "a folder above": (lambda m: m.update({"sub/2020/roxi_0004.pred.h5": b""}), "at the root"),
    "a strange file": (lambda m: m.update({"README": b""}), "README"),
    "another region": (lambda m: m.update({"2019/roxi_0009.pred.h5": member(decisions())}), "not asked for"),
    "one region twice": (lambda m: m.update({"2019/boxi_0015.pred.h5": member(decisions())}), "already in"),
    "another key": (lambda m: m.update({"2020/roxi_0004.pred.h5": member(decisions(), "array")}), "submission"),
    "too few": (lambda m: m.update({"2020/roxi_0004.pred.h5": member(decisions()[:1])}), "(1, 32, 24, 24)"),
    "probabilities": (lambda m: m.update({"2020/roxi_0004.pred.h5": member(decisions() * np.float32(0.3))}), "0.3"),
    "NaN": (lambda m: m.update({"2020/roxi_0004.pred.h5": member(decisions() * np.float32(np.nan))}), "nan"),
    "another type": (lambda m: m.update({"2020/roxi_0004.pred.h5": member(decisions().astype(np.int64))}), "int64"),
    "a cut file": (lambda m: m.update({"2020/roxi_0004.pred.h5": member(decisions())[:9000]}), "truncated"),
    "a cut gzip": (lambda m: m.update({"2019/boxi_0015.pred.h5.gz": good()["2019/boxi_0015.pred.h5.gz"][:99]}), "end"),
    "no gzip": (lambda m: m.update({"2019/boxi_0015.pred.h5.gz": member(decisions())}), "gzip"),
    "a bomb": (lambda m: m.update({"2019/boxi_0015.pred.h5.gz": gzip.compress(bytes(1 << 26))}), "bytes"),
}


@pytest.mark.parametrize("name", CASES)
def test_what_the_server_would_stumble_over_is_said(name: str, tmp_path: Path) -> None:
    members = good()
    change, expected = CASES[name]
    change(members)
    problems = verify(zipped(tmp_path / "x.zip", members), WANTED)
    assert len(problems) == 1 and expected in problems[0], problems


def test_a_writer_refuses_what_is_no_submission(tmp_path: Path) -> None:
    place, expected = PLACES[0], WANTED[PLACES[0]]
    for batches, words in (
        ([decisions()[:1]], "1 forecasts"), ([decisions(), decisions()], "after 2"), ([decisions() * 0.3], "0 and 1"),
        ([decisions()[..., :6]], "in all"),
    ):  # fmt: skip
        with pytest.raises(UserError, match=words):
            write_forecast(tmp_path, place, batches, expected)
        assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    with pytest.raises(UserError, match="float64"):
        write_forecast(tmp_path, place, [decisions()], expected, dtype="float64")
    with pytest.raises(UserError, match="without forecasts"):
        write_zip(tmp_path, tmp_path / "x.zip")
    with pytest.raises(UserError, match="zip"):
        verify(tmp_path / "none.zip", WANTED)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("submit")
    (root / "data").mkdir()
    write_competition(root / "data", size=SIZE)
    with h5py.File(root / "data/2019/HRIT/boxi_0015.test.reflbt0.ns.h5", "r+") as file:
        file["REFL-BT"][:, :, :9] = np.nan
    train = ["train", "nowcast", "--set", f"data={root}/data", "--set", "width=4", "--set", "positive_weight=2"]
    train += ["--steps", "1", "--batch", "2", "--json"]
    for seed in (0, 1):
        assert main([*train, "--seeds", str(seed), "--out", str(root / f"run{seed}")]) == 0
    return root


def test_a_strangers_folder_loads_trains_and_yields_a_submission(folder: Path, tmp_path: Path, capsys: Said) -> None:
    out, data = tmp_path / "out.zip", str(folder / "data")
    runs = [str(folder / "run0"), str(folder / "run1")]
    capsys.readouterr()
    words = ["submit", *runs, "--data", data, "--out", str(out), "--how", "mean", "--threshold", "0.4", "--json"]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["forecasts"] == 4
    assert main(["submit", "--verify", str(out), "--data", data]) == 0
    assert main(["submit", "--verify", str(out)]) == 2  # the competition's own would be 14 files of 60 forecasts
    with zipfile.ZipFile(out) as archive:
        content = gzip.decompress(archive.read("2019/roxi_0004.pred.h5.gz"))
    archive_data = open_archive(data, "test")
    batch = archive_data.take(torch.tensor(archive_data.samples(1)))
    each = [predictor((run := load(path)).task, run.modules, run.job.seeds[0])(batch) for path in runs]
    with h5py.File(io.BytesIO(content)) as file:
        found = file["submission"][:, 0]
    np.testing.assert_array_equal(found, (torch.stack(each).mean(0) >= 0.4).numpy())


def test_the_threshold_decides_each_voter_and_a_tie_is_rain(folder: Path, tmp_path: Path) -> None:
    out, data = tmp_path / "out.zip", str(folder / "data")
    runs = [str(folder / "run0"), str(folder / "run1")]
    archive_data = open_archive(data, "test")
    batch = archive_data.take(torch.tensor(archive_data.samples(1)))
    each = torch.stack([predictor((run := load(path)).task, run.modules, run.job.seeds[0])(batch) for path in runs])
    threshold = float(each.median())
    assert main(["submit", *runs, "--data", data, "--out", str(out), "--threshold", str(threshold)]) == 0
    with zipfile.ZipFile(out) as archive:
        content = gzip.decompress(archive.read("2019/roxi_0004.pred.h5.gz"))
    with h5py.File(io.BytesIO(content)) as file:
        found = file["submission"][:, 0]
    votes = (each >= threshold).sum(0)
    assert (votes == 1).any()
    np.testing.assert_array_equal(found, (votes >= 1).numpy())


def test_members_chosen_by_region_are_asked_for_their_own_regions(folder: Path) -> None:
    archive_data = open_archive(folder / "data", "test")
    task = load(folder / "run0", ["regions=roxi_0004"]).task
    ask = _renumbered(lambda batch: batch.place, task, archive_data)
    batch = archive_data.take(torch.tensor([archive_data.samples(0)[0], archive_data.samples(1)[0]]))
    assert [str(archive_data.places[place]) for place in batch.place] == ["boxi_0015 2019", "roxi_0004 2019"]
    assert ask(batch).tolist() == [-1, 0]


def test_a_run_whose_data_moved_is_told_where_to(folder: Path, tmp_path: Path, capsys: Said) -> None:
    words = ["submit", str(folder / "run0"), "--data", str(tmp_path / "moved"), "--out", str(tmp_path / "out.zip")]
    (folder / "data").rename(tmp_path / "moved")
    try:
        capsys.readouterr()
        assert main(words) == 2
        assert "--set data=DIR" in capsys.readouterr().err
        assert main([*words, "--set", f"data={tmp_path / 'moved'}"]) == 0
    finally:
        (tmp_path / "moved").rename(folder / "data")


@pytest.mark.parametrize(("rules", "slots"), [("2023", 32), ("2023-nowcasting", 16)])
def test_the_rules_of_2023_take_rates(rules: str, slots: int, folder: Path, tmp_path: Path, capsys: Said) -> None:
    out, data, path = tmp_path / "out.zip", str(folder / "data"), str(folder / "run0")
    words = ["submit", path, "--data", data, "--out", str(out), "--rules", rules]
    assert main(words) == 0 and main(["submit", "--verify", str(out), "--data", data, "--rules", rules]) == 0
    assert main(["submit", "--verify", str(out), "--data", data]) == 2  # no decisions
    assert main([*words, "--dtype", "uint8"]) == 2 and "float32 for rates" in capsys.readouterr().err
    with zipfile.ZipFile(out) as archive:
        content = gzip.decompress(archive.read("2019/boxi_0015.pred.h5.gz"))
    with h5py.File(io.BytesIO(content)) as file:
        assert file["submission"].shape == (SAMPLES, 1, slots, SIZE, SIZE) and file["submission"].dtype == np.float32
        found = file["submission"][:, 0]
    run, archive_data = load(path), open_archive(data, "test")
    said = predictor(run.task, run.modules, 0)(archive_data.take(torch.tensor(archive_data.samples(0)))).double()
    windows = run.task.data("train").take(torch.arange(len(run.task.data("train"))))
    wet = windows.rate[(windows.valid > 0) & (windows.rate >= 0.2)].double()
    odds = said / (1 - said) / 2  # the runs learned with the weight 2
    expected = odds / (1 + odds) * wet.mean()
    np.testing.assert_allclose(found, expected[:, :slots].numpy(), rtol=1e-4)


def test_rates_are_finite_not_negative_and_below_the_largest(tmp_path: Path) -> None:
    wanted = {PLACES[0]: Expected(SAMPLES, SIZE, RULES["2023-nowcasting"])}
    rates = np.full((SAMPLES, 16, SIZE, SIZE), 1.5, dtype=np.float32)
    for wrong in (np.nan, np.inf, -0.1, 129.0):
        damaged = rates.copy()
        damaged[1, 3, 4, 5] = wrong
        problems = verify(zipped(tmp_path / "x.zip", {"2019/boxi_0015.pred.h5": member(damaged)}), wanted)
        assert len(problems) == 1 and f"{damaged[1, 3, 4, 5]} in forecast 1" in problems[0]
        with pytest.raises(UserError, match="rates from 0 to 128 mm/h"):
            write_forecast(tmp_path, PLACES[0], [damaged], wanted[PLACES[0]])
    assert verify(zipped(tmp_path / "x.zip", {"2019/boxi_0015.pred.h5": member(rates)}), wanted) == []
    (problem,) = verify(zipped(tmp_path / "x.zip", {"2019/boxi_0015.pred.h5": member(decisions())}), wanted)
    assert "(2, 16, 24, 24)" in problem  # all 32 lead times where 16 are asked for


def test_a_run_that_reads_missing_pixels_as_the_starter_kit_did_is_submitted_so(folder: Path, tmp_path: Path) -> None:
    data, out = str(folder / "data"), tmp_path / "x.zip"
    train = ["train", "nowcast", "--set", f"data={data}", "--set", "width=4", "--set", "literal=yes", "--steps", "1"]
    assert main([*train, "--batch", "2", "--json", "--out", str(tmp_path / "literal")]) == 0
    words = ["submit", str(tmp_path / "literal"), "--data", data, "--out", str(out), "--rules", "2023"]
    assert main(words) == 0
    assert main(["submit", str(tmp_path / "literal"), str(folder / "run0"), "--data", data, "--out", str(out)]) == 2
    with zipfile.ZipFile(out) as archive:
        content = gzip.decompress(archive.read("2019/boxi_0015.pred.h5.gz"))
    archive_data = open_archive(data, "test", Reading(literal=True))
    run, batch = load(tmp_path / "literal"), archive_data.take(torch.tensor(archive_data.samples(0)))
    assert float(batch.satellite.min()) < -13  # 0 K
    task: Any = run.task
    with h5py.File(io.BytesIO(content)) as file:
        np.testing.assert_array_equal(file["submission"][:, 0], task.rates(predictor(task, run.modules, 0)(batch)))


def test_wrong_words_to_submit_are_one_line(folder: Path, tmp_path: Path, capsys: Said) -> None:
    run, data, out = str(folder / "run0"), str(folder / "data"), str(tmp_path / "x.zip")
    for words, expected in (
        (["submit"], "--data"),
        (["submit", run, "--data", data], "--out"),
        (["submit", run, "--data", data, "--out", out, "--contest", "core"], "boxi_0034 2019"),
        (["submit", run, "--data", data, "--out", out, "--contest", "cor"], "did you mean 'core'"),
        (["submit", run, "--data", data, "--out", out, "--threshold", "2"], "threshold"),
        (["submit", run, "--data", data, "--out", out, "--rules", "2024"], "did you mean '2023'"),
        (["submit", run, run, "--data", data, "--out", out, "--rules", "2023"], "--how mean"),
        (["submit", run, "--data", str(tmp_path), "--out", out], "without satellite files"),
        (["submit", "--verify", out], "zip"),
    ):
        capsys.readouterr()
        assert main(words) == 2, words
        said = capsys.readouterr().err
        assert said.count("\n") == 1 and expected in said, said


def test_the_core_contest_is_fourteen_files_of_sixty_forecasts(tmp_path: Path) -> None:
    problems = verify(zipped(tmp_path / "x.zip", {}), {place: Expected() for place in CONTESTS["core"]})
    assert len(problems) == 14 and Expected().shapes()[0] == (60, 1, 32, 252, 252)
