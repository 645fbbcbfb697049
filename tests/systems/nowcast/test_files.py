"""The competition's files, written from their description, come out as windows; broken ones as one line."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

from fewer.core.errors import UserError
from fewer.systems.nowcast.task.bands import BANDS
from fewer.systems.nowcast.task.files.archive import Reading, open_archive
from fewer.systems.nowcast.task.files.frames import prepared_rain, prepared_satellite
from fewer.systems.nowcast.task.files.layout import CONTESTS, Place, found_places, read_layout
from tests.systems.nowcast.competition import NODATA, UNDETECT, calendar, images, rates, write_competition, write_h5
from tests.waiting import answers_of

SIZE = 12


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("competition")
    write_competition(folder, years=(2019, 2020), size=SIZE)
    return folder


@pytest.fixture
def own(tmp_path: Path) -> Path:
    write_competition(tmp_path, regions=("boxi_0015",), size=SIZE)
    return tmp_path


def test_the_contests_have_as_many_region_years_as_the_competition() -> None:
    assert [len(CONTESTS[name]) for name in ("stage1", "core", "transfer")] == [3, 14, 16]
    assert not set(CONTESTS["core"]) & set(CONTESTS["transfer"])


def test_a_window_is_what_h5py_reads_at_its_rows(root: Path) -> None:
    data = open_archive(root, "train")
    assert len(data) == 4 * 19 and data.size == SIZE and not data.in_memory
    sample = 19 + 15  # the second region of 2019: 14 windows, a gap, and the second window after the last gap
    batch = data.take(torch.tensor([0, sample]))
    with (
        h5py.File(root / "2019/HRIT/roxi_0004.train.reflbt0.ns.h5") as satellite,
        h5py.File(root / "2019/OPERA/roxi_0004.train.rates.crop.h5") as radar,
    ):
        first = 49 + 30 + 20 + 1
        raw = satellite["REFL-BT"][first : first + 4]
        rain = radar["rates.crop"][first + 4 : first + 36, 0]
    mean = np.array([band.mean for band in BANDS])[:, None, None]
    deviation = np.array([band.deviation for band in BANDS])[:, None, None]
    highest = np.array([band.highest for band in BANDS])[:, None, None]
    np.testing.assert_allclose(
        batch.satellite[1].numpy(), (np.clip(raw, 0, highest) - mean) / deviation, rtol=1e-4, atol=1e-5
    )
    assert not batch.missing.any()
    np.testing.assert_array_equal(batch.rate[1].numpy(), np.where(rain > 0, rain, 0))
    np.testing.assert_array_equal(batch.valid[1].numpy(), rain != NODATA)
    assert batch.place.tolist() == [0, 1] and data.places[1] == Place("roxi_0004", 2019)


def test_windows_begin_where_the_csv_says(root: Path) -> None:
    data = open_archive(root, "validation")
    assert len(data) == 4 * 3
    # the calendar: 80 rows of training, then a validation block, whose fourth image is the last one seen
    assert str(data.time(0)) == "2019-02-15T20:45"
    assert [len(data.samples(piece)) for piece in range(4)] == [3] * 4 and data.samples(1)[0] == 3
    with pytest.raises(IndexError):
        data.locate(12)


def test_splits_without_targets_have_images_and_nothing_valid(root: Path) -> None:
    for split in ("test", "heldout"):
        data = open_archive(root, split, Reading(regions=("roxi_0004",), years=(2020,)))
        batch = data.take(torch.arange(len(data)))
        assert len(data) == 2 and batch.satellite.std() > 0.5
        assert not batch.rate.any() and not batch.valid.any()


def test_places_have_one_number_in_every_split(own: Path) -> None:
    for product, word in (("HRIT", "test.reflbt0.ns"), ("HRIT", "heldout.reflbt0.ns")):
        write_h5(own / "2019" / product / f"aaaa_0001.{word}.h5", "REFL-BT", images(8, SIZE, 3))
    batch = open_archive(own, "train").take(torch.arange(1))
    assert batch.place.tolist() == [1]  # aaaa_0001 comes first, although it has no training files
    assert open_archive(own, "test").take(torch.arange(4)).place.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_any_float_on_disk_is_read(dtype: str, own: Path) -> None:
    path = own / "2019/HRIT/boxi_0015.train.reflbt0.ns.h5"
    with h5py.File(path) as file:
        raw = file["REFL-BT"][()]
    write_h5(path, "REFL-BT", raw.astype(dtype))
    batch = open_archive(own, "train").take(torch.arange(2))
    assert batch.satellite.dtype == torch.float32
    expected = prepared_satellite(raw[0])[0]
    np.testing.assert_allclose(batch.satellite[0, 0].numpy(), expected, atol=0.04 if dtype == "f2" else 1e-5)


def test_missing_values_become_the_mean_and_a_mask() -> None:
    raw = images(1, SIZE, 0)[0]
    raw[4, 0, 0], raw[1, 0, 1], raw[0, 0, 2], raw[9, 0, 3], raw[7, 0, 4] = np.nan, np.inf, -np.inf, -2.09, -0.01
    values, missing = prepared_satellite(raw)
    assert missing[0, :5].tolist() == [True, True, True, True, False] and missing.sum() == 4
    assert values[4, 0, 0] == values[1, 0, 1] == values[0, 0, 2] == values[9, 0, 3] == 0
    assert values[7, 0, 4] == pytest.approx(-BANDS[7].mean / BANDS[7].deviation)  # a dark pixel, not a missing one
    literal, same = prepared_satellite(raw, literal=True)
    assert (same == missing).all() and np.isfinite(literal).all()
    assert literal[4, 0, 0] == pytest.approx(-270.1535 / 18.49373)  # 0 K


def test_codes_of_the_radar_are_masks_not_numbers() -> None:
    raw = np.array([[NODATA, UNDETECT, 0.0, 0.2, 128.0, 128.1, np.nan, np.inf, -np.inf, -0.1]], dtype=np.float32)
    rate, valid = prepared_rain(raw)
    assert valid[0].tolist() == [False, True, True, True, True, False, False, False, False, True]
    np.testing.assert_array_equal(rate[0], np.array([0, 0, 0, 0.2, 128, 0, 0, 0, 0, 0], dtype=np.float32))


def test_samples_with_nothing_in_them_are_finite(own: Path) -> None:
    rows = calendar().count("training")
    images_path = own / "2019/HRIT/boxi_0015.train.reflbt0.ns.h5"
    write_h5(images_path, "REFL-BT", np.full((rows, 11, SIZE, SIZE), np.nan))
    write_h5(own / "2019/OPERA/boxi_0015.train.rates.crop.h5", "rates.crop", np.full((rows, 1, SIZE, SIZE), NODATA))
    batch = open_archive(own, "train").take(torch.arange(3))
    assert batch.missing.all() and not batch.satellite.any() and not batch.valid.any() and not batch.rate.any()


def test_later_years_are_found_by_their_names(tmp_path: Path) -> None:
    write_competition(tmp_path, regions=("roxi_0005",), size=SIZE)
    for word, new in (("train", "train19"), ("val", "val19"), ("test", "cum1test19"), ("heldout", "ev1test19")):
        old = tmp_path / f"2019/HRIT/roxi_0005.{word}.reflbt0.ns.h5"
        old.rename(old.with_name(f"roxi_0005.{new}.reflbt0.ns.h5"))
    with pytest.raises(UserError, match="without satellite files"):
        open_archive(tmp_path, "train", Reading(layout="2022"))
    rows = calendar().count("training")
    wide = np.full((rows, 1, 6 * SIZE, 6 * SIZE), NODATA, dtype=np.float32)
    inner = rates(rows, SIZE, 5)
    margin = (6 * SIZE - SIZE) // 2
    wide[:, :, margin : margin + SIZE, margin : margin + SIZE] = inner
    write_h5(tmp_path / "2019/OPERA-CONTEXT/roxi_0005.train19.rates.crop.h5", "rates.crop", wide)
    batch = open_archive(tmp_path, "train").take(torch.arange(1))  # the names tell
    np.testing.assert_array_equal(batch.valid[0].numpy(), inner[4:36, 0] != NODATA)
    assert len(open_archive(tmp_path, "test", Reading(layout="2024"))) == 2


def test_names_can_be_given_in_a_file(own: Path) -> None:
    (own / "2019/HRIT").rename(own / "2019/SEVIRI")
    (own / "timestamps_and_splits_stage2.csv").rename(own / "when.csv")
    toml = own / "names.toml"
    toml.write_text('satellite = "{year}/SEVIRI/{region}.{split}.reflbt0.ns.h5"\ntimes = ["when.csv"]\n')
    assert len(open_archive(own, "train", Reading(layout=str(toml)))) == 19
    toml.rename(own / "layout.toml")  # where it is found unasked
    assert len(open_archive(own, "train")) == 19
    toml.write_text('satelite = "x"\n')
    with pytest.raises(UserError, match="did you mean 'satellite'"):
        read_layout(str(toml))
    toml.write_text('satellite = "{month}.h5"\n')
    with pytest.raises(UserError, match="month"):
        read_layout(str(toml))


def test_the_first_stage_has_a_csv_for_its_year(own: Path) -> None:
    (own / "data").mkdir()
    (own / "timestamps_and_splits_stage2.csv").rename(own / "data/timestamps_and_splits_2019.csv")
    assert len(open_archive(own, "train")) == 19


def truncate(root: Path) -> None:
    path = root / "2019/HRIT/boxi_0015.train.reflbt0.ns.h5"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def wrong_bands(root: Path) -> None:
    write_h5(root / "2019/HRIT/boxi_0015.train.reflbt0.ns.h5", "REFL-BT", np.zeros((139, 10, SIZE, SIZE)))


def wrong_key(root: Path) -> None:
    write_h5(root / "2019/HRIT/boxi_0015.train.reflbt0.ns.h5", "REFLBT", np.zeros((139, 11, SIZE, SIZE)))


def too_few_rows(root: Path) -> None:
    write_h5(root / "2019/HRIT/boxi_0015.train.reflbt0.ns.h5", "REFL-BT", np.zeros((138, 11, SIZE, SIZE)))
    write_h5(root / "2019/OPERA/boxi_0015.train.rates.crop.h5", "rates.crop", np.zeros((138, 1, SIZE, SIZE)))


def unlike_rows(root: Path) -> None:
    write_h5(root / "2019/OPERA/boxi_0015.train.rates.crop.h5", "rates.crop", np.zeros((138, 1, SIZE, SIZE)))


def no_rates(root: Path) -> None:
    (root / "2019/OPERA/boxi_0015.train.rates.crop.h5").unlink()


def no_csv(root: Path) -> None:
    (root / "timestamps_and_splits_stage2.csv").unlink()


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (truncate, "truncated"), (wrong_bands, "11 bands"), (wrong_key, "a dataset REFL-BT"), (too_few_rows, "139"),
        (unlike_rows, "(139, 1, 12, 12)"), (no_rates, "rates of boxi_0015 2019"), (no_csv, "no csv of times"),
    ],
)  # fmt: skip
def test_a_broken_folder_is_one_line_before_training(spoil, expected: str, own: Path) -> None:  # type: ignore[no-untyped-def]
    spoil(own)
    with pytest.raises(UserError) as error:
        open_archive(own, "train")
    assert expected in str(error.value) and "\n" not in str(error.value)


def test_a_region_or_folder_that_is_not_there_is_named(own: Path) -> None:
    with pytest.raises(UserError, match="region roxi_0099"):
        open_archive(own, "train", Reading(regions=("roxi_0099",)))
    with pytest.raises(UserError, match="year 2031"):
        open_archive(own, "train", Reading(years=(2031,)))
    with pytest.raises(UserError, match="a folder"):
        open_archive(own / "none", "train")
    with pytest.raises(UserError, match="did you mean 'train'"):
        open_archive(own, "trian")


def test_strange_files_are_nobodys_region(own: Path) -> None:
    (own / "2019/HRIT/notes.txt").write_text("x")
    write_h5(own / "2019/HRIT/boxi_0099.draft.reflbt0.ns.h5", "REFL-BT", np.zeros((1, 11, 6, 6)))
    assert found_places(own, read_layout("2022")) == (Place("boxi_0015", 2019),)


def _child(data, queue) -> None:  # type: ignore[no-untyped-def]
    queue.put(float(data.take(torch.arange(2)).satellite.double().sum()))


def test_a_forked_worker_opens_its_own_files(root: Path) -> None:
    data = open_archive(root, "train")
    expected = float(data.take(torch.arange(2)).satellite.double().sum())
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    workers = [context.Process(target=_child, args=(data, queue)) for _ in range(2)]
    for worker in workers:
        worker.start()
    assert answers_of(queue, workers) == [expected, expected]


def test_a_batch_that_is_held_is_never_written_over(root: Path) -> None:
    data = open_archive(root, "train")
    held = data.take(torch.tensor([0, 1]))
    view, copy = held.rate[1:, 3], held.rate.clone()
    del held
    for first in range(2, 12):
        data.take(torch.tensor([first, first + 1]))
    assert torch.equal(view, copy[1:, 3])
    address = data.take(torch.tensor([0, 1])).satellite.data_ptr()
    addresses = {data.take(torch.tensor([0, 1])).satellite.data_ptr() for _ in range(8)}
    assert address in addresses and len(addresses) <= 2  # memory that nobody holds is used again
