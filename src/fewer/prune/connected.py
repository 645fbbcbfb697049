"""Only weights on a path from an input to an output: any other one is stored, counted and multiplied for nothing.

Magnitudes know nothing of paths: where few weights are left, some feed a unit that nobody reads, or read one that
nothing feeds. Barred, they make room for weights that work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn

from fewer.core.mask import Mask
from fewer.prune.lint import idle

__all__ = ["connected"]

Masks = dict[str, dict[str, Tensor]]
ROUNDS = 50  # what is idle after so many is left out without replacement


def connected(
    choose: Callable[[Mask], Masks],
    within: Mask,
    modules: Mapping[str, nn.Module],
    calls: Mapping[str, tuple[Any, ...]],
) -> Masks:
    """What `choose` keeps of the weights it may, when those that lie on no path make room for others."""
    allowed = {net: dict(by_parameter) for net, by_parameter in within.items()}
    for _ in range(ROUNDS):
        found = choose(allowed)
        useless = {net: idle(modules[net], found[net], calls[net]) for net in found if net in calls}
        if not any(bool(some.any()) for by_parameter in useless.values() for some in by_parameter.values()):
            return found
        for net, by_parameter in useless.items():
            for key, some in by_parameter.items():
                allowed.setdefault(net, {})[key] = ~some & allowed.get(net, {}).get(key, ~some)
    return {
        net: {key: kept & ~useless[net][key] if net in useless else kept for key, kept in by_parameter.items()}
        for net, by_parameter in found.items()
    }
