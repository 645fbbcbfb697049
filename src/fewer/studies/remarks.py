"""What came out of a study, in sentences computed from its record: rows and details, as its JSON file holds them.

A study's notes say how it was made; whatever is greater, less, best or refused is said here and nowhere else, so that
no sentence outlives its numbers. `tests/studies/test_remarks.py` computes those of every published result again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fewer.core.system import imported
from fewer.studies.order import studies

__all__ = ["Record", "remarks_on", "with_remarks"]

Record = Mapping[str, Any]


def remarks_on(study: str, record: Record) -> list[str]:
    """Sentences about the record of a study; none for studies that need none."""
    place = with_remarks().get(study)
    found: list[str] = imported(place)(record) if place else []
    return found


def with_remarks() -> dict[str, str]:
    """Studies with something to say about, and the function that says it."""
    return {name: study.remarks for name, study in studies().items() if study.remarks}
