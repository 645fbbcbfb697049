"""Pieces of a very small nowcast study."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

from fewer.studies.pieces import silent
from fewer.systems.nowcast.studies.members import QUICK
from fewer.systems.nowcast.studies.pieces import STEPS, run_piece, truth
from fewer.systems.nowcast.studies.place import Place
from tests.systems.nowcast.small import SMALL


@pytest.fixture(scope="session")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """The truth and two trained pieces; the other members say what fell, with their own mistakes."""
    place = Place(tmp_path_factory.mktemp("study"), SMALL, log=silent)
    for name in ("truth", "climatology", "baseline"):
        run_piece(name, place)
    random = np.random.default_rng(0)
    for name in QUICK:
        if name != "baseline":
            _write(name, place, random)
    return place


def _write(name: str, place: Place, random: np.random.Generator) -> None:
    """Right in all but a random quarter of the pixels."""
    found = json.loads(place.path("baseline", "json").read_text())
    arrays = {}
    for split in ("validation", "test", "heldout"):
        fallen = truth(split, place).raining
        wrong = random.random(fallen.shape) < 0.25
        arrays[split] = np.where(fallen ^ wrong, 4 * STEPS // 5, STEPS // 7).astype(np.uint8)
    memory = io.BytesIO()
    np.savez_compressed(memory, **arrays)
    place.path(name, "npz").write_bytes(memory.getvalue())
    place.path(name, "json").write_text(json.dumps({**found, "piece": name}))
