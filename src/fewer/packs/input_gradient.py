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
from fewer.packs.program import Node, Program
from fewer.packs.runtime.layers import OPERATIONS, unfolded
from fewer.packs.runtime.runtime import Network, Pack
from fewer.packs.runtime.steps import one_sample
from fewer.packs.through_convolution import through_convolution

__all__ = ["InputGradient", "climbed", "ladder"]


Values = Mapping[str, Array]
Derivative = Callable[[Node, Values, Array], Array]


def _linear(node: Node, values: Values, g: Array) -> Array:
    return np.asarray(g @ values[node.inputs[1]])


def _max_pool(node: Node, values: Values, g: Array) -> Array:
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


def _mean(node: Node, values: Values, g: Array) -> Array:
    """The same share to all that were averaged."""
    x, axes = values[node.inputs[0]], [axis % values[node.inputs[0]].ndim for axis in node.attributes["axes"]]
    count = np.float32(np.prod([x.shape[axis] for axis in axes]))
    kept = g if node.attributes["keep"] else np.expand_dims(g, tuple(axes))
    return np.broadcast_to(kept / count, (len(g), *x.shape[1:]))


def _sigmoid(node: Node, values: Values, g: Array) -> Array:
    """Of one so gentle that its inputs end at 5: a steep contrast would hide from the attack what it can reach."""
    x = values[node.inputs[0]]
    share = 5 / max(float(np.abs(x).max()), 5.0)
    gentle = OPERATIONS["sigmoid"](share * x)
    return np.asarray(g * share * gentle * (1 - gentle))


def _log_softmax(node: Node, values: Values, g: Array) -> Array:
    share = np.exp(values[node.output])
    return np.asarray(g - share * g.sum(axis=node.attributes["axis"], keepdims=True))


def _scaled(node: Node, values: Values, g: Array) -> Array:
    """Of x + c, x - c, x * c and x / c, where c is a number or a tensor of the pack."""
    options = node.attributes
    if "left" in options:
        raise UserError(f"{node.op} from a number", "a classifier's operations")
    other = values[node.inputs[1]] if len(node.inputs) == 2 else np.float32(options["right"])
    made = {"add": g, "sub": g, "mul": g * other, "div": g / np.where(other == 0, np.float32(1), other)}
    return np.asarray(made[node.op])


def _batch_norm(node: Node, values: Values, g: Array) -> Array:
    _, variance, *affine = (values[name] for name in node.inputs[1:])
    scale = 1 / np.sqrt(variance + np.float32(node.attributes["epsilon"]))
    scale = scale * affine[0] if affine else scale
    return np.asarray(g * scale.reshape(1, -1, *[1] * (g.ndim - 2)))


DERIVATIVES: dict[str, Derivative] = {
    "linear": _linear,
    "max_pool": _max_pool,
    "mean": _mean,
    "batch_norm": _batch_norm,
    "log_softmax": _log_softmax,
    "relu": lambda node, values, g: g * (values[node.output] > 0),
    "tanh": lambda node, values, g: g * (1 - values[node.output] ** 2),
    "sigmoid": _sigmoid,
    "reshape": lambda node, values, g: g.reshape(len(g), *values[node.inputs[0]].shape[1:]),
    **dict.fromkeys(("add", "sub", "mul", "div"), _scaled),
}
# whose derivative asks what they read (`of`), or what they made
_READ, _MADE = ("max_pool", "sigmoid"), ("log_softmax", "relu", "tanh")


class InputGradient:
    """The log-probabilities of a classifier's pack, and their gradient by the image.

    Layers may follow each other or branch and be added, as in residual networks. Forward and through convolutions
    backward, the pack's own kernels do the work.
    """

    def __init__(self, pack: Pack) -> None:
        network = next(iter(pack.networks.values()))
        program, self._tensors = network.program, pack.tensors()
        self._nodes, self._input = program.nodes, program.inputs[0].name
        for node in program.nodes:
            joined = node.op == "add" and len(node.inputs) == 2 and not set(node.inputs) & set(self._tensors)
            others = all(name in self._tensors for name in node.inputs[1:])
            if node.op not in (*DERIVATIVES, "conv") or node.inputs[0] in self._tensors or not (others or joined):
                raise UserError(f"an operation {node.op} that the attack cannot follow back", "a classifier's layers")
        self._one = one_sample(program, self._tensors)
        if any(self._one[node.output].shape[:1] != (1,) for node in program.nodes):
            raise UserError("values without an axis of samples", "a classifier's layers")
        asked = [node.inputs[0] for node in program.nodes if node.op in _READ]
        asked += [node.output for node in program.nodes if node.op in _MADE]
        self._asked = tuple(dict.fromkeys([*(name for name in asked if name != self._input), program.outputs[0]]))
        self._forward = Network(Program(program.inputs, program.nodes, self._asked), self._tensors)
        self._back = {node.output: self._derivative(node) for node in program.nodes}

    def _derivative(self, node: Node) -> Derivative:
        if node.op != "conv":
            return DERIVATIVES[node.op]
        back = through_convolution(node, self._tensors[node.inputs[1]], self._one[node.inputs[0]].shape[1:])
        return lambda node, values, g: back(g)

    def __call__(self, images: Array, classes: Array) -> tuple[Array, Array]:
        """(samples, classes) log-probabilities, and d log p[class] / d image of each sample."""
        found = self._forward.predict(images)
        found = found if isinstance(found, tuple) else (found,)
        # shapes are all that is asked of the others: those of one sample tell
        values: dict[str, Any] = {**self._one, **self._tensors, self._input: images, **dict(zip(self._asked, found))}
        answer = values[self._nodes[-1].output]
        slope = np.zeros_like(answer)
        slope[np.arange(len(images)), classes] = 1
        slopes = {self._nodes[-1].output: slope}
        with np.errstate(all="ignore"):
            for node in reversed(self._nodes):
                if node.output not in slopes:
                    continue  # what nothing reads
                g = self._back[node.output](node, values, slopes.pop(node.output))
                for name in node.inputs:
                    if name not in self._tensors:
                        slopes[name] = slopes[name] + g if name in slopes else g
        return answer, slopes[self._input]


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
