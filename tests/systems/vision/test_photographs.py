"""Photographs: archives that are decoded once, augmentation that repeats, deep networks, pieces of the study."""

from __future__ import annotations

import dataclasses
import io
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch

from fewer.attack.hardening.harden import harden
from fewer.core.engines.base import Training
from fewer.core.engines.cohort import Cohort
from fewer.core.engines.optimizer import Optimizer
from fewer.core.engines.plain import Plain
from fewer.core.errors import UserError
from fewer.core.files.run_folder import Folder
from fewer.core.seed import Stream
from fewer.studies.making import make_pieces
from fewer.studies.order import Order
from fewer.systems.vision.studies.light.honest import honest_light
from fewer.systems.vision.studies.light.photo_training import Averaged
from fewer.systems.vision.studies.light.photographs import photographs as photographs_study
from fewer.systems.vision.task import data
from fewer.systems.vision.task.augment import augmented
from fewer.systems.vision.task.deep import DEEP
from fewer.systems.vision.task.files import archive
from fewer.systems.vision.task.networks import NETWORKS
from fewer.systems.vision.task.task import Settings, Vision
from tests.systems.vision.small import digits_file, quiet


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> str:
    return digits_file(tmp_path_factory.mktemp("few"), 100, 60)


@pytest.fixture
def photographs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three images of each of two classes in either split, as PNG, of one colour each."""
    image = pytest.importorskip("PIL.Image")
    monkeypatch.setenv("FEWER_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "photographs.tar.xz"
    with tarfile.open(path, "w:xz") as tar:
        for split in ("test", "train"):
            for name, tone in (("frog", 200), ("cat", 50)):
                for number in range(3):
                    buffer = io.BytesIO()
                    image.fromarray(np.full((8, 8, 3), tone + number, np.uint8)).save(buffer, "PNG")
                    member = tarfile.TarInfo(f"{split}/{name}/{number}.png")
                    member.size = buffer.tell()
                    buffer.seek(0)
                    tar.addfile(member, buffer)
    return path


def _noise(seed: int = 0, step: int = 0) -> Stream:
    return Stream(torch.tensor(seed), torch.tensor(step))


def test_an_archive_is_read_in_alphabetical_order_and_decoded_once(
    photographs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = data.load(str(photographs))
    assert first["train"].labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert first["test"].images[:, 0, 0, 0].tolist() == [50, 51, 52, 200, 201, 202]
    monkeypatch.setattr(archive, "_decoded", None)
    again = data.load(str(photographs))
    assert np.array_equal(again["train"].images, first["train"].images)


def test_a_broken_archive_is_refused_in_one_line(photographs: Path) -> None:
    photographs.write_bytes(photographs.read_bytes()[:100])
    with pytest.raises(UserError, match="fetch it again"):
        data.load(str(photographs))


def test_a_crop_moves_the_image_by_at_most_the_padding_and_fills_with_black() -> None:
    pixels = torch.rand(64, 3, 32, 32) + 0.1
    wide = torch.nn.functional.pad(pixels, (4, 4, 4, 4))
    for image, moved in zip(wide, augmented(pixels, _noise(), ("crop",))):
        windows = image.unfold(1, 32, 1).unfold(2, 32, 1).permute(1, 2, 0, 3, 4).reshape(81, -1)
        assert bool((windows == moved.reshape(-1)).all(1).any())


def test_half_of_the_images_are_mirrored_and_the_others_are_as_they_were() -> None:
    pixels = torch.rand(400, 1, 8, 8)
    found = augmented(pixels, _noise(), ("flip",))
    same, mirrored = ((found == other).flatten(1).all(1) for other in (pixels, pixels.flip(3)))
    assert bool((same ^ mirrored).all()) and 150 < int(same.sum()) < 250


def test_cutout_greys_one_square_and_nothing_else() -> None:
    pixels = torch.zeros(100, 1, 32, 32)
    grey = (augmented(pixels, _noise(), ("cutout",)) == 0.5).flatten(1).sum(1)
    assert int(grey.max()) == 64 and int(grey.min()) >= 16


def test_augmentation_is_a_function_of_seed_and_step() -> None:
    pixels, kinds = torch.rand(8, 3, 16, 16), ("crop", "flip", "cutout")
    found = augmented(pixels, _noise(1, 2), kinds)
    assert torch.equal(found, augmented(pixels, _noise(1, 2), kinds))
    assert not torch.equal(found, augmented(pixels, _noise(1, 3), kinds))


def test_an_unknown_augmentation_is_refused() -> None:
    with pytest.raises(UserError, match="augment 'blur'"):
        Settings(augment="crop,blur")


def test_a_replica_with_batch_norms_and_augmentation_trains_in_a_cohort_as_alone(few: str) -> None:
    task = harden(
        Vision(Settings("resnet10-tiny", few, augment="crop,flip,cutout", validation=0.0)), "pgd:0.1,steps=2,ramp=0"
    )
    training = Training(2, 8, Optimizer("sgd", 0.01), precision="float64")
    alone, together = Plain(task, training, 1), Cohort(task, training, [0, 1])
    for engine in (alone, together):
        engine.advance(2)
    ours, theirs = alone.state.networks["net"], together.state.networks["net"]
    assert torch.allclose(ours.weights[0], theirs.weights[1], rtol=0, atol=1e-9)
    for key, buffer in ours.buffers.items():
        assert torch.allclose(buffer[0], theirs.buffers[key][1], rtol=0, atol=1e-9)


def test_an_adversary_comes_after_augmentation(few: str) -> None:
    task = Vision(Settings("mlp", few, augment="cutout", validation=0.0))
    seen = []
    hardened = harden(task, "fgsm:0.1,ramp=0")
    engine = Plain(hardened, Training(1, 4))
    engine.modules["net"].register_forward_pre_hook(lambda _, arguments: seen.append(arguments[0].detach()))
    engine.advance(1)
    assert len(seen) == 2 and bool((seen[0] == 0.5).flatten(1).any(1).all())
    assert float((seen[1] - seen[0]).abs().max()) == pytest.approx(0.1)


@pytest.mark.parametrize("name", DEEP)
def test_deep_networks_name_ten_classes_whatever_lies_last(name: str) -> None:
    net = NETWORKS[name]((3, 32, 32), 10).eval()
    pixels = torch.rand(2, 3, 32, 32)
    before = net(pixels)
    net.channels_last = True
    assert before.shape == (2, 10)
    assert torch.allclose(net(pixels), before, atol=1e-4)


def test_resnet18_has_the_published_size() -> None:
    with torch.device("meta"):
        net = NETWORKS["resnet18"]((3, 32, 32), 10)
    assert sum(parameter.numel() for parameter in net.parameters()) == 11_173_962


def test_the_average_follows_the_network_and_its_mask_of_statistics(few: str) -> None:
    engine = Plain(
        Averaged(Vision(Settings("resnet10-tiny", few, validation=0.0)), 0.5), Training(1, 8, Optimizer("sgd", 0.1))
    )
    before = engine.state.networks["net"].weights.clone()
    engine.advance(1)
    net, average = engine.state.networks["net"], engine.state.networks["average"]
    assert torch.allclose(average.weights, (before + net.weights) / 2)
    assert all(torch.equal(average.buffers[key], buffer) for key, buffer in net.buffers.items())


def test_pieces_train_prune_tune_and_are_audited(few: str, tmp_path: Path) -> None:
    order = Order("vision/cifar-robust", "quick", tmp_path, quiet, data=few)
    names = ["small-hardened", "small-hardened-98k", "small-hardened-44k"]
    assert make_pieces(order, names) == names
    wide, narrow = (Folder(tmp_path / "photographs" / name) for name in names[1:])
    assert (wide.read_json("metrics.json")["kept"], narrow.read_json("metrics.json")["kept"]) == (9800, 4400)
    assert narrow.read_json("metrics.json")["pixels"] == "own images"
    before, after = (folder.read_networks("mask.safetensors")["net"] for folder in (wide, narrow))
    assert all(bool((before[key] | ~mask).all()) for key, mask in after.items())  # what is pruned stays pruned
    weights = narrow.read_networks("weights.safetensors")["net"]
    assert all(bool((weights[key][~mask] == 0).all()) for key, mask in after.items())
    table = photographs_study(dataclasses.replace(order, scale="full"))
    assert [row[0] for row in table.rows] == names
    assert f" --pieces {' '.join(names)} --out DIR" in table.commands[0]  # what was made, and no more
    assert table.notes[-1].startswith("not trained: standard, standard-95, ")
    assert not any("bfloat16" in note for note in table.notes)


def test_an_audit_of_the_first_attacks_goes_on_with_the_others_later(few: str, tmp_path: Path) -> None:
    order = Order("vision/honest-light", "quick", tmp_path, quiet, data=few, words=("attacks=1",))
    make_pieces(order, ["kept-10", "audit-kept-10"])
    folder = Folder(tmp_path / "photographs" / "kept-10")
    first = folder.read_json("suite-part.json")["lines"]
    assert [line["attack"].split(",")[0] for line in first] == ["FGSM"]
    assert not (folder.path / "suite.json").exists()
    later = dataclasses.replace(order, words=())
    make_pieces(later, ["audit-kept-10"])
    found = folder.read_json("suite.json")
    assert (len(found["lines"]), found["lines"][0], found["images"]) == (2, first[0], 20)
    row = honest_light(dataclasses.replace(later, scale="full")).rows[0]
    assert row[0] == "kept-10" and row[-1] == "FGSM + PGD-3"


def test_a_piece_that_needs_another_says_which(few: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--pieces small first"):
        make_pieces(Order("vision/cifar-robust", "quick", tmp_path, quiet, data=few), ["small-98k"])
