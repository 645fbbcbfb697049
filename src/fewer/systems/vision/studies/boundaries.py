"""Figure 4, drawn from real networks: what lies around an image in the directions that hurt it most.

The plane through image x has the axes s on one half of the pixels and s on the other, s being the sign of the loss's
gradient. No pixel belongs to both, so the square |a|, |b| <= 0.3 is exactly a slice of the L-infinity ball, and its
corner is the FGSM example.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from fewer.core.data import convert
from fewer.core.engines.nets import NetworkSet
from fewer.core.seed import Stream
from fewer.report.figure import png
from fewer.studies.order import Order
from fewer.studies.plot import pyplot
from fewer.studies.study import Result
from fewer.systems.vision.studies.training import BUDGET, accuracies, device, mnist, trained
from fewer.systems.vision.task.data import Images
from fewer.systems.vision.task.task import Settings, Vision

__all__ = ["boundaries", "slices"]

SCALES = {"quick": (400, 50), "full": (4000, 1000)}  # training steps (twice as many when hardening), images
HARDENING = "pgd:0.3,steps=5,step=0.1,ramp=0.5"
_REACH, _SIDE, _DRAWN = 0.45, 31, 4  # pixels each way, points along an axis, images in the figure


def slices(task: Vision, modules: Mapping[str, nn.Module], batch: Images) -> Tensor:
    """(images, side, side): the predicted class at every point of each image's plane."""
    nets, count = NetworkSet(modules, training=False), len(batch.label)
    zero = torch.zeros((), dtype=torch.int64, device=batch.pixels.device)
    noise = Stream(zero, zero, batch.pixels.dtype)
    pixels = batch.pixels.detach().requires_grad_(True)
    with torch.enable_grad():
        (slope,) = torch.autograd.grad(task.attack_loss(nets, task.replace(batch, pixels), noise).sum(), pixels)
    first = noise.uniform("half", tuple(pixels.shape[1:])) < 0.5
    across, up = slope.sign() * first, slope.sign() * ~first
    line = torch.linspace(-_REACH, _REACH, _SIDE, dtype=pixels.dtype, device=pixels.device)
    maps = []
    with torch.no_grad():
        for number in range(count):
            a, b = (axis.reshape(-1, 1, 1, 1) for axis in torch.meshgrid(line, line, indexing="xy"))
            points = (pixels[number] + a * across[number] + b * up[number]).clamp(0, 1)
            maps.append(task.logits(nets, points, noise).argmax(1).reshape(_SIDE, _SIDE))
    return torch.stack(maps)


def boundaries(order: Order) -> Result:
    """The surroundings of test images for a standard and a hardened network."""
    scale, log = order.scale, order.log
    steps, count = SCALES[scale]
    task = Vision(Settings(network="cnn2", data=mnist(scale)))
    on = device(scale)
    batch = task.data("test").take(torch.arange(min(count, len(task.data("test")))))
    rows: list[list[Any]] = [["paper: a conceptual drawing", "", "", "", ""]]
    maps: dict[str, Tensor] = {}
    details: dict[str, Any] = {}
    for name, hardening in (("standard", ""), ("hardened", HARDENING)):
        longer = 2 if hardening else 1
        modules = trained(task, steps=longer * steps, hardening=hardening, on=on, log=log)
        found = slices(task, modules, convert(batch, torch.device(on), torch.float32)).cpu()
        kept, distance = _measured(found, batch.label)
        clean, attacked = accuracies(task, modules)
        rows.append([name, *(round(100 * share, 1) for share in (clean, attacked, kept)), round(distance, 3)])
        details[name] = {"clean": clean, "pgd10": attacked, "kept": kept, "distance": distance}
        maps[name] = found
        log(" | ".join(map(str, rows[-1])))
    return Result(
        title="Decision boundaries around real images",
        columns=["network", "clean %", "PGD-10 %", "of the drawn ball with the right class %", "median distance"],
        rows=rows,
        notes=[
            f"Mean over {len(batch.label)} test images; the distance is the largest pixel change up to which the drawn"
            f" plane holds the right class (at most {_REACH}, in steps of {2 * _REACH / (_SIDE - 1):.2f}).",
            "Each network's own gradient spans its planes: other directions inside the ball can be worse.",
        ],
        figures={"vision-fig4.png": _draw(maps, batch)},
        details=details,
    )


def _measured(maps: Tensor, labels: Tensor) -> tuple[float, float]:
    """Share of the ball's slice with the right class, and how far the right class reaches in every direction."""
    line = torch.linspace(-_REACH, _REACH, _SIDE)
    far = torch.maximum(line.abs()[:, None], line.abs())  # (side, side): L-infinity distance from the image
    right = maps == labels[:, None, None]
    inside = far <= BUDGET + 1e-6
    nearest = torch.where(right, _REACH, far).flatten(1).amin(1)
    return float(right[:, inside].float().mean()), float(nearest.median())


def _draw(maps: Mapping[str, Tensor], batch: Images) -> bytes:
    from matplotlib.patches import Rectangle

    shape = (len(maps), _DRAWN)
    figure, axes = pyplot().subplots(
        *shape, figsize=(3 * _DRAWN + 1, 3.1 * len(maps)), layout="constrained", squeeze=False
    )
    # One image of each of the first classes met, the same for both networks.
    chosen = [int((batch.label == which).nonzero()[0, 0]) for which in batch.label.unique()[:_DRAWN]]
    for row, (name, found) in zip(axes, maps.items()):
        for place, number in zip(row, chosen):
            extent = (-_REACH, _REACH, -_REACH, _REACH)
            drawn = place.imshow(found[number], cmap="tab10", vmin=-0.5, vmax=9.5, origin="lower", extent=extent)
            place.add_patch(Rectangle((-BUDGET, -BUDGET), 2 * BUDGET, 2 * BUDGET, fill=False, linewidth=1.5))
            place.plot(0, 0, "k+")
            place.set(title=f"{name}: a {int(batch.label[number])}", xlabel="a", ylabel="b")
    figure.colorbar(drawn, ax=axes, ticks=range(10), label="predicted class")
    return png(figure)
