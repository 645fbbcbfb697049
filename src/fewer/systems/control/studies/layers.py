"""The control paper's Figure 3: weights that are left in each layer."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from fewer.core.engines.state import fresh_modules
from fewer.pruning.pruning import layer_keeps
from fewer.report.figure import png
from fewer.studies.order import Order
from fewer.studies.plot import pyplot
from fewer.studies.study import Result
from fewer.systems.control.studies import memory
from fewer.systems.control.studies.memory import masks_of, setting, task_of
from fewer.systems.control.studies.training.scales import SEEDS

__all__ = ["about", "fig3"]

SPARSITY = 0.95


def about(order: Order) -> dict[str, Any]:
    """Every setting that the order stands for."""
    return {**memory.about(order), "sparsities": [SPARSITY], "seeds": list(SEEDS[order.scale])}


def fig3(order: Order) -> Result:
    """Weights kept in each layer at 95 %, mean and deviation over five seeds."""
    task = task_of(order)
    seeds = SEEDS[order.scale]
    kept: dict[str, dict[str, list[int]]] = {}
    sizes: dict[str, int] = {}
    for method in ("snip", "grasp"):
        for seed in seeds:
            modules = fresh_modules(task, seed)
            found = layer_keeps(modules, masks_of(task, modules, method, SPARSITY, seed))
            for layer, (count, size) in found.items():
                if layer.split(".")[0] in ("actor", "critic", "encoder", "decoder"):
                    kept.setdefault(layer, {}).setdefault(method, []).append(count)
                    sizes[layer] = size
    rows = []
    for layer, counts in kept.items():
        cells: list[Any] = [layer.removesuffix(".weight"), sizes[layer]]
        for method in ("snip", "grasp"):
            mean = statistics.fmean(counts[method])
            cells += [f"{mean:.0f} ± {statistics.pstdev(counts[method]):.0f}", f"{100 * mean / sizes[layer]:.1f}"]
        rows.append(cells)
    return Result(
        title=f"Figure 3: weights left in each layer, 95 % removed; {setting(order)}, {len(seeds)} seeds",
        columns=["layer", "weights", "SNIP keeps", "%", "GraSP keeps", "%"],
        rows=rows,
        notes=["Mean and deviation over seeds, before training. The paper draws bars without numbers."],
        figures={"control-fig3.png": _draw_layers(kept, sizes)},
        details={"kept": kept, "weights": sizes},
    )


def _draw_layers(kept: Mapping[str, Mapping[str, Sequence[int]]], sizes: Mapping[str, int]) -> bytes:
    figure, axis = pyplot().subplots(figsize=(10, 4.5), layout="constrained")
    places = range(len(kept))
    for shift, (method, colour) in zip((-0.2, 0.2), (("snip", "#4878a8"), ("grasp", "#b03030"))):
        shares = [100 * statistics.fmean(found[method]) / sizes[layer] for layer, found in kept.items()]
        spread = [100 * statistics.pstdev(found[method]) / sizes[layer] for layer, found in kept.items()]
        axis.bar([place + shift for place in places], shares, 0.4, yerr=spread, label=method, color=colour)
    axis.set_xticks(list(places), [layer.removesuffix(".weight") for layer in kept], rotation=40, ha="right")
    axis.set(ylabel="weights left, %", title="95 % removed before training")
    axis.legend()
    return png(figure)
