"""Samples of a user's own problem: read from whatever holds them, and checked before anything is trained with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from fewer.core.data import TensorData
from fewer.core.errors import UserError
from fewer.core.user_code import called
from fewer.custom.calling import Inputs, Table, adapted_, in_a_row, leaves, table_of

__all__ = ["Samples", "class_labels", "dtype_name", "quantities", "read", "splits_of", "tried"]

_EVERY = 10  # where there is no split `validation`, every tenth training sample is held out
_TEST = 5  # and where there is no split `test`, every fifth sample of all
_MISSPELT = ("val", "valid", "dev", "eval")
_LABELS = ("labels", "label", "targets", "target", "y")
_EXPECTED = "pairs (inputs, targets) of tensors, or dicts with `labels`"
Targets = Callable[[str, Tensor], Tensor]  # (split, targets) to the form that losses take


class Samples(NamedTuple):
    """A batch."""

    x: Any  # (batch, ...), or a dict of such
    y: Tensor  # (batch,) integer for classes, (batch, ...) floating for quantities


def splits_of(data: Any, validation: Any = None) -> dict[str, Any]:
    """Splits by name: a dict of them as it is, or every fifth sample of what was given as one as `test`."""
    if isinstance(data, Mapping) and not {"train", "test", *_MISSPELT}.isdisjoint(data):
        found = dict(data)
    else:
        samples = _gathered("train", data)
        if len(samples.y) < 3:
            raise UserError(f"{len(samples.y)} samples", "3 or more, or train and test apart", 'data={"train": ...}')
        train, test = _parted(samples, _TEST)
        found = {"train": [tuple(train)], "test": [tuple(test)]}
    return found if validation is None else {**found, "validation": validation}


def read(splits: Mapping[str, Any], targets: Targets) -> dict[str, TensorData[Samples]]:
    """Every split in memory; a loader that shuffles does so in the same way each time."""
    if not isinstance(splits, Mapping):
        raise UserError(f"loaders of type {type(splits).__name__}", 'a dict such as {"train": ..., "test": ...}')
    if missing := {"train", "test"} - set(splits):
        raise UserError(f"loaders {', '.join(map(str, splits)) or 'none'}", "train and test", f"add {min(missing)}")
    if misspelt := [name for name in splits if name in _MISSPELT]:
        raise UserError(f"a loader {misspelt[0]!r}", "train, validation and test", "call it validation")
    found = {}
    for split, loader in splits.items():
        samples = _gathered(split, loader)
        found[split] = samples._replace(y=targets(split, samples.y))
    names = {split: tuple(samples.x) if isinstance(samples.x, dict) else () for split, samples in found.items()}
    if other := next((split for split in names if names[split] != names["train"]), None):
        given = f"{other} inputs {', '.join(names[other]) or 'in one tensor'}"
        raise UserError(given, f"those of train, {', '.join(names['train']) or 'one tensor'}")
    if "validation" not in found:
        if len(found["train"].y) < 2:
            raise UserError("1 training sample", "2 or more, or a loader `validation`")
        found["train"], found["validation"] = _parted(found["train"], _EVERY)
    return {split: TensorData(samples) for split, samples in found.items()}


def _parted(samples: Samples, every: int) -> tuple[Samples, Samples]:
    """Most samples, and one in so many, at least one."""
    held = torch.arange(len(samples.y)) % every == every - 1
    held[-1] |= not held.any()
    x, y = samples
    parts = []
    for rows in (~held, held):
        taken = x[rows] if isinstance(x, Tensor) else {name: tensor[rows] for name, tensor in x.items()}
        parts.append(Samples(taken, y[rows]))
    return parts[0], parts[1]


def _gathered(split: str, source: Any) -> Samples:
    parts = [_part(split, part) for part in _parts(split, source)]
    if not parts:
        raise UserError(f"a {split} loader that yields nothing", "at least one batch")
    if len({tuple(x) if isinstance(x, dict) else () for x, _ in parts}) > 1:
        raise UserError(f"a {split} loader whose batches have different inputs", _EXPECTED)
    samples = called(lambda: _joined(parts), f"the {split} loader", _EXPECTED)
    if not len(samples.y):
        raise UserError(f"a {split} loader without a sample", "at least one")
    for leaf in leaves(samples.x):
        _check_finite(split, "inputs", leaf)
    _check_finite(split, "targets", samples.y)
    return samples


def _parts(split: str, source: Any) -> list[Any]:
    """The batches of a loader, a data set or a pair of arrays."""
    if isinstance(source, Mapping) or (
        isinstance(source, tuple) and len(source) > 1 and all(map(_held, source))
    ):  # arrays: one batch
        return [source]
    if isinstance(source, Tensor | np.ndarray | str | bytes) or not (
        isinstance(source, Iterable) or hasattr(source, "__getitem__")
    ):
        raise UserError(f"{split} data of type {type(source).__name__}", "a loader, a data set or (inputs, targets)")
    if isinstance(source, torch.utils.data.Dataset):
        source = torch.utils.data.DataLoader(source, 256)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return called(lambda: list(source), f"the {split} loader", _EXPECTED)


def _held(part: Any) -> bool:
    return isinstance(part, Tensor | np.ndarray | Mapping)


def _joined(parts: list[tuple[Inputs, Tensor]]) -> Samples:
    y = torch.cat([target for _, target in parts])
    first = parts[0][0]
    if isinstance(first, Tensor):
        return Samples(torch.cat([x for x, _ in parts]), y)  # type: ignore[misc]
    return Samples({name: torch.cat([x[name] for x, _ in parts]) for name in first}, y)  # type: ignore[index]


def _part(split: str, part: Any) -> tuple[Inputs, Tensor]:
    """Inputs and targets of one batch."""
    if isinstance(part, Mapping):
        label = next((name for name in _LABELS if name in part), None)
        if label is None or len(part) < 2:
            names = ", ".join(map(str, part)) or "nothing"
            raise UserError(f"a {split} batch of {names}", "inputs by name, and their `labels`")
        part = ({name: value for name, value in part.items() if name != label}, part[label])
    if not isinstance(part, tuple | list) or len(part) < 2:
        raise UserError(f"a {split} loader that yields {type(part).__name__}", _EXPECTED)
    *given, target = part
    y = _tensor(split, "targets", target)
    x: Inputs
    if len(given) == 1 and isinstance(given[0], Mapping):
        x = {str(name): _tensor(split, f"inputs {name}", value) for name, value in given[0].items()}
    elif len(given) > 1 or isinstance(given[0], tuple | list):
        several = given if len(given) > 1 else given[0]
        x = in_a_row([_tensor(split, "inputs", value) for value in several])
    else:
        x = _tensor(split, "inputs", given[0])
    for leaf in leaves(x):
        if len(leaf) != len(y):
            given_ = f"a {split} loader with {len(leaf)} inputs and {len(y)} targets"
            raise UserError(given_, "as many of one as of the other")
    return x, y


def _tensor(split: str, what: str, leaf: Any) -> Tensor:
    if isinstance(leaf, np.ndarray) and leaf.dtype.kind in "biuf":
        leaf = torch.from_numpy(np.ascontiguousarray(leaf))
    if not isinstance(leaf, Tensor) or leaf.ndim == 0:
        kind = f"{leaf.dtype} array" if isinstance(leaf, np.ndarray) else type(leaf).__name__
        raise UserError(f"a {split} loader whose {what} are {kind}", "a tensor of numbers, a row a sample")
    return leaf.detach().cpu()


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
        raise UserError(f"{split} labels of type {dtype_name(y)}", "whole numbers", "y.long()")
    if split == "train" and len(y) > 1 and bool((y == y[0]).all()):
        raise UserError(f"train labels that are all {int(y[0])}", "two classes or more")
    return y.long()


def quantities(split: str, y: Tensor) -> Tensor:
    """Floating, of any shape."""
    return y if y.is_floating_point() else y.float()


def tried(model: Callable[[], nn.Module], x: Inputs, name: str) -> tuple[Tensor, Table | None]:
    """What a fresh network answers to a few samples, and its table where they are whole numbers.

    What it cannot take is told before training.
    """
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        net = called(model, f"{name}.model", "a network")
        if not isinstance(net, nn.Module):
            raise UserError(f"{name}.model, which returns {type(net).__name__}", "a torch.nn.Module")
        adapted_(net, x)
        first = next((p for p in net.parameters() if p.is_floating_point()), torch.zeros(0))
        given = [leaf[:2].to(first.dtype) if leaf.is_floating_point() else leaf[:2] for leaf in leaves(x)]
        form = " and ".join(f"inputs of shape {tuple(leaf.shape)} and type {dtype_name(leaf)}" for leaf in given)
        answer: Tensor = called(lambda: net.eval()(*given), f"{name}.model on {form}", "a network that takes them")
    if answer.ndim == 0 or len(answer) != len(given[0]):
        raise UserError(f"{name}.model, which answers {tuple(answer.shape)} to {form}", "a tensor with a row a sample")
    tokens = not any(leaf.is_floating_point() for leaf in given)
    return answer, table_of(net, tuple(given)) if tokens else None


def dtype_name(tensor: Tensor) -> str:
    """Such as float32."""
    return str(tensor.dtype).removeprefix("torch.")
