"""What came out of a study, in sentences computed from its record: rows and details, as its JSON file holds them.

A study's notes say how it was made; whatever is greater, less, best or refused is said here and nowhere else, so that
no sentence outlives its numbers. `tests/studies/test_remarks.py` computes those of every published result again.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

__all__ = ["REMARKS", "remarks_on"]

Record = Mapping[str, Any]

REMARKS: dict[str, str] = {
    "cellfree/statistics": "cellfree:statistics",
    "cellfree/scaling": "cellfree:scaling",
    "control/fig1": "control:scores",
    "control/fig2": "control:scores",
    "control/fig3": "control:layers",
    "control/fig4": "control:sizes",
    "control/table1": "control:files",
    "matrix": "pruning:winners",
    "nowcast/fig1": "nowcast:window",
    "nowcast/table1": "nowcast:models",
    "nowcast/table2": "nowcast:models",
    "vision/fig5-8": "vision:features",
    "vision/fig9-12": "vision:tickets",
    "vision/lightest": "vision:audits",
    "vision/table2": "vision:trainings",
    "vision/table3": "vision:trainings",
}


def remarks_on(study: str, record: Record) -> list[str]:
    """Sentences about the record of a study; none for studies that need none."""
    if study not in REMARKS:
        return []
    module, function = REMARKS[study].split(":")
    found: list[str] = getattr(importlib.import_module(f"fewer.studies.remarks.{module}"), function)(record)
    return found
