"""The way back through a convolution: again a convolution, by the pack's own kernels.

What a weight sends from input channel i at one place to output channel o at another, the slope comes back from o to i:
the kernel is turned round and its channels are exchanged. A stride leaves gaps of zeros between the slopes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fewer.core.errors import UserError
from fewer.packs.file.tensors import Array
from fewer.packs.program import Input, Node, Program
from fewer.packs.runtime.runtime import Network

__all__ = ["through_convolution"]


def through_convolution(node: Node, weight: Array, shape: tuple[int, ...]) -> Callable[[Array], Array]:
    """From the slope at a convolution's output to that at its input, whose shape (channels, ...) is given."""
    options = node.attributes
    if options["transposed"]:
        raise UserError("a transposed convolution", "a classifier's operations")
    groups, dilation, stride = options["groups"], options["dilation"], options["stride"]
    sizes, kernel = shape[1:], weight.shape[2:]
    reach = [d * (k - 1) for k, d in zip(kernel, dilation)]
    # between two slopes stride - 1 zeros, around them as much as the kernel reaches; padded pixels are left out
    places = [n + 2 * p - r for n, p, r in zip(sizes, options["padding"], reach)]
    inner = tuple(slice(p, p + n) for p, n in zip(options["padding"], sizes))
    filled = (len(weight), *[n + 2 * r for n, r in zip(places, reach)])
    into = tuple(slice(r, r + n, s) for n, r, s in zip(places, reach, stride))
    network = _turned(weight, groups, list(dilation), filled)

    def back(g: Array) -> Array:
        wide = np.zeros((len(g), *filled), np.float32)
        wide[(slice(None), slice(None), *into)] = g
        made: Array = network.predict(wide)
        return made[(slice(None), slice(None), *inner)]

    return back


def _turned(weight: Array, groups: int, dilation: list[int], shape: tuple[int, ...]) -> Network:
    """A program of one convolution, with the kernel turned round and its channels exchanged inside each group."""
    rank = weight.ndim - 2
    parts = weight.reshape(groups, len(weight) // groups, *weight.shape[1:])
    swapped = parts.swapaxes(1, 2).reshape(groups * weight.shape[1], len(weight) // groups, *weight.shape[2:])
    flipped = np.ascontiguousarray(np.flip(swapped, axis=tuple(range(2, 2 + rank))))
    nothing = [0] * rank
    attributes = {
        "stride": [1] * rank, "padding": nothing, "dilation": dilation, "groups": groups, "transposed": False,
        "output_padding": nothing,
    }  # fmt: skip
    node = Node("conv", ("g", "weight"), "back", attributes)
    return Network(Program((Input("g", shape, "float32"),), (node,), ("back",)), {"weight": flipped})
