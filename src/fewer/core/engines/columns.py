"""Convolutions of a cohort as products of matrices.

Under vmap, convolutions whose weights differ from replica to replica become one convolution in groups, which cuDNN does
far below what the chip can. Laid out as columns, every number of an image once for each place of the kernel, they are
one batched product with a matrix a replica, which tensor cores do well; the columns cost memory traffic, which is
cheap for small kernels and few channels.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["column_conv2d"]

_GRAIN = 4  # numbers of 32 bit in one load: matrices have rows of such a multiple
_LONGEST = 1200  # inputs of an output beyond which columns cost more than they save


def column_conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: str | int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    *,
    direct: int = 0,
) -> Tensor:
    """The same as torch's `conv2d`; of up to `direct` inputs an output is a sum of products, for a compiler to fuse."""
    steps, spread = _pair(stride), _pair(dilation)
    channels, *kernel = weight.shape[1:]
    plain = groups == 1 and spread == (1, 1) and not isinstance(padding, str) and input.ndim == 4
    if not plain or channels * kernel[0] * kernel[1] > _LONGEST:
        return F.conv2d(input, weight, bias, stride, padding, dilation, groups)  # type: ignore[arg-type]
    down, right = _pair(padding)  # type: ignore[arg-type]
    images = F.pad(input, (right, right, down, down)) if down or right else input
    images = images.transpose(0, 1)  # (channels, batch, height, width)
    height, width = ((size - k) // step + 1 for size, k, step in zip(images.shape[2:], kernel, steps))
    if channels * kernel[0] * kernel[1] <= direct:
        parts = [
            weight[:, c, i, j, None, None, None]
            * images[c, :, i : i + steps[0] * height : steps[0], j : j + steps[1] * width : steps[1]]
            for c in range(channels)
            for i in range(kernel[0])
            for j in range(kernel[1])
        ]
        total: Tensor = functools.reduce(torch.add, parts)  # (outputs, batch, height, width)
        return (total if bias is None else total + bias[:, None, None, None]).transpose(0, 1)
    # two short stacks rather than a long one: a compiler makes one pass of them
    columns = torch.stack(
        [
            torch.stack(
                [
                    images[:, :, i : i + steps[0] * height : steps[0], j : j + steps[1] * width : steps[1]]
                    for j in range(kernel[1])
                ],
                1,
            )
            for i in range(kernel[0])
        ],
        1,
    )  # (channels, kernel's height, kernel's width, batch, height, width)
    matrix, rows = weight.flatten(1), columns.flatten(0, 2).flatten(1)
    if more := -matrix.shape[1] % _GRAIN:
        matrix, rows = F.pad(matrix, (0, more)), F.pad(rows, (0, 0, 0, more))
    product = matrix @ rows if bias is None else matrix @ rows + bias[:, None]
    answer: Tensor = product.unflatten(1, (input.shape[0], height, width)).transpose(0, 1)
    return answer


def _pair(given: int | Sequence[int]) -> tuple[int, int]:
    if isinstance(given, int):
        return given, given
    first, second = (*given, *given)[:2]
    return first, second
