"""The models a server holds: packs as they are, runs packed on the way in, so that both predict without torch."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fewer import zoo
from fewer.core.errors import MissingExtra
from fewer.packs.compiled import missing
from fewer.packs.file.tensors import Array
from fewer.packs.pack import Allowance, Pack, load
from fewer.packs.program import Input, Time
from fewer.packs.runtime.runtime import Network
from fewer.packs.show import count, stored_as

__all__ = ["Model", "open_models"]


@dataclass(frozen=True)
class Model:
    """A pack under a name."""

    name: str
    task: str
    pack: Pack
    size_bytes: int
    digest: str  # SHA-256 of the file, in hexadecimal

    @property
    def version(self) -> str:
        """The digest's beginning: another file is another version, whoever numbers them."""
        return self.digest[:12]

    @cached_property
    def inputs(self) -> tuple[Input, ...]:
        """What it has to be given, without the samples' axis."""
        return self._network.inputs

    @property
    def time(self) -> Time | None:
        """Which inputs are sequences of any length, if any are."""
        return self._network.program.time

    @property
    def _network(self) -> Network:
        return next(iter(self.pack.networks.values()))

    def samples_within(self, steps: int, most_bytes: int, most: int) -> int:
        """How many sequences of so many steps can be predicted at once in so much memory; 0: not even one."""
        return self._network.samples_within(steps, most_bytes // 4, most)

    def predict(self, arrays: Sequence[Array]) -> Array:
        """The answer to a batch, samples on axis 0; of several outputs the first."""
        answer = self.pack.predict(*arrays)
        return np.asarray(answer[0] if isinstance(answer, tuple) else answer)

    def blank(self, samples: int, steps: int | None = None) -> list[Array]:
        """A batch of zeros: to warm up and to time."""
        program = self._network.program
        length = program.usual if steps is None else steps
        return [np.zeros((samples, *program.shape_of(item, length)), dtype=item.dtype) for item in self.inputs]

    @cached_property
    def output(self) -> Input:
        """What it answers, without the samples' axis; -1 for sizes that grow with the length of its sequences."""
        found = self.predict(self.blank(1))
        usual = self._network.program.usual
        other = self.predict(self.blank(1, usual - 1 or usual + 1)) if usual else found
        shape = tuple(a if a == b else -1 for a, b in zip(found.shape, other.shape))
        return Input("output", shape[1:], found.dtype.name)

    def described(self) -> dict[str, Any]:
        """What it is, as `/v1/models` says it; what it is asked is its service's to say."""
        left = count(self.pack)
        pruned = {"prunable": left.prunable, "kept_prunable": left.kept_prunable} if self.pack.masks else {}
        return {
            "name": self.name,
            "task": self.task,
            "version": self.version,
            "digest": f"sha256:{self.digest}",
            "bytes": self.size_bytes,
            "values": stored_as(self.pack),
            "weights": left.weights,
            "kept": left.kept,
            "removed": round(1 - left.density, 4),
            **pruned,
            "compiled": not missing(),
            "settings": [str(word) for word in self.pack.settings.get("settings", [])],
            "hardened": self.pack.settings.get("hardened") or self.pack.settings.get("harden"),
            "metrics": {
                str(name): float(value)
                for name, value in dict(self.pack.settings.get("metrics") or {}).items()
                if isinstance(value, int | float) and np.isfinite(value)
            },
        }


def open_models(places: Sequence[str], *, allowance: Allowance | None = None) -> list[Model]:
    """Packs, run folders and names of the zoo; all of the zoo where nothing is named. Equal names get a number."""
    models: list[Model] = []
    for place in places or zoo.names():
        pack, data = _opened(place, allowance)
        stem = Path(place).name.removesuffix(".pack")
        taken = {model.name for model in models}
        name = next(n for n in (stem, *(f"{stem}-{count}" for count in range(2, 1000))) if n not in taken)
        task = str(pack.settings.get("task", "own"))
        models.append(Model(name, task, pack, len(data), hashlib.sha256(data).hexdigest()))
    return models


def _opened(place: str, allowance: Allowance | None) -> tuple[Pack, bytes]:
    if Path(place).is_dir():
        return _packed(Path(place))
    path = zoo.find(place, "a pack, a run folder or a name of the zoo")
    return load(path, allowance=allowance), path.read_bytes()


def _packed(run: Path) -> tuple[Pack, bytes]:
    """A finished run as the pack that `fewer pack` would write of it; the only place that needs torch."""
    try:
        from fewer.run import load as runs
        from fewer.run.packing import pack_run
    except ModuleNotFoundError as error:
        raise MissingExtra(
            f"a run, without {error.name}", "what training needs", "pip install 'fewer[train]'"
        ) from None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.pack"
        pack_run(runs.load(run), file)
        return load(file, allowance=Allowance.unlimited()), file.read_bytes()
