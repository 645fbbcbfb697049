"""How light a robust network can be: robust accuracy against kept weights, for every recipe.

Gradual magnitude pruning during hardening against SNIP and GraSP on attacked batches before it, learned scores
(HYDRA) and features removed by their usefulness. The light networks face the whole attack suite.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from fewer.attack.audit import Audit, robust
from fewer.core.nets import NetworkSet
from fewer.prune.pruning import Pruning
from fewer.studies.vision_measure import Row
from fewer.studies.vision_pieces import DENSE, Piece, Place, cured, gradual, read_modules

__all__ = ["SMALL", "audit_saved", "rival_pieces", "small_pieces"]

SMALL = "small-cnn"
DENSITIES = {"small-1": 0.01, "small-3": 0.03, "small-10": 0.099, "small-dense": 1.0}  # 3,116, 9,348 and 30,848 kept
SUITE = {"quick": "suite:0.3,queries=200", "full": "suite:0.3"}
PUBLISHED = (("TRADES (Zhang 2019), 312,202 parameters", 92.81), ("Madry 2018, 3,274,634 parameters", 88.5))


def small_pieces(scale: str) -> dict[str, Piece]:
    """The small network of the robustness literature, one piece a density; they share a folder."""
    if scale == "quick":
        # convolutions this wide take minutes a hundred steps on two cores: the family's scale 2 stands in
        base = cured("light", "cnn2", steps=400, batch=128, seeds=(0,))
    else:
        base = cured("small", SMALL, together=1)
    return {
        name: dataclasses.replace(base, prunings=(DENSE if density == 1 else gradual(density, base.steps),))
        for name, density in DENSITIES.items()
    }


def rival_pieces(scale: str) -> dict[str, Piece]:
    """Pruning before training, scored on attacked batches, at the densities of the gradual rows."""
    found = {}
    for method in ("snip", "grasp"):
        densities = (0.1, 0.03, 0.01) if scale == "full" else (0.03,)
        prunings = tuple(Pruning(method, 1 - density, "global", samples=200) for density in densities)
        base = cured(f"start-{method}", "cnn3") if scale == "full" else small_pieces("quick")["small-3"]
        found[f"start-{method}"] = dataclasses.replace(base, name=f"start-{method}", prunings=prunings)
    return found


def audit_saved(piece: Piece, place: Place, attacks: str = SUITE["full"]) -> list[Row]:
    """The worst case per image over the whole suite, for every saved replica; written beside its metrics."""
    found = []
    task = place.task(piece.network) if place.source else None
    for pruning, seed in piece.replicas:
        folder = place.folder(piece, pruning, seed)
        if not (folder.path / "suite.json").exists() and task is not None:
            modules = {name: net.to(place.device) for name, net in read_modules(folder, piece.network).items()}
            report = robust(task, NetworkSet(modules, training=False), attacks, Audit(limit=place.limit))
            place.say(f"{folder.path.name}\n{report.text()}")
            lines = [dataclasses.asdict(line) for line in report.lines]
            folder.write_json("suite.json", {"robust": report.robust, "clean": report.clean, "lines": lines})
        found.append(_read(folder.path / "suite.json"))
    return found


def _read(path: Any) -> Row:
    return dict(json.loads(path.read_text()))
