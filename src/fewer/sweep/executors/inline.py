"""Units one after another in this very process: for notebooks, studies and tests. A crash is then the caller's too."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from pathlib import Path

import torch

from fewer.sweep.report import Done, Report
from fewer.sweep.unit import Unit, run_unit

__all__ = ["work_inside"]


def work_inside(units: deque[Unit], out: Path, *, threads: int = 1) -> Generator[Report, None, None]:
    """Run units until there are none; the caller may add to `units` between reports."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        while units:
            unit = units.popleft()
            yield Done(unit, run_unit(unit, out, lambda line: None))
    finally:
        torch.set_num_threads(before)
