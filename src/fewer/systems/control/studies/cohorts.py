"""Cohorts of the control studies: recipes x seeds of BCQ on one environment, trained in lock-step and judged together.

One training gives both algorithms: BCQ's autoencoder learns by itself, and its decoder is the paper's BC. Each agent
leaves a JSON file, so a study made of many cohorts may be cut off at any moment, run on several machines and be put
together on one without a GPU.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from fewer.core.engines.base import Engine, Training
from fewer.core.engines.cohort import Cohort
from fewer.core.engines.evaluate import evaluate, evaluate_cohort, predictor
from fewer.core.engines.loop import Event, Loop, fit
from fewer.core.engines.optimizer import Optimizer
from fewer.core.engines.plain import Plain
from fewer.core.errors import UserError
from fewer.core.files import checkpoint
from fewer.core.files.atomic import write_atomically
from fewer.core.files.run_folder import Folder
from fewer.core.files.sealed import sealed
from fewer.pruning.pruning import Pruning, layer_keeps, prune_
from fewer.pruning.schedules.gradual import events_for
from fewer.sparse.engine import sparse_engine, worthwhile
from fewer.studies.order import Log, Order
from fewer.systems.control.task.settings import Settings
from fewer.systems.control.task.task import Control

__all__ = ["ENVIRONMENTS", "RECIPES", "Place", "Row", "read_rows", "train_agents", "where"]

Row = dict[str, Any]
Recipe = Callable[[float], Pruning | None]

ENVIRONMENTS = ("hopper", "halfcheetah", "walker2d")

# What may remove the weights. Beside the papers' criteria: what was tried to close their gap to the dense network.
RECIPES: dict[str, Recipe] = {
    "dense": lambda sparsity: None,
    "snip": lambda sparsity: Pruning("snip", sparsity),
    "grasp": lambda sparsity: Pruning("grasp", sparsity),
    "random": lambda sparsity: Pruning("random", sparsity, "layer"),
    "erk": lambda sparsity: Pruning("random", sparsity, "erk"),
    "magnitude": lambda sparsity: Pruning("magnitude", sparsity),
    "synflow": lambda sparsity: Pruning("synflow", sparsity),
    "set": lambda sparsity: Pruning("random", sparsity, "erk", when="set", end=0.75),
    "snip-batches": lambda sparsity: Pruning("snip", sparsity, batches=50),
    "snip-rounds": lambda sparsity: Pruning("snip", sparsity, batches=10, iterations=20),
    "grasp-batches": lambda sparsity: Pruning("grasp", sparsity, batches=50),
    "snip-erk": lambda sparsity: Pruning("snip", sparsity, "erk", batches=50),
    "rigl": lambda sparsity: Pruning("random", sparsity, "erk", when="rigl", end=0.75),
    "snip-rigl": lambda sparsity: Pruning("snip", sparsity, batches=50, when="rigl", end=0.75),
    "gradual": lambda sparsity: Pruning("magnitude", sparsity, when="gradual", begin=0.05, end=0.5),
}


class Guarded:
    """A change of one replica's mask that, when refused, ends this replica and not the cohort."""

    def __init__(self, event: Event, replica: int, refused: dict[int, str]) -> None:
        self.event, self.replica, self.refused = event, replica, refused

    def next(self, step: int) -> int | None:
        return None if self.replica in self.refused else self.event.next(step)

    def act(self, engine: Engine) -> None:
        try:
            self.event.act(engine)
        except UserError as error:
            self.refused[self.replica] = str(error)


@dataclass(frozen=True)
class Place:
    """Where agents are trained and kept, and how long."""

    out: Path
    steps: int
    settings: Settings
    device: str = "cpu"
    optimizer: Optimizer = dataclasses.field(default_factory=Optimizer)
    log: Log = print
    compile: bool = False
    alone: bool = False  # one agent after the other, on its kept weights where that is faster: the way of a CPU

    def path(self, environment: str, recipe: str, sparsity: float, seed: int) -> Path:
        """One agent's file."""
        name = recipe if recipe == "dense" else f"{recipe}-{100 * sparsity:g}"
        return self.out / "agents" / environment / f"{name}-seed{seed}.json"


def where(order: Order) -> Place:
    """Quick: small networks and short episodes on a CPU. Full: the paper's networks, 100,000 updates, 20 episodes.

    The learning rate falls to zero over the second half: last weights at a constant rate scatter.
    """
    scale, out, log = order.scale, order.out, order.log
    if scale == "quick":
        small = Settings(
            policy="both", transitions=4000, hidden=(128, 96), autoencoder_hidden=(128, 128), episodes=4, horizon=150
        )
        return Place(out, 400, small, log=log)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    decaying = Optimizer(decay_from=0.5)
    return Place(out, 100_000, Settings(policy="both"), device, decaying, log, alone=device == "cpu")


def train_agents(
    place: Place, environment: str, wanted: Sequence[tuple[str, float]], seeds: Sequence[int], *, save: bool = False
) -> list[Row]:
    """Every (recipe, sparsity) with every seed, as one cohort or alone; agents that are finished are only read."""
    agents = [(recipe, 0.0 if recipe == "dense" else sparsity, seed) for recipe, sparsity in wanted for seed in seeds]
    missing = [agent for agent in dict.fromkeys(agents) if not place.path(environment, *agent).exists()]
    for group in [[agent] for agent in missing] if place.alone else filter(None, [missing]):
        _train(place, environment, group, save=save)
    return [_read(place, place.path(environment, *agent)) for agent in dict.fromkeys(agents)]


def read_rows(place: Place) -> list[Row]:
    """Every finished agent."""
    return [_read(place, path) for path in sorted(place.out.glob("agents/*/*.json"))]


