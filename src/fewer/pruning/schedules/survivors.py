"""Masks from round to round: the largest survivors, and as many positions drawn by lot."""

from __future__ import annotations

import torch
from torch import Tensor

from fewer.core.mask import Mask
from fewer.core.seed import Stream
from fewer.pruning.criteria.scoring import Scores

__all__ = ["shuffled_mask", "smaller_mask"]


def smaller_mask(
    scores: Scores, before: Mask, number: int, *, rate: float, scope: str = "layer", output_share: float = 1.0
) -> dict[str, dict[str, Tensor]]:
    """The mask of round `number`: round(n * (1 - rate)^number) of the largest survivors, at least one a layer.

    Counted from the whole and not from the last round, so that rounding does not add up. With scope `layer` the last
    layer of each network loses only `output_share` of the rate.
    """
    if scope == "global":
        names = [(net, key) for net, part in scores.items() for key in part]
        ranked = torch.cat([_ranked(scores[net][key], before[net][key]) for net, key in names])
        together = _largest(ranked, round(len(ranked) * (1 - rate) ** number))
        parts = iter(together.split([scores[net][key].numel() for net, key in names]))
        return {net: {key: next(parts).view(s.shape) for key, s in part.items()} for net, part in scores.items()}
    result: dict[str, dict[str, Tensor]] = {}
    for net, part in scores.items():
        result[net] = {}
        for key, score in part.items():
            own = rate * (output_share if key == list(part)[-1] else 1.0)
            count = max(1, round(score.numel() * (1 - own) ** number))
            result[net][key] = _largest(_ranked(score, before[net][key]), count).view(score.shape)
    return result


def _ranked(score: Tensor, before: Tensor) -> Tensor:
    """Sizes with what is pruned already below all of them."""
    return torch.where(before.to(score.device), score, -torch.ones_like(score)).reshape(-1)


def _largest(scores: Tensor, count: int) -> Tensor:
    chosen = torch.zeros_like(scores, dtype=torch.bool)
    chosen[torch.sort(scores, descending=True, stable=True).indices[:count]] = True
    return chosen


def shuffled_mask(mask: Mask, seed: int) -> dict[str, dict[str, Tensor]]:
    """As many kept in each layer, at positions drawn by lot; smaller masks of one seed lie within larger ones."""
    noise = Stream(torch.tensor(seed), torch.zeros((), dtype=torch.int64))
    return {
        net: {
            key: _largest(noise.uniform(f"lottery/{net}/{key}", (m.numel(),)), int(m.sum())).view(m.shape)
            for key, m in part.items()
        }
        for net, part in mask.items()
    }
