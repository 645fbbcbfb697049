"""A run knows the files that it was trained on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fewer.core.engines.base import Training
from fewer.core.errors import UserError
from fewer.core.files.fingerprints import named_files
from fewer.run.job import Job
from fewer.run.load import load
from fewer.systems.vision.task.digits import read_digits


def write(path: Path, first: int) -> None:
    pixels, labels = read_digits("train")
    part = slice(first, first + 200)
    np.savez(path, images=pixels[part, 0], labels=labels[part], test_images=pixels[part, 0], test_labels=labels[part])


def test_a_file_that_changed_after_training_is_refused_unless_it_is_named_anew(tmp_path: Path) -> None:
    data = tmp_path / "own.npz"
    write(data, 0)
    job = Job("vision", ("network=cnn0", f"data={data}"), Training(steps=2, batch=8))
    metrics = job.run(tmp_path / "run")[0]
    assert load(tmp_path / "run").metrics == metrics
    write(data, 500)
    with pytest.raises(UserError, match=r"own\.npz, which has changed since") as caught:
        load(tmp_path / "run")
    assert "\n" not in str(caught.value) and "--set data=" in str(caught.value)
    assert load(tmp_path / "run", [f"data={data}"]).metrics == metrics
    with pytest.raises(UserError, match="choose another --out"):
        job.run(tmp_path / "run")
    write(data, 0)
    assert job.run(tmp_path / "run") == [metrics] and load(tmp_path / "run").metrics == metrics


def test_folders_and_words_are_no_files(tmp_path: Path) -> None:
    assert named_files(("network=cnn0", f"data={tmp_path}", "maps=", "flag")) == {}


def test_a_byte_at_the_end_of_a_file_counts_and_what_names_no_file_does_not(tmp_path: Path) -> None:
    data, content = tmp_path / "own.bin", bytearray(1 << 20)
    data.write_bytes(content)
    before = named_files([f"data={data}", f"folder={tmp_path}", "network=cnn0", "empty="])
    content[-1] = 1
    data.write_bytes(content)
    assert before.keys() == {"data"} and named_files([f"data={data}"]) != before
