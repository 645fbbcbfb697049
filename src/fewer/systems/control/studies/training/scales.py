"""What a scale means for the control studies: which agents, how long, from which logs, how they are judged.

Quick: small networks and short episodes on a CPU. Full: the paper's networks, 100,000 updates, our own experts, the
improved reading (normalised observations, twin critics of their own, a learning rate that falls over the second half,
since last weights at a constant rate scatter). Paper: the preset `paper`, a million updates, D4RL's files by `--data`.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from fewer.core.engines.optimizer import Optimizer
from fewer.core.errors import UserError
from fewer.core.settings import from_text
from fewer.studies.order import Log, Order
from fewer.systems.control.presets import PRESETS
from fewer.systems.control.studies.training.logs import made, name_of
from fewer.systems.control.studies.training.recipes import Recipe
from fewer.systems.control.task.settings import Settings
from fewer.systems.control.task.task import Control

__all__ = [
    "ENVIRONMENTS",
    "HEADLINE",
    "SEEDS",
    "Curves",
    "Place",
    "about",
    "environments",
    "file_of",
    "wanted",
    "where",
]

ENVIRONMENTS = ("hopper", "halfcheetah", "walker2d")
SEEDS = {"quick": (0, 1), "full": (0, 1, 2, 3, 4), "paper": (0, 1, 2, 3, 4)}
SPARSITIES = {  # the paper: "from 10% to 95%"
    "quick": (0.5, 0.8, 0.9),
    "full": (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99),
    "paper": (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95),
}
HEADLINE = {"quick": 0.9, "full": 0.95, "paper": 0.95}  # small networks do not stand the paper's
CRITERIA = {"control/fig1": ("snip",), "control/fig2": ("grasp",)}
TRIED = ("snip-batches", "snip-rounds", "grasp-batches", "grasp-rounds")  # "(i) batch size, (ii) pruning iterations"
OTHERS = ("random", "erk", "magnitude", "synflow", "set", "rigl", "gradual", "snip-erk", "snip-rigl")
NOISE = 0.1  # on the experts' actions before they are squashed: what all three experts bear


@dataclass(frozen=True)
class Curves:
    """Scores on the way: every so many updates, by so many episodes that the final score does not meet."""

    every: int
    episodes: int
    recipes: tuple[str, ...]
    sparsities: tuple[float, ...]

    def of(self, recipe: str, sparsity: float) -> bool:
        """Whether such an agent is scored on the way."""
        return recipe in self.recipes and sparsity in self.sparsities


@dataclass(frozen=True)
class Place:
    """Where agents are trained and kept, how, and how long."""

    out: Path
    steps: int
    settings: Settings
    device: str = "cpu"
    optimizer: Optimizer = dataclasses.field(default_factory=Optimizer)
    log: Log = print
    compile: bool = False
    alone: bool = False  # one agent after the other, on its kept weights where that is faster: the way of a CPU
    curves: Curves | None = None
    folder: str = ""  # with the user's logs; empty: our own experts'
    kind: str = "expert"
    unchecked: bool = False  # masks that cut an input off are trained, as the paper would

    batch = 100

    def path(self, environment: str, recipe: str, sparsity: float, seed: int) -> Path:
        """One agent's file."""
        name = recipe if recipe == "dense" else f"{recipe}-{100 * sparsity:g}"
        return self.out / "agents" / environment / f"{name}-seed{seed}.json"

    def source(self, environment: str) -> str:
        """The logs: a file, or so much of our own expert."""
        if self.folder:
            return str(file_of(self.folder, environment, self.kind))
        return made(self.out / "logs", environment, self.kind, count=self.settings.transitions, noise=NOISE)

    def data(self, environment: str) -> str:
        """The same as it is said beside the numbers, without folders."""
        if self.folder:
            return file_of(self.folder, environment, self.kind).name
        return name_of(environment, self.kind, count=self.settings.transitions, noise=NOISE)

    def task(self, environment: str) -> Control:
        """What the agents of an environment learn."""
        return Control(dataclasses.replace(self.settings, environment=environment, data=self.source(environment)))


