"""Deep networks of the field for small photographs: residual, wide residual, VGG and separable ones, with batch norms.

Each is a `body` that ends in features and a linear `head`, as all of `networks`. The first convolution keeps the
image's size, as is usual for CIFAR.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from torch import Tensor, nn

from fewer.core.errors import UserError

__all__ = ["DEEP", "Body", "mobile", "resnet", "vgg", "wide_resnet"]

Shape = tuple[int, int, int]
Body = Callable[[Shape], tuple[nn.Sequential, int]]  # image shape -> body, features


class Residual(nn.Module):
    """Two 3 x 3 convolutions beside a shortcut; normalised after each (He 2016a), or before each if `first`."""

    def __init__(self, before: int, after: int, stride: int, *, first: bool = False) -> None:
        super().__init__()
        self.first = first
        self.norm1, self.norm2 = nn.BatchNorm2d(before if first else after), nn.BatchNorm2d(after)
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.relu = nn.ReLU()
        self.shortcut = nn.Sequential()
        if stride != 1 or before != after:
            self.shortcut.append(nn.Conv2d(before, after, 1, stride, bias=False))
            if not first:
                self.shortcut.append(nn.BatchNorm2d(after))

    def forward(self, x: Tensor) -> Tensor:
        """(batch, before, height, width) to (batch, after, height / stride, width / stride)."""
        if self.first:
            ready = self.relu(self.norm1(x))
            way = self.shortcut(ready) if len(self.shortcut) else x
            return way + self.conv2(self.relu(self.norm2(self.conv1(ready))))  # type: ignore[no-any-return]
        changed = self.norm2(self.conv2(self.relu(self.norm1(self.conv1(x)))))
        return self.relu(changed + self.shortcut(x))  # type: ignore[no-any-return]


def _refuse_small(shape: Shape, halvings: int) -> None:
    if min(shape[1:]) < 2**halvings:
        raise UserError(
            f"images of {shape[1]} x {shape[2]}", f"at least {2**halvings} pixels a side for this network", "use an mlp"
        )


def _pooled(layers: list[nn.Module]) -> nn.Sequential:
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


def resnet(shape: Shape, *, width: int = 64, blocks: Sequence[int] = (2, 2, 2, 2)) -> tuple[nn.Sequential, int]:
    """ResNet-18 at width 64 (11.2 million weights for CIFAR); a slim one at width 16."""
    _refuse_small(shape, len(blocks) - 1)
    layers: list[nn.Module] = [nn.Conv2d(shape[0], width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    before = width
    for stage, count in enumerate(blocks):
        for block in range(count):
            layers.append(Residual(before, width << stage, 2 if stage and not block else 1))
            before = width << stage
    return _pooled(layers), before


def wide_resnet(shape: Shape, *, depth: int = 28, factor: int = 4) -> tuple[nn.Sequential, int]:
    """WRN-28-4 (Zagoruyko and Komodakis 2016): normalised before each convolution, three stages."""
    _refuse_small(shape, 2)
    layers: list[nn.Module] = [nn.Conv2d(shape[0], 16, 3, 1, 1, bias=False)]
    before = 16
    for stage in range(3):
        after = (16 << stage) * factor
        for block in range((depth - 4) // 6):
            layers.append(Residual(before, after, 2 if stage and not block else 1, first=True))
            before = after
    return _pooled([*layers, nn.BatchNorm2d(before), nn.ReLU()]), before


def vgg(shape: Shape, *, width: int = 64) -> tuple[nn.Sequential, int]:
    """VGG-16's thirteen convolutions with batch norms (Simonyan and Zisserman 2015), one linear layer behind them."""
    _refuse_small(shape, 4)
    layers: list[nn.Module] = []
    before = shape[0]
    for stage, (count, times) in enumerate(((2, 1), (2, 2), (3, 4), (3, 8), (3, 8))):
        if stage:
            layers.append(nn.MaxPool2d(2))
        for _ in range(count):
            layers += [nn.Conv2d(before, width * times, 3, 1, 1, bias=False), nn.BatchNorm2d(width * times), nn.ReLU()]
            before = width * times
    return _pooled(layers), before


def mobile(shape: Shape, *, width: int = 32) -> tuple[nn.Sequential, int]:
    """Depthwise 3 x 3 then 1 x 1 convolutions, as MobileNet (Howard 2017), with strides for images of 32."""
    _refuse_small(shape, 3)
    layers: list[nn.Module] = [nn.Conv2d(shape[0], width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    before = width
    for times, stride in ((2, 1), (4, 2), (4, 1), (8, 2), (8, 1), (16, 2), (16, 1)):
        after = width * times
        layers += [
            nn.Conv2d(before, before, 3, stride, 1, groups=before, bias=False), nn.BatchNorm2d(before), nn.ReLU(),
            nn.Conv2d(before, after, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU(),
        ]  # fmt: skip
        before = after
    return _pooled(layers), before


DEEP: dict[str, Body] = {
    "resnet18": resnet,
    "resnet18-32": functools.partial(resnet, width=32),
    "resnet18-slim": functools.partial(resnet, width=16),
    "resnet18-8": functools.partial(resnet, width=8),
    "resnet18-6": functools.partial(resnet, width=6),
    "resnet18-4": functools.partial(resnet, width=4),
    "resnet10-tiny": functools.partial(resnet, width=8, blocks=(1, 1, 1, 1)),
    "vgg16": vgg,
    "wrn28-4": wide_resnet,
    "mobile": mobile,
}
