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
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fewer.core.engines.base import Engine, Training
from fewer.core.engines.cohort import Cohort
from fewer.core.engines.loop import Event, Loop, fit
from fewer.core.engines.plain import Plain
from fewer.core.errors import UserError
from fewer.core.files import checkpoint
from fewer.core.files.atomic import write_atomically
from fewer.core.files.run_folder import Folder
from fewer.core.files.sealed import sealed
from fewer.pruning.pruning import Pruning, layer_keeps, prune_
from fewer.pruning.schedules.gradual import events_for
from fewer.sparse.engine import sparse_engine, worthwhile
from fewer.studies.study import hardware, in_words
from fewer.systems.control.studies.training.curves import Scored, judged
from fewer.systems.control.studies.training.recipes import RECIPES, Recipe
from fewer.systems.control.studies.training.scales import Place

__all__ = ["Row", "pruning_of", "read_rows", "train_agents", "training_of"]

Row = dict[str, Any]
Agent = tuple[str, float, int]  # recipe, sparsity, seed


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


def train_agents(
    place: Place, environment: str, wanted: Sequence[Recipe], seeds: Sequence[int], *, save: bool = False
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


def training_of(place: Place) -> Training:
    """How every agent is trained."""
    return Training(place.steps, place.batch, place.optimizer, place.device, compile=place.compile)


def pruning_of(place: Place, recipe: Recipe) -> Pruning | None:
    """What removes an agent's weights."""
    found = RECIPES[recipe[0]](recipe[1])
    return dataclasses.replace(found, unchecked=True) if found and place.unchecked else found


def _read(place: Place, path: Path) -> Row:
    """A finished agent; one of another scale or of other logs is no agent of this study."""
    row: Row = json.loads(path.read_text())
    if row["episodes"] != place.settings.episodes:
        raise UserError(
            f"{path}, judged by {row['episodes']} episodes",
            f"agents of one scale, judged by {place.settings.episodes}",
            "choose another --out",
        )
    if "data" in row and row["data"] != (own := place.data(row["environment"])):
        raise UserError(f"{path}, which learnt from {row['data']}", f"agents that learnt from {own}", "use its --data")
    return row


def _train(place: Place, environment: str, agents: Sequence[Agent], *, save: bool) -> None:
    begin, seeds = time.monotonic(), [seed for *_, seed in agents]
    task, training = place.task(environment), training_of(place)
    prunings = [pruning_of(place, (recipe, sparsity)) for recipe, sparsity, _ in agents]
    engine: Engine = Plain(task, training, seeds[0]) if place.alone else Cohort(task, training, seeds)
    folder = Folder(place.out / "cohorts" / _name(place, environment, agents))
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
    events: list[Event] = [
        Guarded(event, replica, refused)
        for replica, pruning in enumerate(prunings)
        for event in events_for([None] * replica + [pruning], place.steps)
    ]
    scored = _scored(place, task, agents, folder)
    trained, before = time.monotonic(), engine.count
    fit(engine, folder, events=[*events, *scored], loop=_loop(place, environment))
    rate = len(agents) * (place.steps - before) / (time.monotonic() - trained)
    place.log(f"{environment}: {rate:.0f} updates/s in all, looks on the way included; judging")
    for one in scored:
        one.act(engine)
    figures = judged(task, engine, range(len(agents)))
    for replica, agent in enumerate(agents):
        row = _row(place, environment, agent) | {"cohort": len(agents), "updates_per_second": round(rate)}
        if replica in refused:
            _write(place, row | {"refused": refused[replica]})
            continue
        if save and agent[2] == 0:
            _save_decoder(engine, replica, place.path(environment, *agent).with_suffix(".safetensors"))
        curve = {key: value for one in scored for key, value in one.row(replica).items()}
        _write(place, {**row, **figures[replica], "kept": _kept(engine, replica), **curve})
    checkpoint.forget(folder)
    return None


def _scored(place: Place, task: Any, agents: Sequence[Agent], folder: Folder) -> list[Scored]:
    """What looks at the agents on the way: one, or none where no agent is to be looked at."""
    if place.curves is None:
        return []
    chosen = [number for number, (recipe, sparsity, _) in enumerate(agents) if place.curves.of(recipe, sparsity)]
    return [Scored(task, place.curves, chosen, folder.path)] if chosen else []


def _row(place: Place, environment: str, agent: Agent) -> Row:
    """What is known of an agent before it is trained."""
    recipe, sparsity, seed = agent
    return {
        "environment": environment, "recipe": recipe, "sparsity": sparsity, "seed": seed, "steps": place.steps,
        "episodes": place.settings.episodes, "data": place.data(environment),
        "hardware": _hardware(place),
    }  # fmt: skip


def _hardware(place: Place) -> str:
    found = hardware()
    if place.device == "cpu":
        found.pop("gpu", None)
    return in_words(found)


def _write(place: Place, row: Row) -> None:
    agent = row["environment"], row["recipe"], row["sparsity"], row["seed"]
    write_atomically(place.path(*agent), (json.dumps(row, indent=1) + "\n").encode())
    found = "refused" if "refused" in row else f"BCQ {row.get('score', 0):.1f}, BC {row.get('bc_score', 0):.1f}"
    place.log("{} {} {:g} seed {}: {}".format(*agent, found))


def _name(place: Place, environment: str, agents: Sequence[Agent]) -> str:
    """Of a cohort: the same training of the same agents has the same name."""
    training = dataclasses.asdict(place.settings), dataclasses.asdict(place.optimizer), place.steps
    told = json.dumps([agents, training, place.data(environment)])
    return f"{environment}-{hashlib.blake2b(told.encode(), digest_size=6).hexdigest()}"


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

    return Loop(log_every=max(1, place.steps // 20), save_seconds=60.0, on_log=on_log)


def _kept(engine: Engine, replica: int) -> dict[str, tuple[int, int]]:
    modules = {name: module for name, module in engine.state.modules_of(replica).items() if "target" not in name}
    return layer_keeps(modules, engine.state.mask_of(replica))


def _save_decoder(engine: Engine, replica: int, path: Path) -> None:
    """What acts as BC: the decoder's weights, for a pack."""
    write_atomically(path, sealed(engine.state.weights_of(replica)["decoder"]))
