"""Sets that are fetched: small fakes of Fashion-MNIST's package and of CIFAR-10's archive."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fewer.core.errors import UserError
from fewer.systems.vision.task import data
from fewer.systems.vision.task.files import fashion
from fewer.systems.vision.task.files.fetch_cifar import fetch_cifar10


def _tar(path: Path, contents: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in contents.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def _clothes(path: Path, **changes: Any) -> Path:
    """Fourteen pictures of each class, whose pixels are ten times the class; two more entries of class 0 are empty."""
    contents = {}
    for number in range(10):
        rows: list[list[int]] = [[10 * number] * 783 + [place] for place in range(14)]
        if number == 0:
            rows = [*rows[:5], [], *rows[5:], []]
        contents[f"package/src/clothes/{number}.json"] = json.dumps({"data": changes.get(f"c{number}", rows)}).encode()
    return _tar(path, contents)


def test_clothes_are_split_by_a_fixed_rule_and_empty_entries_are_left_out(tmp_path: Path) -> None:
    found = fashion.write_fashion(_clothes(tmp_path / "clothes.tgz"), tmp_path / "fashion.npz")
    assert found == {"train": 120, "test": 20}
    read = data.load(str(tmp_path / "fashion.npz"))
    assert read["test"].images.shape == (20, 1, 28, 28)
    assert read["test"].images[:, 0, -1, -1].tolist() == [6, 13] * 10  # every seventh of each class
    assert np.array_equal(read["train"].images[:, 0, 0, 0], 10 * read["train"].labels)


@pytest.mark.parametrize("rows", [[[0] * 783], [[0] * 783 + [999]], "none", [[]]])
def test_a_package_with_other_content_is_refused_in_one_line(rows: Any, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"3\.json"):
        fashion.write_fashion(_clothes(tmp_path / "clothes.tgz", c3=rows), tmp_path / "fashion.npz")
    assert not (tmp_path / "fashion.npz").exists()


def test_clothes_are_fetched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tarball = _clothes(tmp_path / "clothes.tgz")
    monkeypatch.setattr(fashion, "npm_tarball", lambda package, scratch: tarball)
    with pytest.raises(UserError, match="another checksum"):
        fashion.fetch_fashion(tmp_path / "out")
    assert not (tmp_path / "out" / "fashion.npz").exists()
    monkeypatch.setattr(fashion, "SHA256", hashlib.sha256(tarball.read_bytes()).hexdigest())
    target = fashion.fetch_fashion(tmp_path / "out")
    monkeypatch.setattr(fashion, "npm_tarball", None)
    assert fashion.fetch_fashion(tmp_path / "out") == target == tmp_path / "out" / "fashion.npz"


def test_without_npm_clothes_are_refused_with_a_cure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"put fashion\.npz into"):
        fashion.fetch_fashion(tmp_path / "out")


def _photographs(path: Path, count: int = 2) -> tuple[str, str]:
    """An archive in CIFAR-10's binary layout, its address and its MD5."""
    names = [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"]
    record = np.arange(3073, dtype=np.uint8) % 10
    contents = {f"cifar-10-batches-bin/{name}": np.tile(record, count).tobytes() for name in names}
    _tar(path, {**contents, "../outside.bin": b"evil", "cifar-10-batches-bin/readme.html": b"read"})
    return path.as_uri(), hashlib.md5(path.read_bytes()).hexdigest()


def test_cifar10_is_fetched_from_the_first_mirror_that_answers_and_read(tmp_path: Path) -> None:
    address, md5 = _photographs(tmp_path / "cifar.tar.gz")
    gone = (tmp_path / "gone.tar.gz").as_uri()
    fetch_cifar10(tmp_path / "out", (gone, address), md5=md5, images=2)
    assert len(list((tmp_path / "out").iterdir())) == 6 and not (tmp_path / "outside.bin").exists()
    assert {split: part.images.shape for split, part in data.load(str(tmp_path / "out")).items()} == {
        "train": (10, 3, 32, 32), "test": (2, 3, 32, 32),
    }  # fmt: skip
    fetch_cifar10(tmp_path / "out", (), images=2)  # it is there


@pytest.mark.parametrize(("md5", "images", "match"), [("0" * 32, 2, "another checksum"), (None, 3, "instead of")])
def test_another_archive_is_refused_and_nothing_written(
    md5: str | None, images: int, match: str, tmp_path: Path
) -> None:
    address, right = _photographs(tmp_path / "cifar.tar.gz")
    with pytest.raises(UserError, match=match):
        fetch_cifar10(tmp_path / "out", (address,), md5=md5 or right, images=images)
    assert not list((tmp_path / "out").glob("*.bin"))
