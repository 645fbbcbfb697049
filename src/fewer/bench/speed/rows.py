"""Every network, sparsity and batch as rows of `fewer bench sparse`, with the bars that they are held to."""

from __future__ import annotations

from fewer.bench.row import Row
from fewer.bench.speed.curve import DENSITIES, Curve, curve, shipped
from fewer.bench.speed.networks import subjects
from fewer.zoo import names

__all__ = ["BATCHES", "bars", "speed_rows"]

BATCHES = (1, 16, 128)
_QUICK, _FEW = ("MLP 256-1024-1024-10",), (0.05, 0.3)
_NEVER_SLOWER, _SELDOM_SLOWER, _DENSE = 0.8, 0.5, 0.3  # times onnxruntime, up to this density and above it
# times onnxruntime at a density and a batch, beyond what holds for all
_ASKED: dict[tuple[str, float], tuple[float, tuple[int, ...]]] = {
    ("ResNet-18", 0.1): (2.2, (1, 16)),
    ("ResNet-18", 0.05): (4.0, (1, 16)),
    ("MLP 256-1024-1024-10", 0.05): (9.0, (1,)),
    ("MLP 17-400-300-6", 0.05): (9.0, (1,)),
    ("GRU 64-256, 32 steps", 0.1): (1.5, BATCHES),
}
_SHIPPED = {"digits-9348": 4.0}


def bars(one: Curve) -> dict[float, float]:
    """What is asked at each of its densities."""
    found = {}
    for density in one.ours:
        least = _NEVER_SLOWER if density <= _DENSE else _SELDOM_SLOWER
        asked, batches = _ASKED.get((one.name, density), (least, ()))
        found[density] = asked if one.batch in batches else _SHIPPED.get(one.name, least)
    return found


def speed_rows(*, quick: bool) -> list[Row]:
    """Measured now; quickly: one network at two densities."""
    if quick:
        found = [curve(subjects()[name], 1, densities=_FEW, quick=True) for name in _QUICK]
    else:
        found = [curve(one, batch, densities=DENSITIES) for one in subjects().values() for batch in BATCHES]
        found += [shipped(name, batch) for name in names() for batch in BATCHES]
    return [row for one in found for row in one.rows(bars(one))]
