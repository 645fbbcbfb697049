"""Gradients through a pack with numpy alone, and the attack that climbs them: hostile images without torch.

A pack's program is a list of operations; each that a classifier is made of has its derivative here. A program with
another operation cannot be attacked, and says which one is in the way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fewer.core.errors import UserError
from fewer.packs.file.tensors import Array
from fewer.packs.program import Node
from fewer.packs.runtime.convolution import sparse_convolution
from fewer.packs.runtime.layers import OPERATIONS, unfolded
from fewer.packs.runtime.runtime import Pack
from fewer.packs.runtime.steps import Step, step_of

__all__ = ["InputGradient", "climbed", "ladder"]


def _linear(node: Node, values: Mapping[str, Array], g: Array) -> Array:
    return np.asarray(g @ values[node.inputs[1]])


def _conv(node: Node, values: Mapping[str, Array], g: Array) -> Array:
    """The transposed convolution, with as much added at the far edge as the stride had dropped there."""
    x, weight, options = values[node.inputs[0]], values[node.inputs[1]], node.attributes
    if options["transposed"]:
        raise UserError("a transposed convolution", "a classifier's operations")
    left = [
        n + 2 * p - d * (k - 1) - 1 - (m - 1) * s
        for n, m, k, s, p, d in zip(
            x.shape[2:], g.shape[2:], weight.shape[2:], options["stride"], options["padding"], options["dilation"]
        )
    ]
    made: Array = OPERATIONS["conv"](g, weight, **{**options, "transposed": True, "output_padding": left})
    return made


def _max_pool(node: Node, values: Mapping[str, Array], g: Array) -> Array:
    """To the first of the largest in each window."""
    x, options = values[node.inputs[0]], node.attributes
    if any(options["padding"]) or options["ceil"]:
        raise UserError("a padded pool", "pools without padding")
    windows = unfolded(x, options["kernel"], options["stride"], options["dilation"])
    places = windows.shape[2:4]
    best = windows.reshape(*windows.shape[:4], -1).argmax(axis=-1)  # (samples, channels, rows, columns)
    row, column = np.divmod(best, options["kernel"][1])
    rows = np.arange(places[0])[:, None] * options["stride"][0] + row * options["dilation"][0]
    columns = np.arange(places[1])[None, :] * options["stride"][1] + column * options["dilation"][1]
    sample, channel = np.ogrid[: x.shape[0], : x.shape[1]]
    made = np.zeros_like(x)
    np.add.at(made, (sample[..., None, None], channel[..., None, None], rows, columns), g)
    return made


def _sigmoid(node: Node, values: Mapping[str, Array], g: Array) -> Array:
    """Of one so gentle that its inputs end at 5: a steep contrast would hide from the attack what it can reach."""
    x = values[node.inputs[0]]
    share = 5 / max(float(np.abs(x).max()), 5.0)
    gentle = OPERATIONS["sigmoid"](share * x)
    return np.asarray(g * share * gentle * (1 - gentle))


def _log_softmax(node: Node, values: Mapping[str, Array], g: Array) -> Array:
    share = np.exp(values[node.output])
    return np.asarray(g - share * g.sum(axis=node.attributes["axis"], keepdims=True))


def _scaled(node: Node, values: Mapping[str, Array], g: Array) -> Array:
    """Of x + c, x - c, x * c and x / c, where c is a number or a tensor of the pack."""
    options = node.attributes
    if "left" in options:
        raise UserError(f"{node.op} from a number", "a classifier's operations")
    other = values[node.inputs[1]] if len(node.inputs) == 2 else np.float32(options["right"])
    made = {"add": g, "sub": g, "mul": g * other, "div": g / np.where(other == 0, np.float32(1), other)}
    return np.asarray(made[node.op])


DERIVATIVES: dict[str, Callable[[Node, Mapping[str, Array], Array], Array]] = {
    "linear": _linear,
    "conv": _conv,
    "max_pool": _max_pool,
    "log_softmax": _log_softmax,
    "relu": lambda node, values, g: g * (values[node.output] > 0),
    "tanh": lambda node, values, g: g * (1 - values[node.output] ** 2),
    "sigmoid": _sigmoid,
    "reshape": lambda node, values, g: g.reshape(values[node.inputs[0]].shape),
    **dict.fromkeys(("add", "sub", "mul", "div"), _scaled),
}


class InputGradient:
    """The log-probabilities of a classifier's pack, and their gradient by the image."""

    def __init__(self, pack: Pack) -> None:
        network = next(iter(pack.networks.values()))
        program, tensors = network.program, pack.tensors()
        for place, node in enumerate(program.nodes):
            before = program.inputs[0].name if place == 0 else program.nodes[place - 1].output
            straight = node.inputs[:1] == (before,) and all(name in tensors for name in node.inputs[1:])
            if node.op not in DERIVATIVES or not straight:
                raise UserError(f"an operation {node.op} that the attack cannot follow back", "a plain chain of layers")
        self._nodes, self._tensors, self._input = program.nodes, tensors, program.inputs[0].name
        self._steps = [self._step(node) for node in program.nodes]

    def _step(self, node: Node) -> Step:
        fast = sparse_convolution(node, self._tensors) if node.op == "conv" else None
        return step_of(node) if fast is None else Step(node.op, node.inputs[:1], node.output, fast)

    def __call__(self, images: Array, classes: Array) -> tuple[Array, Array]:
        """(samples, classes) log-probabilities, and d log p[class] / d image of each sample."""
        values: dict[str, Any] = {**self._tensors, self._input: images}
        with np.errstate(all="ignore"):
            for step in self._steps:
                values[step.output] = step.run(values, len(images))
            answer = values[self._nodes[-1].output]
            g = np.zeros_like(answer)
            g[np.arange(len(images)), classes] = 1
            for node in reversed(self._nodes):
                g = DERIVATIVES[node.op](node, values, g)
        return answer, g


