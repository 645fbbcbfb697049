"""A path for every output that a mask would cut off, from the best of its weights.

Scores know nothing of paths: the few weights that are left may all serve other outputs, as where a class is rare.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from fewer.core.mask import Mask
from fewer.pruning.criteria.scoring import Scores
from fewer.pruning.paths.lint import attempted, examine, reaching
from fewer.pruning.paths.units import reads

__all__ = ["paths_to_outputs"]

_MOST = 1000  # outputs that get a path of their own


def paths_to_outputs(
    scores: Scores,
    found: Mask,
    modules: Mapping[str, nn.Module],
    calls: Mapping[str, tuple[Any, ...]],
    *,
    within: Mask,
    spare: Collection[str] = (),
) -> dict[str, dict[str, Tensor]]:
    """Weights of those within that together lead to each output that the mask cuts off; nothing if it cuts off none.

    `spare` names networks that may lose outputs.
    """
    chosen: dict[str, dict[str, Tensor]] = {}
    for report in examine(modules, found, calls):
        if report.network in spare or report.faults(spare=True) or not bool(report.cut.any()):
            continue
        net = report.network
        free = {key: within.get(net, {}).get(key, torch.ones_like(some)) for key, some in found[net].items()}
        chosen[net] = {key: torch.zeros_like(some) for key, some in found[net].items()}
        for output in report.cut.reshape(-1).nonzero()[:_MOST, 0].tolist():
            used = {key: some | chosen[net][key] for key, some in found[net].items()}
            walk = partial(_path, scores[net], free, used, modules[net], calls[net], output)
            for key, some in (attempted(walk) or {}).items():
                chosen[net][key] |= some
    return chosen


def _path(
    scores: Mapping[str, Tensor],
    free: Mapping[str, Tensor],
    used: Mapping[str, Tensor],
    module: nn.Module,
    arguments: tuple[Any, ...],
    output: int,
) -> dict[str, Tensor] | None:
    """From the output back to an argument, one weight into each unit that the output reads; None if there is no way.

    One that closes the path at once is better than one that is used already, and that than any other.
    """
    possible = reaching(module, free, arguments, output)
    closing = reaching(module, used, arguments, output)
    path = {key: torch.zeros_like(some) for key, some in free.items()}
    while not any(bool((some & path[key]).any()) for key, some in reaching(module, path, arguments, output).items()):
        into = _into(reads(module, path, arguments, output), path)
        wanted = {key: some & possible[key] & free[key] for key, some in into.items()}
        for tier in (closing, used, free):
            best = _best(scores, {key: some & tier[key] for key, some in wanted.items()})
            if best is not None:
                break
        else:
            return None
        key, place = best
        path[key].view(-1)[place] = True
    return path


def _into(read: Mapping[str, Tensor], path: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """All weights into units that the output reads and that nothing on the path feeds yet."""
    found = {}
    for key, some in path.items():
        rows = read.get(key.removesuffix("weight").removesuffix("."))
        if rows is not None and len(rows) == len(some):  # not so where a layer is transposed or its name another
            alone = rows & ~some.flatten(1).any(1)
            found[key] = alone.view(-1, *(1,) * (some.ndim - 1)).expand_as(some)
    return found


def _best(scores: Mapping[str, Tensor], among: Mapping[str, Tensor]) -> tuple[str, int] | None:
    best, found = -torch.inf, None
    for key, some in among.items():
        ranked = torch.where(some, scores[key].to(torch.float64), -torch.inf)
        place = int(ranked.argmax())
        if float(ranked.reshape(-1)[place]) > best:
            best, found = float(ranked.reshape(-1)[place]), (key, place)
    return found
