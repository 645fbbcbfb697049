"""Pieces of the vision studies: one network, one recipe, several densities and seeds; trained, measured and saved.

A piece leaves a folder for each replica (weights, mask, metrics) and is found again, so a study made of many pieces
may be cut off at any moment, run on several machines and be put together on one without a GPU. A training that was cut
off goes on where it was saved.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from fewer.attack.hardening.harden import harden
from fewer.core.engines.base import Engine, Training
from fewer.core.engines.cohort import Cohort
from fewer.core.engines.loop import Loop, fit, save_results
from fewer.core.engines.plain import Plain
from fewer.core.engines.state import fresh_modules
from fewer.core.errors import UserError
from fewer.core.files.run_folder import Folder
from fewer.core.machine.versions import versions
from fewer.core.task import Task
from fewer.pruning.pruning import Pruning, mask_for
from fewer.pruning.schedules.gradual import events_for
from fewer.studies.order import Log
from fewer.systems.vision.studies.changes import Alternating, Injected
from fewer.systems.vision.studies.measure import Row, Watch, measured, signs
from fewer.systems.vision.studies.place import Place
from fewer.systems.vision.studies.recipe import BUDGET, DENSE, Recipe, label, printed
from fewer.systems.vision.task.task import Settings, Vision

__all__ = ["engine_of", "read_modules", "run_piece", "saved_modules", "standard_network"]

SAVE_SECONDS = 20.0


def run_piece(piece: Recipe, place: Place) -> list[Row]:
    """Figures of every replica; those that are finished are only read, and in a place without images no others."""
    root = Folder(place.out / "pieces" / piece.name)
    if not place.source and not root.path.exists():
        return []
    root.path.mkdir(parents=True, exist_ok=True)
    if not (root.path / "config.json").exists():
        root.write_json("config.json", {**piece.config(), "versions": versions()})
    elif _completed(root.read_json("config.json")) != _plain(piece.config()):
        raise UserError(
            f"{root.path} holds another recipe", "the same piece or an empty folder", "choose another --out"
        )
    missing = [each for each in piece.replicas if not place.folder(piece, *each).finished]
    if missing and not place.source:
        place.log(f"{piece.name}: {len(missing)} of {len(piece.replicas)} replicas were not trained")
        missing = []
    alone = place.device == "cpu" and piece.together == 0
    size = 1 if alone else piece.together or len(missing)
    for begin in range(0, len(missing), max(size, 1)):
        _train(piece, missing[begin : begin + size], place)
    folders = [place.folder(piece, *each) for each in piece.replicas]
    return [folder.read_json("metrics.json") for folder in folders if folder.finished]


def _plain(config: Mapping[str, Any]) -> dict[str, Any]:
    """As JSON gives it back."""
    return dict(json.loads(json.dumps(config)))


def _completed(found: Mapping[str, Any]) -> dict[str, Any]:
    """A saved recipe; settings that came later stand at their defaults, as they did when it was trained."""
    default = _plain(Recipe("", "", "", 0).config())
    whole = {**default, **found, "optimizer": {**default["optimizer"], **found.get("optimizer", {})}}
    return {key: value for key, value in whole.items() if key != "versions"}


def _train(piece: Recipe, replicas: Sequence[tuple[Pruning, int]], place: Place) -> None:
    """One cohort, from fresh weights to saved metrics."""
    start = time.monotonic()
    task, hardened = place.images_of(piece), _task(piece, place)
    masks = list(_first_masks(piece, replicas, task))
    for (pruning, seed), mask in zip(replicas, masks):
        if isinstance(mask, str):  # the mask would leave a useless network: that is the result
            _finish(place.folder(piece, pruning, seed), {**_named(piece, pruning, seed), "refused": mask})
    able = [index for index, mask in enumerate(masks) if not isinstance(mask, str)]
    if not able:
        return
    engine = _engine(hardened, piece, [replicas[index][1] for index in able], place.device)
    for replica, index in enumerate(able):
        if masks[index] is not None:
            engine.state.mask_(replica, masks[index])  # type: ignore[arg-type]
    folder = place.unfinished(piece, replicas)
    watch = Watch(piece.steps, piece.points, task, folder, limit=min(place.limit or 1000, 1000))
    events = [*events_for([replicas[index][0] for index in able], piece.steps), watch]
    with folder.locked():
        folder.claim({**piece.config(), "device": place.device}, versions())
        fit(engine, folder, events=events, loop=_loop(piece, place.log))
        lines = folder.lines()
    for replica, index in enumerate(able):
        row = {
            **_named(piece, *replicas[index]), **measured(task, engine, replica, limit=place.limit),
            "losses": [[line["step"], _own(line["loss/net"], replica)] for line in lines if "loss/net" in line],
            "points": [line for line in lines if "loss/net" not in line] if replica == 0 else [],
            "cohort": len(able), "seconds": round(time.monotonic() - start, 1),  # of this call
        }  # fmt: skip
        row["signs"] = signs(row, task.classes)
        _keep(engine, replica, place.folder(piece, *replicas[index]), row, weights=piece.weights)
        place.log(
            f"{piece.name} {label(replicas[index][0])} seed {replicas[index][1]}: "
            f"clean {row['clean']:.2%}, PGD-40 {row['pgd40']:.2%}"
        )
    shutil.rmtree(folder.path, ignore_errors=True)


def engine_of(piece: Recipe, place: Place) -> Engine:
    """As it stands before the first step, with as many of its replicas as train together."""
    alone = place.device == "cpu" and piece.together == 0
    size = 1 if alone else piece.together or len(piece.replicas)
    return _engine(_task(piece, place), piece, [seed for _, seed in piece.replicas[:size]], place.device)


def _task(piece: Recipe, place: Place) -> Task[Any]:
    """What is trained: the images, hardened, with the piece's change."""
    task = place.images_of(piece)
    if piece.change == "inject":
        return Injected(task, standard_network(piece.network, place), BUDGET)
    hardened = harden(task, piece.hardening, total=piece.steps) if piece.hardening else task
    if piece.change == "alternate":
        return Alternating(task, hardened, -(-len(task.data("train")) // piece.batch))
    return hardened


def standard_network(network: str, place: Place) -> dict[str, nn.Module]:
    """The first of the networks that were trained without an adversary."""
    return saved_modules(printed(f"paper-standard-{network}"), DENSE, 0, place)


def _keep(engine: Engine, replica: int, folder: Folder, row: Row, *, weights: bool) -> None:
    folder.path.mkdir(parents=True, exist_ok=True)
    if weights:
        save_results(engine, replica, folder)
    _finish(folder, row)


def _engine(task: Task[Any], piece: Recipe, seeds: Sequence[int], device: str) -> Engine:
    training = Training(piece.steps, piece.batch, piece.optimizer, device)
    if device == "cpu" and len(seeds) == 1:
        return Plain(task, training, seeds[0])
    torch.backends.cudnn.benchmark = device != "cpu"  # the same shapes thousands of times
    return Cohort(task, training, seeds)


def _first_masks(
    piece: Recipe, replicas: Sequence[tuple[Pruning, int]], task: Vision
) -> Iterator[dict[str, dict[str, Tensor]] | str | None]:
    """Masks for those that are pruned before training, scored on inputs attacked with the whole budget."""
    scored: Task[Any] = task
    if piece.hardening:
        from fewer.attack.hardening.recipe import parse_harden

        scored = harden(task, dataclasses.replace(parse_harden(piece.hardening), ramp=0.0))
    for pruning, seed in replicas:
        if pruning.when == "gradual":
            yield None
            continue
        try:
            yield mask_for(scored, fresh_modules(task, seed), pruning, seed=seed)
        except UserError as error:
            yield str(error)


def _loop(piece: Recipe, log: Log) -> Loop:
    every = max(1, piece.steps // 50)

    def on_log(line: Row) -> None:
        losses = line["loss/net"] if isinstance(line["loss/net"], list) else [line["loss/net"]]
        shown = " ".join("nan" if loss is None else f"{loss:.3f}" for loss in losses)
        if line["step"] // every % 5 == 0:
            log(f"{piece.name} step {line['step']}: loss {shown}")

    return Loop(log_every=every, save_seconds=SAVE_SECONDS, on_log=on_log)


def _own(losses: Any, replica: int) -> float | None:
    found: float | None = losses[replica] if isinstance(losses, list) else losses
    return found


def _named(piece: Recipe, pruning: Pruning, seed: int) -> Row:
    return {
        "piece": piece.name, "network": piece.network, "hardening": piece.hardening, "steps": piece.steps,
        "batch": piece.batch, "method": pruning.method, "when": pruning.when, "density": 1 - pruning.sparsity,
        "seed": seed,
    }  # fmt: skip


def _finish(folder: Folder, row: Row) -> None:
    folder.path.mkdir(parents=True, exist_ok=True)
    folder.write_json("metrics.json", row)


def read_modules(folder: Folder, network: str, **settings: Any) -> dict[str, nn.Module]:
    """The network that a piece saved there."""
    net = fresh_modules(Vision(Settings(network=network, **settings)), 0)["net"]
    tensors = folder.read_tensors("weights.safetensors")
    net.load_state_dict({key.removeprefix("net/"): tensor for key, tensor in tensors.items()})
    return {"net": net}


def saved_modules(piece: Recipe, pruning: Pruning, seed: int, place: Place) -> dict[str, nn.Module]:
    """The finished network of one replica, on the place's device."""
    folder = place.folder(piece, pruning, seed)
    if not (folder.path / "weights.safetensors").exists():
        raise UserError(f"no weights in {folder.path}", "a finished network", f"make the piece {piece.name} first")
    read = read_modules(folder, piece.network, contrast=piece.contrast, classes=piece.classes)
    return {name: net.to(place.device) for name, net in read.items()}
