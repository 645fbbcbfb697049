"""What a served model of a cell-free network stands on: its map, its access points, and how its answers are written."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from fewer.core.errors import UserError
from fewer.core.settings import from_text
from fewer.serve.models import Model
from fewer.systems.cellfree.carried import opened
from fewer.systems.cellfree.task.settings import Settings

__all__ = ["Facts", "access_points_of", "world_of", "written_numbers"]

_ENDINGS = 1 << 14  # of answers that are kept, two megabytes


@dataclass(frozen=True)
class Facts:
    """What every request of a model looks up, as plain numbers: numpy is slow one number at a time."""

    count: int  # access points
    measured: int
    candidates: list[list[int]] | None  # by master
    names: tuple[str, ...]  # of the access points, where they have any
    shares: str  # how a row of probabilities is written
    endings: dict[tuple[int, int], str]  # what follows them, by master and the bits of who is chosen

    @classmethod
    def of(cls, model: Model, world: Any) -> Facts:
        """Of a model and its map, or the word on why there is none."""
        known = None if isinstance(world, str) else world.clusters.candidates.tolist()
        names = () if isinstance(world, str) else world.deployment.names
        slots = len(model.predict(model.blank(1))[0])
        count = access_points_of(model) if known is None else len(known)
        return cls(count, model.inputs[1].shape[0], known, names, ",".join(["%.6f"] * slots), {})

    def ending(self, candidates: list[list[int]], master: int, chosen: int) -> str:
        """The candidates and those of them whose bits are set, and the end of the phone's object."""
        found = self.endings.get((master, chosen))
        if found is None:
            if len(self.endings) >= _ENDINGS:
                self.endings.clear()
            near = candidates[master]
            serving = [c for slot, c in enumerate(near) if slot == 0 or chosen >> slot & 1]
            numbers = f'"candidates":{written_numbers(near)},"access_points":{written_numbers(serving)}'
            found = f"],{numbers}{self.called(serving)}}}"
            self.endings[(master, chosen)] = found
        return found

    def called(self, chosen: list[int]) -> str:
        """The names of the chosen as the end of an object, where there are names."""
        return f',"names":{json.dumps([self.names[c] for c in chosen])}' if self.names else ""


def written_numbers(numbers: list[int]) -> str:
    """A list as JSON has it."""
    return f"[{','.join(map(str, numbers))}]"


def world_of(model: Model) -> Any:
    """The deployment that the pack's settings describe, or a word on why there is none."""
    try:
        from fewer.systems.cellfree.task.survey import World

        settings = from_text(Settings, [str(word) for word in model.pack.settings.get("settings", [])])
        if carried := model.pack.settings.get("carried"):
            return opened(carried, settings)
        return World.make(settings)
    except ModuleNotFoundError as error:
        return f"{error.name} is not installed; pip install 'fewer[cellfree]'"
    except UserError as error:
        return str(error)


def access_points_of(model: Model) -> int:
    """Access points of the network: rows of the table that is looked up by master."""
    tensors = model.pack.tensors()
    for network in model.pack.networks.values():
        for node in network.program.nodes:
            if node.op == "index_select" and node.inputs[1] == "master" and node.inputs[0] in tensors:
                return int(tensors[node.inputs[0]].shape[node.attributes["axis"]])
    return 1 << 31