def file_of(folder: str, environment: str, kind: str) -> Path:
    """`hopper-expert.hdf5`, `hopper_expert-v2.hdf5`: the one file in a folder that is named so."""
    if not Path(folder).is_dir():
        raise UserError(f"--data {folder}", "a folder of HDF5 files", f"such as {environment}_{kind}-v2.hdf5")
    words = [f"{environment}{dash}{kind}".replace("_", "-") for dash in "-_"]
    names = {path: path.stem.lower().replace("_", "-") for path in sorted(Path(folder).glob("*.hdf5"))}
    found = [
        path for path, name in names.items() if any(name == word or name.startswith(f"{word}-v") for word in words)
    ]
    if len(found) != 1:
        given = f"{len(found)} files for {environment} and {kind} in {folder}"
        raise UserError(given, "one", f"name it {environment}_{kind}-v2.hdf5, as D4RL does")
    return found[0]


def where(order: Order) -> Place:
    """The place of an order's agents."""
    out, log, folder = order.out, order.log, order.data
    criteria, headline = ("dense", "snip", "grasp"), HEADLINE[order.scale]
    if order.scale == "quick":
        small = Settings(
            policy="both", transitions=4000, hidden=(128, 96), autoencoder_hidden=(128, 128), episodes=4, horizon=150
        )
        curves = Curves(100, 2, criteria, (0.0, headline))
        return Place(out, 400, small, log=log, curves=curves, folder=folder)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    cuda: dict[str, Any] = {"device": device, "compile": device == "cuda", "alone": device == "cpu"}
    if order.scale == "full":
        curves = Curves(5000, 5, criteria, (0.0, headline))
        decaying = Optimizer(decay_from=0.5)
        return Place(
            out, 100_000, Settings(policy="both"), optimizer=decaying, log=log, curves=curves, folder=folder, **cuda
        )
    literal = PRESETS["paper"]
    kind, *pairs = literal["optimizer"].split(",")
    settings = Settings(**literal["settings"], policy="both", sampled=True)  # BC is PRESETS["paper-bc"], at its side
    curves = Curves(5000, settings.episodes, criteria, (0.0, *SPARSITIES["paper"]))
    return Place(
        out, literal["steps"], settings, optimizer=from_text(Optimizer, [f"kind={kind}", *pairs]), log=log,
        curves=curves, folder=folder, unchecked=True, **cuda,
    )  # fmt: skip


def wanted(study: str, scale: str) -> list[Recipe]:
    """Recipes and sparsities that a study shows."""
    if study in CRITERIA:
        return [("dense", 0.0)] + [(name, sparsity) for name in CRITERIA[study] for sparsity in SPARSITIES[scale]]
    return [("dense", 0.0)] + [(name, HEADLINE[scale]) for name in ("snip", "grasp", *TRIED, *OTHERS)]


def environments(scale: str) -> tuple[str, ...]:
    """Those of a scale."""
    return ENVIRONMENTS[:1] if scale == "quick" else ENVIRONMENTS


def about(order: Order) -> dict[str, Any]:
    """Every setting that the order stands for."""
    place = where(order)
    task = dataclasses.asdict(place.settings)
    for name in ("environment", "data"):
        del task[name]
    found = {
        "environments": environments(order.scale),
        "data": f"{place.kind} files" if place.folder else [place.data(one) for one in environments(order.scale)],
        "recipes": [f"{name}:{sparsity:g}" for name, sparsity in wanted(order.study, order.scale)],
        "seeds": SEEDS[order.scale],
        "updates": place.steps,
        "batch": place.batch,
        "optimizer": dataclasses.asdict(place.optimizer),
        "task": task,
        "curves": dataclasses.asdict(place.curves) if place.curves else None,
        "unchecked masks": place.unchecked,
    }
    return json.loads(json.dumps(found))  # type: ignore[no-any-return]  # lists, as a file holds them
