"""Linear layers in widths that a GPU's matrix units like.

Tensor cores load four 32-bit numbers at a time. A product of 750 x 750 matrices, whose rows begin anywhere, runs at a
third of the speed of one of 752 x 752 (100 and 313 TFLOP/s, 80 x 1,000 rows, TF32 on an H200). Zeros around inputs and
weights change no number but the order of summation; a compiler that fuses them into what made the input hides their
cost, which is why only compiled cohorts use this.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

__all__ = ["aligned_linear"]

_GRAIN = 4  # numbers of 32 bit in one load
_SMALL = 16  # outputs below which a product is no matter for matrix units


def aligned_linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """The same as torch's `linear`, padded where it pays."""
    outputs, inputs = weight.shape[-2:]
    right, below = -inputs % _GRAIN, -outputs % _GRAIN
    if outputs < _SMALL or not (right or below):
        return F.linear(input, weight, bias)
    product = F.linear(F.pad(input, (0, right)), F.pad(weight, (0, right, 0, below)))[..., :outputs]
    return product if bias is None else product + bias