def climbed(gradient: InputGradient, image: Array, *, budget: float, steps: int) -> Array:
    """The image within `budget` of every pixel, and within [0, 1], that makes the first answer least likely.

    Projected gradient descent by signs, from the image itself; one step is FGSM. The best of the way is kept.
    """
    budgets = np.array([budget])
    found: Array = _descended(gradient, image, [image[None]], budgets=budgets, steps=steps)[0]
    return found


def ladder(gradient: InputGradient, image: Array, *, budgets: Array, steps: int) -> Array:
    """(budgets, ...): such an image for every budget, which grow; one of a smaller budget stays if it is worse.

    The way is gone three times: from the image, from noise around it and from the image towards mid-grey. A network
    that is blind to small changes of black pixels has no gradient there, and seems strong from the image alone.
    """
    wide = _wide(budgets, image)
    noise = np.random.default_rng(0).uniform(-1, 1, image.shape).astype(np.float32)
    starts = [
        np.repeat(image[None], len(budgets), axis=0),
        image + wide * noise,
        image + np.clip(0.5 - image, -wide, wide),
    ]
    return _descended(gradient, image, starts, budgets=budgets, steps=steps)


def _wide(budgets: Array, image: Array) -> Array:
    return budgets.astype(np.float32).reshape(-1, *[1] * image.ndim)


def _descended(gradient: InputGradient, image: Array, starts: Sequence[Array], *, budgets: Array, steps: int) -> Array:
    """The worst of all points on the ways from these starts, (budgets, ...) each."""
    wide = _wide(budgets, image)
    low, high = np.clip(image - wide, 0, 1), np.clip(image + wide, 0, 1)
    step = wide if steps == 1 else np.maximum(wide / 10, np.float32(2.5) * wide / np.float32(steps))
    answer, _ = gradient(image[None], np.zeros(1, dtype=np.int64))
    chosen = answer.argmax(axis=1).repeat(len(budgets))
    best, least = np.repeat(image[None], len(budgets), axis=0), np.full(len(budgets), np.inf, dtype=np.float32)
    for start in starts:
        x = np.clip(start, low, high).astype(np.float32)
        for _ in range(steps + 1):  # the last only looks at where the way led
            answer, g = gradient(x, chosen)
            found = answer[:, chosen[0]]
            better = found < least
            best[better], least[better] = x[better], found[better]
            x = np.clip(x - step * np.sign(g), low, high).astype(np.float32)
    for rung in range(1, len(budgets)):
        if not least[rung] <= least[rung - 1]:
            best[rung], least[rung] = best[rung - 1], least[rung - 1]
    return best
