"""What comes back while units are at work, wherever they are."""

from __future__ import annotations

from dataclasses import dataclass

from fewer.sweep.unit import Outcome, Unit

__all__ = ["Done", "Report", "Step"]


@dataclass(frozen=True)
class Step:
    """A unit is at this training step."""

    unit: Unit
    step: int


@dataclass(frozen=True)
class Done:
    """A unit came to an end, good or bad."""

    unit: Unit
    outcome: Outcome


Report = Step | Done
