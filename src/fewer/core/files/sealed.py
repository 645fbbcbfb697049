"""safetensors files with a checksum of their names, kinds, shapes and numbers, so that damage is found in reading."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

__all__ = ["notes", "opened", "sealed"]

_KEY = "crc32"  # in the file's metadata, where other readers do not mind it


def sealed(tensors: Mapping[str, Tensor], notes: Mapping[str, str] | None = None) -> bytes:
    """The file's content; `notes` are texts beside the tensors."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    return save(plain, {**(notes or {}), _KEY: _checksum(plain)})


def notes(path: Path) -> dict[str, str]:
    """The texts beside the tensors."""
    with safe_open(path, framework="pt") as file:
        return dict(file.metadata() or {})


def opened(path: Path) -> dict[str, Tensor]:
    """The tensors; SafetensorError where they are not those that were written. Files without a checksum are read."""
    with safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  it is no dictionary
        written = (file.metadata() or {}).get(_KEY)
    if written is not None and written != _checksum(tensors):
        raise SafetensorError("its checksum does not fit")
    return tensors


def _checksum(tensors: Mapping[str, Tensor]) -> str:
    found = 0
    for name, tensor in sorted(tensors.items()):
        found = zlib.crc32(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode(), found)
        found = zlib.crc32(tensor.reshape(-1).view(torch.uint8).numpy().data, found)
    return f"{found:08x}"
