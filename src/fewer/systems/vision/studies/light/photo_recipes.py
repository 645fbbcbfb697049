"""What is trained on photographs, by name.

Weights are averaged along the training (Izmailov 2018, as an exponential mean), labels are smoothed (Szegedy 2016), SGD
with momentum falls by a cosine. A hardened network is trained on PGD-7 with steps of 2/255, as Madry et al. 2018 did
for CIFAR-10. Pruned networks begin at a dense one's weights and are pruned gradually in the first half of what follows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

from fewer.core.settings import from_text
from fewer.studies.order import Order
from fewer.studies.pieces import choice

__all__ = ["BUDGET", "Choices", "Recipe", "recipes"]

BUDGET = 8 / 255
PGD = f"pgd:{BUDGET:.8f},steps=7,step={2 / 255:.8f},ramp=0"
SMALL = 98_000  # kept weights of a network that is shipped


@dataclass(frozen=True)
class Recipe:
    """One training on photographs."""

    name: str
    network: str = "resnet18"
    hardening: str = ""
    epochs: int = 60
    batch: int = 512
    lr: float = 0.3
    sparsity: float = 0.0
    keep: int = 0  # instead of a sparsity: this many weights stay
    smooth: float = 0.1
    augment: str = "crop,flip"
    average: float = 0.997  # of the averaged weights that stays at each step
    start_from: str = ""  # a piece whose finished weights are tuned
    optimizer: str = "sgd"
    budget: float = BUDGET  # of the audit, in the largest pixel


@dataclass(frozen=True)
class Choices:
    """What may be changed."""

    epochs: int = choice(0, "of every piece; 0: its own")
    batch: int = choice(0, "of every piece; 0: its own")
    images: int = choice(0, "test images that face the attacks of an audit; 0: all")
    search: str = choice("bfloat16", "of an audit on a GPU; exact: float32 throughout, without compiling")
    attacks: int = choice(0, "only the first so many attacks of the suite; 0: all; the rest can follow later")


def _resnet18() -> Iterator[Recipe]:
    """The bars: ResNet-18."""
    yield Recipe("standard", epochs=50, augment="crop,flip,cutout")
    yield Recipe("standard-95", epochs=30, lr=0.15, sparsity=0.95, augment="crop,flip,cutout", start_from="standard")
    yield Recipe("hardened", hardening=PGD, epochs=28, lr=0.25)
    yield _tuned("hardened-95", "hardened", epochs=9, sparsity=0.95)
    yield _tuned("hardened-90", "hardened", epochs=7, sparsity=0.9)
    yield _tuned("hardened-99", "hardened-95", epochs=10, sparsity=0.99)
    yield _tuned("hardened-further", "hardened", epochs=9)


def _tuned(
    name: str, start_from: str, *, network: str = "resnet18", epochs: int, sparsity: float = 0.0, keep: int = 0
) -> Recipe:
    return Recipe(
        name, network, PGD, epochs, lr=0.1, sparsity=sparsity, keep=keep, average=0.995, start_from=start_from
    )


def _small() -> Iterator[Recipe]:
    """At most 100,000 kept weights: pruned wide networks, and thin ones that keep all."""
    wide = "resnet18-32"
    yield Recipe("small", wide, epochs=40)
    yield Recipe("small-98k", wide, epochs=30, lr=0.15, keep=SMALL, start_from="small")
    yield Recipe("small-hardened", wide, PGD, epochs=24, lr=0.25)
    yield _tuned("small-hardened-98k", "small-hardened", network=wide, epochs=14, keep=SMALL)
    yield _tuned("small-hardened-44k", "small-hardened-98k", network=wide, epochs=12, keep=44_000)
    yield Recipe("thin-98k", "resnet18-6", epochs=40)
    yield Recipe("thin-hardened-98k", "resnet18-6", PGD, epochs=28, lr=0.25)
    yield Recipe("thin-hardened-44k", "resnet18-4", PGD, epochs=28, lr=0.25)


def recipes(order: Order) -> dict[str, Recipe]:
    """By name, with the order's choices."""
    found, chosen = [*_resnet18(), *_small()], from_text(Choices, order.words)
    if order.scale == "quick":
        found = [_short(each) for each in found]
    return {
        each.name: dataclasses.replace(each, epochs=chosen.epochs or each.epochs, batch=chosen.batch or each.batch)
        for each in found
    }


def _short(recipe: Recipe) -> Recipe:
    """So few weights, hardly trained, do not all stay on paths beyond a tenth."""
    return dataclasses.replace(
        recipe, network="resnet10-tiny", batch=32, average=0.9, epochs=1, lr=0.05,
        sparsity=min(recipe.sparsity, 0.9), keep=recipe.keep // 10,
        hardening=recipe.hardening.replace("steps=7", "steps=2"),
    )  # fmt: skip
