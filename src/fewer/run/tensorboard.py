"""TensorBoard: the numbers of the log under the same names in every task, as event files in the run folder itself.

loss/NETWORKS            mean since the line before, one curve an objective
learning_rate/NETWORKS   of the step just taken
density                  share of all weights that is kept
density/prunable         of those that pruning may touch
validation/METRIC        where validation is looked at (--validate-every)
test/METRIC              once, at the end

`tensorboard --logdir runs` then names every run by its folder, and every replica of a cohort by its seed's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import torch

from fewer.core.errors import MissingExtra, UserError
from fewer.core.files.run_folder import Folder
from fewer.pruning.reach import count

if TYPE_CHECKING:
    from fewer.core.engines.base import Engine

__all__ = ["Recorder", "watching"]


class Recorder:
    """Called with every line of a log; one event file a replica."""

    def __init__(self) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise MissingExtra("no tensorboard", "it installed, to log to it", "pip install 'fewer[log]'") from error
        self._open = SummaryWriter
        self._writers: dict[Path, Any] = {}

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for writer in self._writers.values():
            writer.close()

    def __call__(self, engine: Engine, folder: Folder | None, line: Mapping[str, Any]) -> None:
        """Write a line's metrics, and what they depend on where they are losses."""
        if folder is None:
            return
        seeds = engine.state.seeds
        for replica, place in enumerate(_places(folder.path, seeds)):
            found = {
                name: value[replica] if isinstance(value, list) else value
                for name, value in line.items()
                if name != "step"
            }
            if any(name.startswith("loss/") for name in found):
                found |= {**_rates(engine, replica), **_densities(engine, replica)}
            self._write(place, found, line["step"])

    def finish(self, path: str | Path, seeds: Sequence[int], metrics: Sequence[Mapping[str, float]], step: int) -> None:
        """The metrics of a run that has just ended."""
        for place, found in zip(_places(Path(path), seeds), metrics):
            self._write(place, {f"test/{name}": value for name, value in found.items()}, step, again=False)

    def _write(self, place: Path, found: Mapping[str, Any], step: int, *, again: bool = True) -> None:
        if place not in self._writers:
            # whatever an earlier process wrote of this step and later ones is about to be written again
            self._writers[place] = self._open(str(place), purge_step=step if again else None)
        for name, value in found.items():
            if isinstance(value, int | float):  # None is what was not finite
                self._writers[place].add_scalar(name.replace(" ", "_"), value, step)
        self._writers[place].flush()  # a kill may come at any moment


def _places(path: Path, seeds: Sequence[int]) -> list[Path]:
    return [path] if len(seeds) == 1 else [Folder(path).seed(seed).path for seed in seeds]


def _rates(engine: Engine, replica: int) -> dict[str, float]:
    found = {}
    for index, objective in enumerate(engine.objectives):
        update = torch.tensor((engine.count - 1) // objective.every, device=engine.device)
        rate = engine.rate(index, update, -(-engine.training.steps // objective.every)).reshape(-1)
        found["learning_rate/" + "+".join(objective.trains)] = float(rate[replica if len(rate) > 1 else 0])
    return found


def _densities(engine: Engine, replica: int) -> dict[str, float]:
    found = count(engine.task, engine.state.modules_of(replica), engine.state.mask_of(replica))
    return {"density": found.density, "density/prunable": found.prunable_density}


@contextmanager
def watching(kind: str | None) -> Iterator[Recorder | None]:
    """Who watches a run under that name; nobody where it is None."""
    if kind is None:
        yield None
        return
    if kind != "tensorboard":
        raise UserError(f"--log {kind}", "tensorboard")
    with Recorder() as recorder:
        yield recorder
