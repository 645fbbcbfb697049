"""Image networks whose speed as packs is told."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from fewer.systems.vision.task.networks import NETWORKS, Shape

__all__ = ["networks"]

_DIGIT, _PHOTOGRAPH = (1, 28, 28), (3, 32, 32)
_NAMES: dict[str, tuple[str, Shape]] = {
    "digit CNN": ("small-cnn", _DIGIT),
    "ResNet-18": ("resnet18", _PHOTOGRAPH),
    "VGG-16": ("vgg16", _PHOTOGRAPH),
    "MobileNet-like": ("mobile", _PHOTOGRAPH),
}


def networks() -> list[tuple[str, Callable[[], nn.Module], Shape]]:
    """(name, how it is made, shape of an image)."""

    def made(name: str, shape: Shape) -> Callable[[], nn.Module]:
        return lambda: NETWORKS[name](shape, 10)

    return [(title, made(name, shape), shape) for title, (name, shape) in _NAMES.items()]
