"""Samples of a user's own problem: read from loaders, and checked before anything is trained with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from fewer.core.data import TensorData
from fewer.core.errors import UserError
from fewer.core.user_code import called

__all__ = ["Samples", "class_labels", "quantities", "read", "tried"]

_EVERY = 10  # where there is no loader `validation`, every tenth training sample is held out
_MISSPELT = ("val", "valid", "dev", "eval")
Targets = Callable[[str, Tensor], Tensor]  # (split, targets) to the form that losses take


class Samples(NamedTuple):
    """A batch."""

    x: Tensor  # (batch, ...)
    y: Tensor  # (batch,) integer for classes, (batch, ...) floating for quantities


def read(loaders: Mapping[str, Iterable[Any]], targets: Targets) -> dict[str, TensorData[Samples]]:
    """Every split in memory; a loader that shuffles does so in the same way each time."""
    if not isinstance(loaders, Mapping):
        raise UserError(f"loaders of type {type(loaders).__name__}", 'a dict such as {"train": ..., "test": ...}')
    if missing := {"train", "test"} - set(loaders):
        raise UserError(f"loaders {', '.join(map(str, loaders)) or 'none'}", "train and test", f"add {min(missing)}")
    if misspelt := [name for name in loaders if name in _MISSPELT]:
        raise UserError(f"a loader {misspelt[0]!r}", "train, validation and test", "call it validation")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        found = {split: _gathered(split, loader, targets) for split, loader in loaders.items()}
    if "validation" not in found:
        samples = found["train"]
        if len(samples.x) < 2:
            raise UserError("1 training sample", "2 or more, or a loader `validation`")
        held = torch.arange(len(samples.x)) % _EVERY == _EVERY - 1
        held[-1] |= not held.any()
        found["validation"] = Samples(*(leaf[held] for leaf in samples))
        found["train"] = Samples(*(leaf[~held] for leaf in samples))
    return {split: TensorData(samples) for split, samples in found.items()}


def _gathered(split: str, loader: Iterable[Any], targets: Targets) -> Samples:
    expected = "pairs (inputs, targets) of tensors"
    parts = [_pair(split, part) for part in called(lambda: list(loader), f"the {split} loader", expected)]
    if not parts:
        raise UserError(f"a {split} loader that yields nothing", "at least one batch")
    samples = called(lambda: Samples(*(torch.cat(leaves) for leaves in zip(*parts))), f"the {split} loader", expected)
    if not len(samples.x):
        raise UserError(f"a {split} loader without a sample", "at least one")
    _check_finite(split, "inputs", samples.x)
    _check_finite(split, "targets", samples.y)
    return samples._replace(y=targets(split, samples.y))


def _pair(split: str, part: Any) -> tuple[Tensor, Tensor]:
    if not isinstance(part, tuple | list) or len(part) != 2:
        raise UserError(f"a {split} loader that yields {type(part).__name__}", "pairs (inputs, targets) of tensors")
    leaves = []
    for leaf, what in zip(part, ("inputs", "targets")):
        if isinstance(leaf, np.ndarray) and leaf.dtype.kind in "biuf":
            leaf = torch.from_numpy(np.ascontiguousarray(leaf))
        if not isinstance(leaf, Tensor) or leaf.ndim == 0:
            kind = f"{leaf.dtype} array" if isinstance(leaf, np.ndarray) else type(leaf).__name__
            raise UserError(f"a {split} loader whose {what} are {kind}", "a tensor of numbers, a row a sample")
        leaves.append(leaf)
    x, y = leaves
    if len(x) != len(y):
        raise UserError(f"a {split} loader with {len(x)} inputs and {len(y)} targets", "as many of one as of the other")
    return x, y


def _check_finite(split: str, what: str, values: Tensor) -> None:
    if values.is_floating_point() and not bool(values.isfinite().all()):
        row = int((~values.isfinite()).reshape(len(values), -1).any(1).nonzero()[0])
        raise UserError(f"{split} {what} that are NaN or infinite, first in sample {row}", "finite numbers")


def class_labels(split: str, y: Tensor) -> Tensor:
    """(n,) of int64."""
    if y.ndim != 1:
        cure = "y.argmax(1) makes labels of one-hot rows" if y.ndim == 2 and y.shape[1] > 1 else "y.reshape(-1)"
        raise UserError(f"{split} labels of shape {tuple(y.shape)}", "one class a sample, (n,)", cure)
    if y.is_floating_point() or y.is_complex():
        raise UserError(f"{split} labels of type {_name(y.dtype)}", "whole numbers", "y.long()")
    if split == "train" and len(y) > 1 and bool((y == y[0]).all()):
        raise UserError(f"train labels that are all {int(y[0])}", "two classes or more")
    return y.long()


def quantities(split: str, y: Tensor) -> Tensor:
    """Floating, of any shape."""
    return y if y.is_floating_point() else y.float()


def tried(model: Callable[[], nn.Module], x: Tensor, name: str) -> Tensor:
    """What a fresh network answers to a few samples; what it cannot take is told before training."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        net = called(model, f"{name}.model", "a network")
        if not isinstance(net, nn.Module):
            raise UserError(f"{name}.model, which returns {type(net).__name__}", "a torch.nn.Module")
        first = next((p for p in net.parameters() if p.is_floating_point()), None)
        given = x[:2].to(first.dtype) if first is not None and x.is_floating_point() else x[:2]
        form = f"inputs of shape {tuple(given.shape)} and type {_name(given.dtype)}"
        answer = called(lambda: net.eval()(given), f"{name}.model on {form}", "a network that takes them")
    if not isinstance(answer, Tensor) or answer.ndim == 0 or len(answer) != len(given):
        kind = tuple(answer.shape) if isinstance(answer, Tensor) else type(answer).__name__
        raise UserError(f"{name}.model, which answers {kind} to {form}", "a tensor with a row a sample")
    return answer


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
