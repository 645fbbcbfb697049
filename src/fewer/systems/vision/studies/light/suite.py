"""The whole attack suite on the networks that a piece saved.

A suite takes minutes, and a GPU is often lent for as many: each attack that is over is kept, and the next call goes on
from there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import torch

from fewer.attack.audit import Audit, Line, Report, robust
from fewer.attack.threat import Threat, parse
from fewer.core.engines.nets import NetworkSet
from fewer.core.files.run_folder import Folder
from fewer.systems.vision.studies.measure import Row
from fewer.systems.vision.studies.pieces import saved_modules
from fewer.systems.vision.studies.place import Place
from fewer.systems.vision.studies.recipe import Recipe, label
from fewer.systems.vision.task.task import Vision

__all__ = ["PART", "SUITE", "audit_saved", "audited"]

SUITE = {"quick": "suite:0.3,queries=200", "full": "suite:0.3", "paper": "suite:0.3"}
PART = "suite-part.json"  # until the last attack is over


def audit_saved(piece: Recipe, place: Place, attacks: str, *, limit: int | None = None) -> list[Row]:
    """The worst case per image over the whole suite, for every saved replica; written beside its metrics."""
    found = []
    task = place.images_of(piece) if place.source else None
    for pruning, seed in piece.replicas:
        folder = place.folder(piece, pruning, seed)
        there = (folder.path / "suite.json").exists()
        if not there and task is not None and folder.finished:
            nets = NetworkSet(saved_modules(piece, pruning, seed, place), training=False)
            report = audited(task, nets, folder, attacks, Audit(limit=limit or place.limit))
            place.log(f"{folder.path.name}\n{report.text()}")
            there = True
        if there:
            found.append({"seed": seed, "pruning": label(pruning), **folder.read_json("suite.json")})
    return found


def audited(
    task: Vision, nets: NetworkSet, folder: Folder, wanted: str | Sequence[Threat], audit: Audit, *, attacks: int = 0
) -> Report:
    """The report of these attacks, kept in the folder after each and at the end; of the first few, if so many."""
    every = parse(wanted) if isinstance(wanted, str) else tuple(wanted)
    begun = _begun(folder)
    now = every[: max(attacks, len(begun.lines) if begun else 0)] if attacks else every

    def keep(part: Report) -> None:
        survived = "".join(map(str, part.survived.int().tolist()))
        folder.write_json(PART, {**_record(part), "layout": part.layout, "survived": survived})

    report = robust(task, nets, now, audit, done=begun, after_each=keep)
    if len(now) < len(every):
        return report
    folder.write_json("suite.json", _record(report))
    folder.remove(PART)
    return report


def _record(report: Report) -> Row:
    lines = [dataclasses.asdict(line) for line in report.lines]
    return {"robust": report.robust, "clean": report.clean, "images": report.images, "lines": lines}


def _begun(folder: Folder) -> Report | None:
    if not (folder.path / PART).exists():
        return None
    found = folder.read_json(PART)
    survived = torch.tensor([digit == "1" for digit in found["survived"]])
    lines = tuple(Line(**line) for line in found["lines"])
    return Report(found["images"], found["clean"], lines, survived, found["layout"])
