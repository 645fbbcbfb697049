"""Image classifiers by name, for any image shape and number of classes; `NETWORKS` lists them.

Each is a `body` that ends in features and a linear `head`; normalisation is the first layer, so that an adversary's
budget is always in the pixels' own units. Weights are counted for 28 x 28 grey images and 10 classes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from fewer.core.errors import UserError
from fewer.systems.vision.task.deep import DEEP, Body

__all__ = [
    "NETWORKS",
    "Builder",
    "Contrast",
    "ImageNetwork",
    "Normalise",
    "Shape",
    "cnn",
    "conv",
    "mlp",
    "resized_",
    "small_cnn",
    "xavier_",
]

Shape = tuple[int, int, int]  # channels, height, width
Builder = Callable[[Shape, int], "ImageNetwork"]  # image shape, number of classes


class Normalise(nn.Module):
    """Subtract the mean and divide by the deviation of each channel."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, mean: Tensor, deviation: Tensor) -> None:
        super().__init__()
        self.register_buffer("mean", mean.reshape(-1, 1, 1).clone())
        self.register_buffer("deviation", deviation.reshape(-1, 1, 1).clone())

    def forward(self, pixels: Tensor) -> Tensor:
        """(batch, channels, height, width) in [0, 1], to zero mean and unit deviation."""
        return (pixels - self.mean) / self.deviation


class Contrast(nn.Module):
    """A steep sigmoid around mid-grey, for images that are nearly black and white, such as digits.

    A perturbation of 0.3 moves a black pixel at steepness 20 by 0.02 only: an adversary is left with the grey pixels
    at the strokes' edges. A steep sigmoid would hide most of these from a gradient, in training and in an audit, so its
    slope is reported as that of a gentle one: attacks then find more than they do with the true slope.
    """

    GENTLE = 10.0  # steepness of the reported slope

    def __init__(self, steepness: float) -> None:
        super().__init__()
        self.steepness = steepness

    def forward(self, pixels: Tensor) -> Tensor:
        """(batch, channels, height, width), from [0, 1] into (0, 1)."""
        seen = torch.sigmoid(self.steepness * (pixels - 0.5))
        if self.steepness <= self.GENTLE or not torch.is_grad_enabled():
            return seen
        gentle = torch.sigmoid(self.GENTLE * (pixels - 0.5))
        return gentle + (seen - gentle).detach()


class ImageNetwork(nn.Module):
    """Pixels to features by `body`, features to scores by `head`."""

    def __init__(self, body: nn.Sequential, head: nn.Linear) -> None:
        super().__init__()
        self.normalise: nn.Module = nn.Identity()
        self.channels_last = False  # how the pixels lie in memory while they pass; on a GPU convolutions gain by it
        self.body = body
        self.head = head

    def forward(self, pixels: Tensor, features: bool = False) -> Tensor:
        """(batch, channels, height, width) to (batch, classes), or to the head's input (batch, features)."""
        if self.channels_last:
            pixels = pixels.contiguous(memory_format=torch.channels_last)
        hidden = self.body(self.normalise(pixels))
        return hidden if features else self.head(hidden)  # type: ignore[no-any-return]


def cnn(scale: int, shape: Shape, classes: int, *, wide: bool = False, deep: bool = False) -> ImageNetwork:
    """The capacity family of the paper's Table I: 3 x 3 convolutions without padding, one hidden layer.

    With m = 2^scale: 2m and 4m filters, 100m flattened, 50m hidden; 5,590 weights at scale 0. `wide` doubles the
    hidden layer, `deep` follows each convolution by a second one of the same size that keeps the image's.
    """
    channels, height, width = shape
    m = 2**scale
    layers = _Layers(height, width)
    for index, (before, after) in enumerate(((channels, 2 * m), (2 * m, 4 * m)), start=1):
        layers.convolve(f"conv{index}", before, after, padding=0)
        if deep:
            layers.convolve(f"conv{index}b", after, after, padding=1)
        layers.pool(f"pool{index}")
    hidden = 50 * m * (2 if wide else 1)
    layers.dense("hidden", layers.flatten(4 * m), hidden)
    return ImageNetwork(layers.sequential(), nn.Linear(hidden, classes))


def small_cnn(shape: Shape, classes: int) -> ImageNetwork:
    """The small network of the robustness literature (TRADES): 311,600 weights, 312,202 parameters.

    Without its dropout, and without its zero head, at which every gradient-based pruning score would vanish.
    """
    channels, height, width = shape
    layers = _Layers(height, width)
    for stage, (before, after) in enumerate(((channels, 32), (32, 64)), start=1):
        layers.convolve(f"conv{stage}", before, after, padding=0)
        layers.convolve(f"conv{stage}b", after, after, padding=0)
        layers.pool(f"pool{stage}")
    layers.dense("hidden1", layers.flatten(64), 200)
    layers.dense("hidden2", 200, 200)
    return ImageNetwork(layers.sequential(), nn.Linear(200, classes))


