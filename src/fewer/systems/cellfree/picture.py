"""A map with the access points, a phone and who serves it, the master's shadowing in the background."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fewer.core.errors import UserError
from fewer.systems.cellfree.task.arrays import Floats
from fewer.systems.cellfree.task.selectors.selector import Selection
from fewer.systems.cellfree.task.survey import World

__all__ = ["draw"]


def draw(path: str | Path, world: World, phone: Floats, selection: Selection, *, pixels: int = 160) -> None:
    """Write a PNG: how strongly the master is heard, candidates, the choice, and the access points that truly serve."""
    from matplotlib.figure import Figure

    phone = np.asarray(phone, dtype=np.float64)
    if phone.shape != (2,) or len(selection) != 1:
        raise UserError(
            f"a phone of shape {phone.shape} and {len(selection)} selections", "one phone and its selection"
        )
    deployment = world.deployment
    (west, south), side = deployment.corner_m, deployment.side_m
    master = int(selection.candidates[0, 0])
    points = deployment.access_points
    grid = deployment.grid(pixels)
    heard = deployment.gain_to(grid, np.full((len(grid), 1), master)).reshape(pixels, pixels)
    gain = deployment.gain_db(phone[None])[0]
    served = gain.max() - gain < world.settings.threshold_db
    near, true = points[selection.candidates[0]], points[served]
    figure = Figure(figsize=(6.4, 5.4), layout="constrained")
    axes = figure.subplots()
    shown = axes.imshow(heard, origin="lower", extent=(west, west + side, south, south + side), cmap="Greys", alpha=0.6)
    figure.colorbar(shown, label=f"signal of the master, {deployment.name(master)}, in dB", shrink=0.8)
    axes.scatter(points[:, 0], points[:, 1], s=14, color="#888888", label="access points")
    axes.scatter(near[:, 0], near[:, 1], s=30, facecolors="none", edgecolors="#d08030", label="candidates")
    axes.scatter(true[:, 0], true[:, 1], s=110, facecolors="none", edgecolors="#308040", label="truly serving")
    for chosen in selection.access_points():
        axes.plot(*np.stack([phone, points[chosen]]).T, color="#2060a0", linewidth=1.6)
    axes.scatter(points[master, 0], points[master, 1], s=60, marker="^", color="#2060a0", label="master", zorder=3)
    axes.scatter(phone[0], phone[1], s=80, marker="*", color="#c03030", label="phone", zorder=3)
    for one in {*selection.access_points().tolist(), *np.flatnonzero(served).tolist()}:
        axes.annotate(deployment.name(one), points[one], (5, 5), textcoords="offset points", fontsize=7)
    axes.ticklabel_format(useOffset=False, style="plain")  # coordinates such as UTM are long, and whole
    axes.tick_params(axis="x", rotation=30)
    axes.set(xlim=(west, west + side), ylim=(south, south + side), xlabel="m", ylabel="m")
    axes.legend(loc="upper right", fontsize=7)
    figure.savefig(path, dpi=130)