def _read(place: Place, path: Path) -> Row:
    """A finished agent; one that was judged at another scale is no agent of this study."""
    row: Row = json.loads(path.read_text())
    if row["episodes"] != place.settings.episodes:
        raise UserError(
            f"{path}, judged by {row['episodes']} episodes",
            f"agents of one scale, judged by {place.settings.episodes}",
            "choose another --out",
        )
    return row


def _train(place: Place, environment: str, agents: Sequence[tuple[str, float, int]], *, save: bool) -> None:
    begin = time.monotonic()
    task = Control(dataclasses.replace(place.settings, environment=environment))
    prunings = [RECIPES[recipe](sparsity) for recipe, sparsity, _ in agents]
    training = Training(place.steps, 100, place.optimizer, place.device, compile=place.compile)
    seeds = [seed for *_, seed in agents]
    engine: Engine = Plain(task, training, seeds[0]) if place.alone else Cohort(task, training, seeds)
    folder = Folder(place.out / "cohorts" / _name(environment, agents))
    folder.path.mkdir(parents=True, exist_ok=True)
    place.path(environment, *agents[0]).parent.mkdir(parents=True, exist_ok=True)
    refused = _masked_(engine, prunings, folder)
    if refused:  # nothing is trained for them; the others are a cohort of their own
        for replica, why in refused.items():
            _write(place, _row(place, environment, agents[replica]) | {"refused": why})
        others = [agent for replica, agent in enumerate(agents) if replica not in refused]
        return _train(place, environment, others, save=save) if others else None
    if worthwhile(engine):
        engine = sparse_engine(engine)
    engine.begin_()
    place.log(f"{environment}: {len(agents)} agents, masks after {time.monotonic() - begin:.0f} s")
    events = [
        Guarded(event, replica, refused)
        for replica, pruning in enumerate(prunings)
        for event in events_for([None] * replica + [pruning], place.steps)
    ]
    trained, before = time.monotonic(), engine.count
    fit(engine, folder, events=events, loop=_loop(place, environment))
    rate = len(agents) * (place.steps - before) / (time.monotonic() - trained)
    place.log(f"{environment}: {rate:.0f} updates/s in all; judging")
    figures = _judged(task, engine)
    for replica, agent in enumerate(agents):
        row = _row(place, environment, agent) | {"cohort": len(agents), "updates_per_second": round(rate)}
        if replica in refused:
            _write(place, row | {"refused": refused[replica]})
            continue
        if save and agent[2] == 0:
            _save_decoder(engine, replica, place.path(environment, *agent).with_suffix(".safetensors"))
        _write(place, {**row, **figures[replica], "kept": _kept(engine, replica)})
    checkpoint.forget(folder)
    return None


def _judged(task: Control, engine: Engine) -> list[dict[str, float]]:
    if isinstance(engine, Cohort):
        return evaluate_cohort(task, engine.state)
    return [evaluate(task, predictor(task, engine.state.modules_of(0), engine.state.seeds[0]))]


def _row(place: Place, environment: str, agent: tuple[str, float, int]) -> Row:
    """What is known of an agent before it is trained."""
    recipe, sparsity, seed = agent
    return {
        "environment": environment, "recipe": recipe, "sparsity": sparsity, "seed": seed, "steps": place.steps,
        "episodes": place.settings.episodes,
    }  # fmt: skip


def _write(place: Place, row: Row) -> None:
    agent = row["environment"], row["recipe"], row["sparsity"], row["seed"]
    write_atomically(place.path(*agent), (json.dumps(row, indent=1) + "\n").encode())
    found = "refused" if "refused" in row else f"BCQ {row.get('score', 0):.1f}, BC {row.get('bc_score', 0):.1f}"
    place.log("{} {} {:g} seed {}: {}".format(*agent, found))


def _name(environment: str, agents: Sequence[tuple[str, float, int]]) -> str:
    """Of a cohort: equal agents, equal names."""
    return f"{environment}-{hashlib.blake2b(json.dumps(agents).encode(), digest_size=6).hexdigest()}"


def _masked_(engine: Engine, prunings: Sequence[Pruning | None], folder: Folder) -> dict[int, str]:
    """Prune every replica before its first step, unless a saved state goes on; who was refused, and why."""
    if checkpoint.restore_(engine, folder):
        return {}  # a cohort with refused masks was never begun
    refused: dict[int, str] = {}
    for replica, pruning in enumerate(prunings):
        if pruning is not None and pruning.when != "gradual":
            try:
                prune_(engine, pruning, replica)
            except UserError as error:  # the mask would leave a useless network: that is the result
                refused[replica] = str(error)
    return refused


def _loop(place: Place, environment: str) -> Loop:
    def on_log(line: Mapping[str, Any]) -> None:
        losses = line["loss/encoder+decoder"]
        shown = losses if isinstance(losses, list) else [losses]
        place.log(f"{environment} step {line['step']}: autoencoder {' '.join(f'{x or 0:.3f}' for x in shown[:8])}")

    return Loop(log_every=max(1, place.steps // 20), save_seconds=100.0, on_log=on_log)


def _kept(engine: Engine, replica: int) -> dict[str, tuple[int, int]]:
    modules = {name: module for name, module in engine.state.modules_of(replica).items() if "target" not in name}
    return layer_keeps(modules, engine.state.mask_of(replica))


def _save_decoder(engine: Engine, replica: int, path: Path) -> None:
    """What acts as BC: the decoder's weights, for a pack."""
    write_atomically(path, sealed(engine.state.weights_of(replica)["decoder"]))
