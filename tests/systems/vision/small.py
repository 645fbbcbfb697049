"""Pieces of the vision studies that train in a moment."""

from __future__ import annotations

import dataclasses

from fewer.systems.vision.studies.pieces import DENSE, Recipe, cured, gradual


def quiet(line: str) -> None:
    """Says nothing."""


def tiny(name: str = "tiny", **changes: object) -> Recipe:
    """Ten steps, two densities, two seeds."""
    base = cured(name, "cnn0", steps=10, batch=16, hardening="pgd:0.3,steps=2", seeds=(0, 1))
    return dataclasses.replace(base, **{"prunings": (DENSE, gradual(0.1, 10)), **changes})
