"""A network and data that were given as objects, as a task: what `fewer.train(model, out, data=...)` trains.

The settings name both by a digest of what they hold, so that a run folder is never taken for that of other weights or
other samples. While the objects are here they serve; what is kept of them in the run folder serves wherever they are
not: the network as a program (`program.py`), the samples as tensors.
"""

from __future__ import annotations

import copy
import hashlib
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fewer.core.data import TensorData
from fewer.core.engines.state import refuse_shared, tensors_of
from fewer.core.errors import UserError
from fewer.core.files.run_folder import CONFIG, GIVEN, Folder
from fewer.core.settings import setting
from fewer.custom.calling import leaves
from fewer.custom.data import Samples, class_labels, quantities, read, splits_of, tried
from fewer.custom.places import Places, class_axis
from fewer.custom.program import network_of, write_network
from fewer.custom.supervised import Classification, Regression, SupervisedTask

__all__ = [
    "GivenClasses", "GivenPlaces", "GivenQuantities", "Settings", "give", "give_again", "keep_given", "kept_task",
]  # fmt: skip

_TASK, _DATA = "task.json", "data.safetensors"
_MOST = 2**26  # bytes of samples that are kept with a run; of more, as many as a pack needs to be made
_EXAMPLES = 512
_AGAIN = "give it again: fewer.load(path, model=..., data=...)"


class _Splits(dict[str, TensorData[Samples]]):
    """Samples by split, of which somebody may hold a weak reference."""


_networks: weakref.WeakValueDictionary[str, nn.Module] = weakref.WeakValueDictionary()
_splits: weakref.WeakValueDictionary[str, _Splits] = weakref.WeakValueDictionary()


@dataclass(frozen=True)
class Settings:
    """Of a task that was given."""

    network: str = setting("", "the class of the network")
    weights: str = setting("", "digest of its weights")
    samples: str = setting("", "digest of the data")
    low: float | None = setting(None, "lowest legal input; none: that of the data")
    high: float | None = setting(None, "highest legal input; none: that of the data")
    at: str = setting("", "where they are kept")


