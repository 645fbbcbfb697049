"""Cross-entropy of each sample, for losses that run under vmap."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

__all__ = ["cross_entropy"]


def cross_entropy(scores: Tensor, labels: Tensor) -> Tensor:
    """(batch,) from (batch, classes) and (batch,).

    As torch's own without its search for labels to ignore, which is a dozen small kernels under vmap.
    """
    return -functional.log_softmax(scores, 1).gather(1, labels[:, None])[:, 0]
