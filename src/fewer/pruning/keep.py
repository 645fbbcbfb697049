"""From scores to a mask: exactly k weights, whatever the ties."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import torch
from torch import Tensor

from fewer.core.errors import UserError
from fewer.core.mask import Mask
from fewer.pruning.criteria.scoring import Scores

__all__ = ["SCOPES", "keep"]

SCOPES = ("global", "network", "layer", "erk")
Name = tuple[str, str]  # network, parameter


def keep(
    scores: Scores, sparsity: float, scope: str = "network", *, reserved: Mask | None = None, within: Mask | None = None
) -> dict[str, dict[str, Tensor]]:
    """Keep round((1 - sparsity) * n) of the largest scores; the first of equals wins.

    Scope `global` ranks all networks together, `network` each by itself, `layer` each layer at the same density, `erk`
    at densities that favour small layers. Weights in `reserved` are kept first, within the same count; only those in
    `within` are kept at all, so that there are fewer where it leaves fewer.

    >>> keep({"net": {"weight": torch.tensor([[3.0, 1.0], [1.0, 1.0]])}}, 0.5)["net"]["weight"].tolist()
    [[True, True], [False, False]]
    """
    if not 0 <= sparsity < 1:
        raise UserError(f"sparsity {sparsity}", "at least 0 and below 1", "0.95 removes 95 % of the prunable ones")
    if scope not in SCOPES:
        raise UserError(f"scope {scope!r}", f"one of {', '.join(SCOPES)}")
    flat = {
        (net, key): _ranked(score, (net, key), reserved, within)
        for net, by_name in scores.items()
        for key, score in by_name.items()
    }
    kept: dict[Name, Tensor] = {}
    networks = [list(flat)] if scope == "global" else [[name for name in flat if name[0] == net] for net in scores]
    for names in filter(None, networks):
        room = {name: int((flat[name] > -torch.inf).sum()) for name in names}
        total = sum(flat[name].numel() for name in names)
        budget = min(round((1 - Fraction(sparsity).limit_denominator(10**9)) * total), sum(room.values()))
        if scope in ("global", "network"):
            together = _largest(torch.cat([flat[name] for name in names]), budget, of=names[0][0])
            parts = together.split([flat[name].numel() for name in names])
            kept |= dict(zip(names, parts))
        else:
            shapes = {name: scores[name[0]][name[1]].shape for name in names}
            for name, count in _shares(shapes, room, budget, erk=scope == "erk").items():
                kept[name] = _largest(flat[name], count, of=".".join(name))
    return {
        net: {key: kept[net, key].view(score.shape) for key, score in by_name.items()}
        for net, by_name in scores.items()
    }


def _ranked(score: Tensor, name: Name, reserved: Mask | None, within: Mask | None) -> Tensor:
    """Flat; infinite where a weight has to be kept, minus infinity where it must not be."""
    network, parameter = name
    score = score.detach().to(torch.float64).reshape(-1)
    if not bool(torch.isfinite(score).all()):
        raise UserError(
            f"scores of {network}.{parameter} that are not finite", "a loss that is finite on the scoring batch",
            "check the data, or score on other samples",
        )  # fmt: skip
    if reserved is not None and parameter in reserved.get(network, {}):
        score = torch.where(reserved[network][parameter].reshape(-1), torch.inf, score)
    if within is not None and parameter in within.get(network, {}):
        score = torch.where(within[network][parameter].reshape(-1), score, -torch.inf)
    return score


def _largest(scores: Tensor, count: int, *, of: str) -> Tensor:
    if (reserved := int(torch.isposinf(scores).sum())) > count:
        raise UserError(
            f"quotas that reserve {reserved} weights of {of}", f"at most the {count} that are kept",
            "lower layer_quota, input_quota or the sparsity",
        )  # fmt: skip
    order = torch.sort(scores, descending=True, stable=True).indices
    kept = torch.zeros(scores.numel(), dtype=torch.bool, device=scores.device)
    kept[order[:count]] = True
    return kept


def _shares(shapes: Mapping[Name, torch.Size], room: Mapping[Name, int], budget: int, *, erk: bool) -> dict[Name, int]:
    """Whole numbers per layer that add up to the budget, none above the layer's room."""
    sizes = {name: shape.numel() for name, shape in shapes.items()}
    # Erdos-Renyi-kernel: density proportional to the sum of a kernel's dimensions over their product
    raw = {name: sum(shape) / shape.numel() if erk else 1.0 for name, shape in shapes.items()}
    full: set[Name] = set()
    while True:
        rest = {name: raw[name] * sizes[name] for name in shapes if name not in full}
        left = budget - sum(room[name] for name in full)
        scale = left / sum(rest.values()) if rest else 0.0
        over = {name for name in rest if rest[name] * scale > room[name]}
        if not over:
            break
        full |= over
    wanted = {name: float(room[name]) if name in full else rest[name] * scale for name in shapes}
    counts = {name: int(value) for name, value in wanted.items()}
    by_remainder = sorted(shapes, key=lambda name: wanted[name] - counts[name], reverse=True)
    missing = budget - sum(counts.values())
    while missing:
        for name in by_remainder:
            if missing and counts[name] < room[name]:
                counts[name] += 1
                missing -= 1
    return counts
