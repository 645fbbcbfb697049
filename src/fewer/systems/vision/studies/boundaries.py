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
from fewer.systems.vision.studies.capacity import percent
from fewer.systems.vision.studies.measure import Row
from fewer.systems.vision.studies.pieces import run_piece, saved_modules
from fewer.systems.vision.studies.place import Place, data_in_words, expect_pieces, where
from fewer.systems.vision.studies.recipe import BUDGET, DENSE, Recipe, cured
from fewer.systems.vision.task.data import Images
from fewer.systems.vision.task.task import Vision

__all__ = ["IMAGES", "boundaries", "boundary_pieces", "measure_piece", "slices"]

IMAGES = {"quick": 50, "full": 1000, "paper": 1000}  # whose surroundings are measured
HARDENING = "pgd:0.3,steps=5,step=0.1,ramp=0.5"
_KEPT = "slices.json"
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


def boundary_pieces(scale: str) -> dict[str, Recipe]:
    """A standard and a hardened network of scale 2."""
    steps = 400 if scale == "quick" else 4000
    return {
        f"boundaries-{name}": cured(
            f"boundaries-{name}",
            "cnn2",
            steps=steps * longer,
            hardening=hardening,
            batch=128,
            validation=0.1,
            seeds=(0,),
        )
        for name, hardening, longer in (("standard", "", 1), ("hardened", HARDENING, 2))
    }


def measure_piece(piece: Recipe, scale: str, place: Place) -> Row:
    """Accuracies of the network and what lies around its images; the maps of a few are kept to be drawn."""
    trained = run_piece(piece, place)
    folder = place.folder(piece, DENSE, 0)
    if trained and place.source and not (folder.path / _KEPT).exists():
        task = place.images_of(piece)
        batch = task.data("test").take(torch.arange(min(IMAGES[scale], len(task.data("test")))))
        placed = convert(batch, torch.device(place.device), torch.float32)
        maps = slices(task, saved_modules(piece, DENSE, 0, place), placed).cpu()
        kept, distance = _measured(maps, batch.label)
        # One image of each of the first classes met, the same for both networks.
        drawn = [int((batch.label == which).nonzero()[0, 0]) for which in batch.label.unique()[:_DRAWN]]
        folder.write_json(_KEPT, {
            "kept": kept, "distance": distance, "images": len(batch.label),
            "drawn": [{"label": int(batch.label[number]), "map": maps[number].tolist()} for number in drawn],
        })  # fmt: skip
    if not trained or not (folder.path / _KEPT).exists():
        return {}
    return {"clean": trained[0]["clean"], "pgd40": trained[0]["pgd40"], **folder.read_json(_KEPT)}


def boundaries(order: Order) -> Result:
    """The surroundings of test images for a standard and a hardened network."""
    place = where(order)
    rows: list[list[Any]] = [["paper: a conceptual drawing", "", "", "", ""]]
    details: dict[str, Any] = {}
    for piece in boundary_pieces(order.scale).values():
        if found := measure_piece(piece, order.scale, place):
            name = piece.name.split("-")[1]
            rows.append(
                [name, percent([found], "clean"), percent([found], "pgd40"), round(100 * found["kept"], 1)]
                + [round(found["distance"], 3)]
            )
            details[name] = found
    expect_pieces(details, place)
    return Result(
        title=f"Figure 4: boundaries around {IMAGES[order.scale]:,} test images, {data_in_words(order)}, 1 seed",
        columns=["network", "clean %", "PGD-40 %", "of the drawn ball with the right class %", "median distance"],
        rows=rows,
        notes=[
            f"The distance is the largest pixel change up to which the drawn"
            f" plane holds the right class (at most {_REACH}, in steps of {2 * _REACH / (_SIDE - 1):.2f}).",
            "Each network's own gradient spans its planes: other directions inside the ball can be worse.",
        ],
        figures={"vision-fig4.png": _draw(details)},
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


def _draw(details: Mapping[str, Row]) -> bytes:
    from matplotlib.patches import Rectangle

    figure, axes = pyplot().subplots(
        len(details), _DRAWN, figsize=(3 * _DRAWN + 1, 3.1 * len(details)), layout="constrained", squeeze=False
    )
    extent = (-_REACH, _REACH, -_REACH, _REACH)
    for row, (name, found) in zip(axes, details.items()):
        for place, each in zip(row, found["drawn"]):
            drawn = place.imshow(each["map"], cmap="tab10", vmin=-0.5, vmax=9.5, origin="lower", extent=extent)
            place.add_patch(Rectangle((-BUDGET, -BUDGET), 2 * BUDGET, 2 * BUDGET, fill=False, linewidth=1.5))
            place.plot(0, 0, "k+")
            place.set(title=f"{name}: a {each['label']}", xlabel="a", ylabel="b")
    figure.colorbar(drawn, ax=axes, ticks=range(10), label="predicted class")
    return png(figure)
