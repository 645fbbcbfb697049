"""Where a task's experience comes from: a file of the user's, or an expert of ours, kept in a cache once collected.

transitions("logs/hopper.hdf5", "hopper")
transitions("expert:hopper:100000:0")        expert:ENVIRONMENT[:TRANSITIONS[:SEED[:NOISE]]]
"""

from __future__ import annotations

import hashlib
import importlib.metadata
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fewer.core.errors import UserError
from fewer.core.files.cache import cache_folder
from fewer.core.settings import nearest
from fewer.systems.control.task.logs import d4rl, experts, files
from fewer.systems.control.task.logs.transitions import Transitions
from fewer.systems.control.task.worlds.environments import ENVIRONMENTS, Environment
from fewer.systems.control.task.worlds.environments import environment as find

__all__ = ["Expert", "transitions"]

_FORM = "expert:ENVIRONMENT[:TRANSITIONS[:SEED[:NOISE]]]"


@dataclass(frozen=True)
class Expert:
    """How much of whose experience."""

    environment: str
    transitions: int = 100_000
    seed: int = 0
    noise: float | None = None  # as much as the expert bears

    @classmethod
    def parse(cls, text: str) -> Expert:
        """From `expert:hopper:100000:0:0.1`, later parts as by default where left out."""
        name, *rest = text.removeprefix("expert:").split(":")
        if name not in ENVIRONMENTS:
            raise UserError(
                f"data {text!r}", f"{_FORM} with one of {', '.join(ENVIRONMENTS)}", nearest(name, list(ENVIRONMENTS))
            )
        kinds = (("transitions", int), ("seed", int), ("noise", float))
        try:
            return cls(name, **{key: kind(word) for (key, kind), word in zip(kinds, rest, strict=len(rest) > 3)})
        except ValueError:
            raise UserError(f"data {text!r}", _FORM, "expert:hopper:100000:0") from None

    def deviation(self) -> float:
        """Of the noise, before actions are squashed."""
        return experts.NOISE[self.environment] if self.noise is None else self.noise

    def file(self) -> Path:
        """Its place in the cache; another expert or another simulator is another file."""
        made_by = hashlib.sha256(importlib.import_module("fewer.zoo").path(f"control-{self.environment}").read_bytes())
        for part in ("mujoco", "gymnasium"):
            with suppress(importlib.metadata.PackageNotFoundError):
                made_by.update(importlib.metadata.version(part).encode())
        words = f"{self.environment}-{self.transitions}-seed{self.seed}-noise{self.deviation():g}"
        return cache_folder() / "control" / f"{words}-{made_by.hexdigest()[:8]}.hdf5"


def transitions(source: str | Path, environment: str | Environment | None = None) -> Transitions:
    """Checked experience from a path or from an expert; if an environment is named, it must fit."""
    world = find(environment) if isinstance(environment, str) else environment
    if not str(source).startswith("expert:"):
        return files.read(source, world)
    expert = Expert.parse(str(source))
    if world is not None and world.name != expert.environment:
        raise UserError(f"data {source!r} for {world.name}", f"an expert of {world.name}", f"expert:{world.name}")
    return _cached(expert)


def _cached(expert: Expert) -> Transitions:
    place, world = expert.file(), ENVIRONMENTS[expert.environment]
    if place.is_file():
        with suppress(UserError):  # a damaged file is collected anew
            return files.read(place, world)
    steps = experts.collect(world, expert.transitions, seed=expert.seed, noise=expert.deviation())
    with suppress(UserError, OSError):  # a cache that cannot be written costs time, not the run
        d4rl.write(place, steps, {"environment": world.gymnasium, "seed": expert.seed, "noise": expert.deviation()})
    return steps
