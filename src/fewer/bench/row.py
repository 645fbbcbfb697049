"""A line of a benchmark: two metrics of one run, and their ratio."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median

from fewer.core.html_table import shown

__all__ = ["Row", "interleaved_seconds"]


@dataclass(frozen=True)
class Row:
    """`ratio` is how many times better ours is: faster, smaller; `required` is what an issue or a paper asks."""

    what: str
    ours: float
    theirs: float
    unit: str
    ratio: float
    against: str
    required: float | None = None

    def _repr_html_(self) -> str:
        """For Jupyter."""
        row = [self.what, self.ours, self.theirs, self.unit, f"{self.ratio:.2f}x", self.against]
        return shown("", ["what", "ours", "theirs", "unit", "ratio", "against"], [row])


def interleaved_seconds(
    calls: Mapping[str, Callable[[], object]], *, rounds: int = 9, repeats: int = 1, warmup: int = 2
) -> dict[str, float]:
    """Median processor seconds of one call of each, taken in turns.

    Processor time and turns: a busy machine makes everybody wait, and short calls least, which is no merit of theirs.
    """
    for call in calls.values():
        for _ in range(warmup):
            call()
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.process_time()
            for _ in range(repeats):
                call()
            seconds[name].append((time.process_time() - start) / repeats)
    return {name: median(values) for name, values in seconds.items()}
