"""The packed cache: the same windows, filled once, resumed, and never believed when it is wrong."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some
from hypothesis.extra import numpy as arrays

from fewer.core.errors import UserError
from fewer.systems.nowcast.bench.loader import loader_rate
from fewer.systems.nowcast.task.files import region_year as source
from fewer.systems.nowcast.task.files.archive import Archive, Reading, open_archive
from fewer.systems.nowcast.task.files.packed import packed_rate
from fewer.systems.nowcast.task.windows import Windows
from tests.systems.nowcast.competition import write_competition
from tests.waiting import answers_of

SIZE, EVERY = 12, torch.arange(19)
# 14 windows in a run of 49 rows and 5 in one of 40: (17 + 8) images and (45 + 36) frames of rain
ROWS_READ = 17 + 8 + 45 + 36


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_competition(tmp_path, regions=("boxi_0015",), size=SIZE)
    return tmp_path


def packed(root: Path, split: str = "train", **changes: object) -> Archive:
    return open_archive(root, split, Reading(cache=str(root / "packed"), **changes))  # type: ignore[arg-type]


def same(mine: Windows, theirs: Windows) -> None:
    """As exact as float16 is."""
    np.testing.assert_allclose(mine.satellite.numpy(), theirs.satellite.numpy(), rtol=2**-11, atol=1e-7)
    np.testing.assert_allclose(mine.rate.numpy(), theirs.rate.numpy(), rtol=2**-10, atol=1e-7)
    for name in ("missing", "valid", "place"):
        assert torch.equal(getattr(mine, name), getattr(theirs, name))
    assert torch.equal(mine.rate >= 0.2, theirs.rate >= 0.2) and torch.equal(mine.rate > 0, theirs.rate > 0)


def folder(root: Path) -> Path:
    return root / "packed/2019.boxi_0015.train"


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Rows that were read from HDF5."""
    found: list[int] = []
    before = source.Source._read

    def counted(self: source.Source, path: Path, key: str, row: int) -> np.ndarray:
        found.append(row)
        return before(self, path, key, row)

    monkeypatch.setattr(source.Source, "_read", counted)
    return found


def test_packed_windows_are_those_of_the_files(root: Path) -> None:
    for split in ("train", "validation", "test", "heldout"):
        plain = open_archive(root, split)
        index = torch.arange(len(plain))
        same(packed(root, split).take(index), plain.take(index))


def test_a_frame_is_read_from_hdf5_once(root: Path, reads: list[int]) -> None:
    first = packed(root).take(EVERY)
    assert len(reads) == ROWS_READ
    again = packed(root).take(EVERY.flip(0))
    assert len(reads) == ROWS_READ
    assert torch.equal(again.satellite.flip(0), first.satellite) and torch.equal(again.rate.flip(0), first.rate)


def test_a_cache_that_was_cut_off_goes_on(root: Path, reads: list[int]) -> None:
    whole = packed(root).take(EVERY)
    once = len(reads)
    images = folder(root) / "images"
    width = images.stat().st_size // 139
    with open(images, "r+b") as file:
        file.seek(5 * width + 17)
        file.write(bytes(width))  # two records spoilt, as a kill or a bad disk would
    again = packed(root).take(EVERY)
    assert sorted(reads[once:]) == [5, 6]
    assert torch.equal(again.satellite, whole.satellite)
    os.truncate(images, 3 * width)  # all that follows is gone
    del reads[:]
    assert torch.equal(packed(root).take(EVERY).satellite, whole.satellite) and 5 in reads


def test_spoilt_checksums_are_not_believed(root: Path, reads: list[int]) -> None:
    whole = packed(root).take(EVERY)
    (folder(root) / "rain.sums").write_bytes(b"\xff" * (139 * 8))
    del reads[:]
    same(packed(root).take(EVERY), whole)
    assert min(reads) == 4 and len(reads) == len(set(reads))


@pytest.mark.parametrize("change", ["time", "option", "index"])
def test_what_was_packed_from_something_else_is_packed_anew(change: str, root: Path, reads: list[int]) -> None:
    packed(root).take(EVERY)
    del reads[:]
    if change == "time":
        path = root / "2019/HRIT/boxi_0015.train.reflbt0.ns.h5"
        os.utime(path, ns=(1, 1))
    elif change == "index":
        (folder(root) / "index.json").write_text("{")
    literal = change == "option"
    same(packed(root, literal=literal).take(EVERY), open_archive(root, "train", Reading(literal=literal)).take(EVERY))
    assert len(reads) == ROWS_READ + 19 * 36


def test_a_cache_that_cannot_be_written_is_one_line(root: Path) -> None:
    (root / "packed").write_text("a file where a folder should be")
    with pytest.raises(UserError, match="packed"):
        packed(root).take(torch.arange(1))


@given(
    rate=arrays.arrays(
        np.float32, (40,), elements=some.floats(0, 128, width=32, allow_subnormal=False) | some.sampled_from([0.2, 0.0])
    )
)
def test_packing_never_moves_a_rate_across_a_threshold(rate: np.ndarray) -> None:
    small = np.abs(np.nextafter(np.float32(0.2), np.float32([0, 1])) + np.float32([-1e-5, 1e-5]))
    rate = np.concatenate([rate, small, np.nextafter(np.float32(0.2), np.float32([0, 1])), np.float32([1e-12, 1e-30])])
    found = packed_rate(rate).astype(np.float32)
    assert ((found >= np.float32(0.2)) == (rate >= np.float32(0.2))).all() and ((found > 0) == (rate > 0)).all()
    large = rate > 1e-4
    assert (np.abs(found - rate)[large] <= rate[large] / 1000).all()


def test_the_loader_is_measured_in_windows_a_second(root: Path) -> None:
    assert loader_rate(packed(root), 16, batch=4) > 0


def _take(root: Path, queue) -> None:  # type: ignore[no-untyped-def]
    queue.put(packed(root).take(EVERY).satellite.numpy().copy())


def test_processes_may_fill_one_cache_at_the_same_time(root: Path) -> None:
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    workers = [context.Process(target=_take, args=(root, queue)) for _ in range(3)]
    for worker in workers:
        worker.start()
    found = answers_of(queue, workers)
    expected = open_archive(root, "train").take(EVERY).satellite.numpy()
    for one in found:
        np.testing.assert_allclose(one, expected, rtol=2**-11, atol=1e-7)


def test_two_threads_fill_the_same_batch_and_leave_torch_as_it_was(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = open_archive(root, "train").take(EVERY)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        same(packed(root).take(EVERY), expected)  # filling, from two threads
        same(packed(root).take(EVERY.flip(0)[:7]), Windows(*(leaf.flip(0)[:7] for leaf in expected)))
        assert torch.get_num_threads() == 2
        monkeypatch.setattr(source, "prepared_rain", lambda raw: (_ for _ in ()).throw(OSError("bad sector")))
        with pytest.raises(OSError, match="bad sector"):  # what goes wrong on a thread is not lost there
            open_archive(root, "train").take(EVERY)
    finally:
        torch.set_num_threads(before)
