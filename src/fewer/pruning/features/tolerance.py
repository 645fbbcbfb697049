"""How far a network can be shrunk: stages until the figure that matters falls by more than a tolerance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from torch import nn

from fewer.core.errors import UserError
from fewer.pruning.features.shrink import Stage

__all__ = ["until_it_hurts"]

Modules = Mapping[str, nn.Module]


def until_it_hurts(
    first: Modules, stages: Iterable[Stage], figure: Callable[[Modules], float], *, tolerance: float
) -> Iterator[tuple[Stage, float, bool]]:
    """Each stage with its figure and whether it stands within `tolerance` of the best so far; the first that does
    not is the last.

    Stages are asked for one by one, so no round is trained in vain. Measure on a split that nobody is judged by.
    """
    if not tolerance >= 0:
        raise UserError(f"tolerance {tolerance}", "a number of at least 0, in the figure's own units")
    best = figure(first)
    for stage in stages:
        value = figure(stage.modules)
        stands = value >= best - tolerance
        yield stage, value, stands
        if not stands:
            return
        best = max(best, value)