def conv(shape: Shape, classes: int, *, filters: int = 32) -> ImageNetwork:
    """For colour images of CIFAR's size: three stages of two padded convolutions with group norms, one hidden layer.

    A group norm keeps no running state, so attacked and clean batches cannot disturb each other's statistics.
    """
    channels, height, width = shape
    layers = _Layers(height, width)
    before = channels
    for stage, after in enumerate((filters, 2 * filters, 4 * filters), start=1):
        layers.convolve(f"conv{stage}", before, after, padding=1, groups=8)
        layers.convolve(f"conv{stage}b", after, after, padding=1, groups=8)
        layers.pool(f"pool{stage}")
        before = after
    layers.dense("hidden", layers.flatten(before), 8 * filters)
    return ImageNetwork(layers.sequential(), nn.Linear(8 * filters, classes))


def mlp(widths: Sequence[int], shape: Shape, classes: int) -> ImageNetwork:
    """Fully connected: pixels, the given hidden widths, classes. (300, 100) is the lottery-ticket network."""
    channels, height, width = shape
    layers = _Layers(height, width)
    before = layers.flatten(channels)
    for index, after in enumerate(widths, start=1):
        layers.dense(f"hidden{index}", before, after)
        before = after
    return ImageNetwork(layers.sequential(), nn.Linear(before, classes))


def resized_(network: ImageNetwork, features: int) -> None:
    """Give it another number of features before the head, with fresh weights around them."""
    name, last = [(name, part) for name, part in network.body.named_children() if isinstance(part, nn.Linear)][-1]
    network.body.add_module(name, nn.Linear(last.in_features, features))
    network.head = nn.Linear(features, network.head.out_features)


@torch.no_grad()
def xavier_(module: nn.Module) -> None:
    """Draw all weights from Xavier's normal distribution and set the biases to zero, as lottery tickets begin."""
    for layer in module.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d):
            nn.init.xavier_normal_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


class _Layers:
    """A list of named layers that knows how large the image has become."""

    def __init__(self, height: int, width: int) -> None:
        self.named: dict[str, nn.Module] = {}
        self.start, self.height, self.width = (height, width), height, width

    def _shrink(self, height: int, width: int) -> None:
        if min(height, width) < 1:
            raise UserError(
                f"images of {self.start[0]} x {self.start[1]}", "larger ones for this network", "use an mlp"
            )
        self.height, self.width = height, width

    def convolve(self, name: str, before: int, after: int, *, padding: int, groups: int = 0) -> None:
        """A 3 x 3 convolution and a ReLU, with a group norm between them if `groups`."""
        # A bias before a norm has no gradient but rounding noise, which Adam would amplify.
        self.named[name] = nn.Conv2d(before, after, 3, padding=padding, bias=groups == 0)
        if groups:
            self.named[f"{name}_norm"] = nn.GroupNorm(groups, after)
        self.named[f"{name}_relu"] = nn.ReLU()
        self._shrink(self.height - 2 + 2 * padding, self.width - 2 + 2 * padding)

    def pool(self, name: str) -> None:
        """The largest of each 2 x 2."""
        self.named[name] = nn.MaxPool2d(2)
        self._shrink(self.height // 2, self.width // 2)

    def flatten(self, channels: int) -> int:
        """One row per image; its length."""
        self.named["flatten"] = nn.Flatten()
        return channels * self.height * self.width

    def dense(self, name: str, before: int, after: int) -> None:
        """A linear layer and a ReLU."""
        self.named[name] = nn.Linear(before, after)
        self.named[f"{name}_relu"] = nn.ReLU()

    def sequential(self) -> nn.Sequential:
        """The layers in order, under their names."""
        sequence = nn.Sequential()
        for name, layer in self.named.items():
            sequence.add_module(name, layer)
        return sequence


def _deep(body: Body, shape: Shape, classes: int) -> ImageNetwork:
    layers, features = body(shape)
    return ImageNetwork(layers, nn.Linear(features, classes))


NETWORKS: dict[str, Builder] = {
    **{f"cnn{scale}": functools.partial(cnn, scale) for scale in range(6)},
    **{f"cnn{scale}-wide": functools.partial(cnn, scale, wide=True) for scale in range(6)},
    **{f"cnn{scale}-deep": functools.partial(cnn, scale, deep=True) for scale in range(6)},
    "mlp": functools.partial(mlp, (300, 100)),
    "mlp3": functools.partial(mlp, (300, 100, 100)),
    "small-cnn": small_cnn,
    "conv": conv,
    **{name: functools.partial(_deep, body) for name, body in DEEP.items()},
}