class _Given:
    """What both kinds share."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.low, self.high = self.settings.low, self.settings.high
        # references: what is here stays as long as the task
        self.here, self.object = _splits.get(self.settings.samples), _networks.get(self.settings.weights)

    def model(self) -> nn.Module:
        """A copy of the network that was given, or what is kept of it."""
        return network_of(self._kept("a network")) if self.object is None else copy.deepcopy(self.object)

    def loaders(self) -> Mapping[str, Iterable[Any]]:
        """The samples that were given, or what is kept of them."""
        if self.here is not None:
            return {split: [tuple(data.samples)] for split, data in self.here.items()}
        found: dict[str, dict[str, Tensor]] = {}
        for name, tensor in self._kept("data").read_tensors(_DATA).items():
            split, _, part = name.partition("/")
            found.setdefault(split, {})[part] = tensor
        return {split: [_batch(parts)] for split, parts in found.items()}

    def data(self, split: str) -> TensorData[Samples]:
        samples: TensorData[Samples] = super().data(split)  # type: ignore[misc]
        if self.here is None and (self._kept("data").path / _PART).exists() and split != "train":
            raise UserError(f"{split} samples that were too many to be kept with the run", "the data", _AGAIN)
        return samples

    def perturbable(self, batch: Samples) -> Tensor:
        found: Tensor = super().perturbable(batch)  # type: ignore[misc]
        if self.object is None and not found.is_floating_point():
            raise UserError("an attack on tokens of a network that is kept as a program", "the network itself", _AGAIN)
        return found

    def _kept(self, what: str) -> Folder:
        if not self.settings.at:
            raise UserError(f"{what} that was given as an object", f"{self.settings.network} itself", _AGAIN)
        return Folder(self.settings.at)


_PART = "part"  # a file that says that not all samples are kept


class GivenClasses(_Given, Classification):
    """Scores of classes."""

    Settings = Settings


class GivenPlaces(_Given, Places):
    """Scores of classes for every place."""

    Settings = Settings


class GivenQuantities(_Given, Regression):
    """Quantities."""

    Settings = Settings


_KINDS: dict[str, type[_Given]] = {
    "classes": GivenClasses, "places": GivenPlaces, "quantities": GivenQuantities
}  # fmt: skip


def give(
    model: nn.Module, data: Any, *, validation: Any = None, bounds: tuple[float, float] | None = None
) -> tuple[str, tuple[str, ...], object]:
    """Name a network and its data for a job: task, settings, and what has to be held on to while they serve."""
    if not isinstance(model, nn.Module):
        raise UserError(f"a model of type {type(model).__name__}", "a torch.nn.Module")
    refuse_shared({"net": model})
    if data is None:
        raise UserError("a network without data", 'data={"train": ..., "test": ...}, loaders or (inputs, targets)')
    kinds: list[str] = []
    splits = _Splits(read(splits_of(data, validation), lambda split, y: _targets(kinds, split, y)))
    weights, samples = _digest(tensors_of(model)), _digest(_flat(splits))
    _networks[weights], _splits[samples] = model, splits
    words = [f"network={type(model).__name__}", f"weights={weights}", f"samples={samples}"]
    if bounds is not None:
        words += [f"low={bounds[0]}", f"high={bounds[1]}"]
    return _place(_KINDS[_checked(kinds[0], model, splits)]), tuple(words), splits


def _checked(kind: str, model: nn.Module, splits: Mapping[str, TensorData[Samples]]) -> str:
    """Labels on more than one axis are those of places where the network answers for each; else one line."""
    if kind == "places":
        train = splits["train"].samples
        answer, _ = tried(lambda: copy.deepcopy(model), train.x, type(model).__name__)
        if class_axis(answer, train.y[: len(answer)]) is None:
            for split, data in splits.items():
                class_labels(split, data.samples.y)
    return kind


def _place(kind: type[_Given]) -> str:
    return f"{kind.__module__}:{kind.__name__}"


def give_again(path: Path, model: nn.Module | None, data: Any) -> object:
    """Let objects stand in for what a run folder names; what has to be held on to while it is read."""
    words = dict(word.partition("=")[::2] for word in Folder(path).read_json(CONFIG).get("settings", ()))
    if not {"weights", "samples"} <= words.keys():
        raise UserError(f"{path} with a network or data", "neither: it is the run of a task", "leave them out")
    if model is not None:
        _networks[words["weights"]] = model
    splits = None
    if data is not None:
        splits = _Splits(read(splits_of(data), lambda split, y: y))
        if _digest(_flat(splits)) != words["samples"]:
            raise UserError(f"other data than {path} was trained with", "the same samples in the same order")
        _splits[words["samples"]] = splits
    return model, splits


def _targets(kinds: list[str], split: str, y: Tensor) -> Tensor:
    """Whole numbers of the first split are classes, and then of every other."""
    whole = "classes" if y.ndim < 2 else "places"
    kinds.append(kinds[0] if kinds else "quantities" if y.is_floating_point() else whole)
    if kinds[0] == "places" and not y.is_floating_point():
        return y.long()
    form: Callable[[str, Tensor], Tensor] = quantities if kinds[0] == "quantities" else class_labels
    return form(split, y)


def _flat(splits: Mapping[str, TensorData[Samples]]) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    for split, data in splits.items():
        x = data.samples.x
        found |= {f"{split}/x": x} if isinstance(x, Tensor) else {f"{split}/x/{name}": leaf for name, leaf in x.items()}
        found[f"{split}/y"] = data.samples.y
    return found


def _batch(parts: Mapping[str, Tensor]) -> tuple[Any, Tensor]:
    inputs = {name.partition("/")[2]: tensor for name, tensor in parts.items() if name != "y"}
    return inputs.get("", inputs), parts["y"]


def _digest(tensors: Mapping[str, Tensor]) -> str:
    found = hashlib.sha256()
    for name, tensor in tensors.items():
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        found.update(tensor.detach().cpu().flatten().contiguous().view(torch.uint8).numpy().tobytes())
    return found.hexdigest()[:16]


def kept_task(at: Path) -> str:
    """The task that reads what is kept there."""
    return str(Folder(at).read_json(_TASK)["task"])


def keep_given(task: SupervisedTask, module: nn.Module, path: str | Path) -> str | None:
    """Keep network and samples in a run folder; what could not be kept, in words."""
    folder = Folder(Path(path) / GIVEN)
    if folder.path.exists():
        return None
    folder.path.mkdir()
    kind = next(given for given in _KINDS.values() if isinstance(task, given.__bases__[1]))
    folder.write_json(_TASK, {"task": _place(kind)})
    splits = task.splits()
    flat = _flat(splits)
    if sum(tensor.nbytes for tensor in flat.values()) > _MOST:
        (folder.path / _PART).touch()
        flat = {name: tensor[:_EXAMPLES] for name, tensor in flat.items()}
    folder.write_tensors(_DATA, {name: tensor.contiguous() for name, tensor in flat.items()})
    example = tuple(leaf[:2] for leaf in leaves(splits["train"].samples.x))
    first = next(module.parameters())
    example = tuple(leaf.to(first.dtype) if leaf.is_floating_point() else leaf for leaf in example)
    return write_network(folder, module, example)
