"""What a maintainer's script reads of files that torch saved: tensors, and nothing that could run."""

from __future__ import annotations

import collections
import io
import os
import pickle
import zipfile
from typing import Any

import numpy as np
import pytest
import torch
from scripts.torch_tensors import read_tensors
from torch import nn


def saved(state: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    torch.save(state, file)
    return file.getvalue()


def test_tensors_are_those_that_torch_saved() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(5, 300), nn.BatchNorm1d(300), nn.Linear(300, 2))
    whole = torch.arange(60.0, dtype=torch.float64).view(3, 4, 5)
    state = {**net.state_dict(), "part": whole[1:, :, 2], "turned": whole.permute(2, 0, 1), "one": torch.tensor(3.5)}
    found = read_tensors(saved(collections.OrderedDict(state)))
    assert found.keys() == state.keys()
    assert all(np.array_equal(found[name], value.numpy()) for name, value in state.items())


class Hostile:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("made by a pickle",)


def test_nothing_that_a_file_calls_is_called(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({"a": Hostile()}, protocol=2))
    assert read_tensors(file.getvalue()) == {} and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("storage", ["storage", "offset"])
def test_a_tensor_outside_its_storage_is_refused(storage: str) -> None:
    good = saved({"a": torch.arange(4.0)})
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(good)) as old, zipfile.ZipFile(file, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if storage == "storage" and name.endswith("/data/0"):
                content = content[:8]
            if storage == "offset" and name.endswith("data.pkl"):
                content = content.replace(b"QK\x00K\x04", b"QK\x03K\x04")
                assert content != old.read(name)
            new.writestr(name, content)
    with pytest.raises(ValueError, match="outside its storage"):
        read_tensors(file.getvalue())
