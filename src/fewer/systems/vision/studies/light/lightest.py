"""How light a robust network can be: robust accuracy against kept weights, for every recipe.

Gradual magnitude pruning during hardening against SNIP and GraSP on attacked batches before it, learned scores
(HYDRA) and features removed by their usefulness. The light networks face the whole attack suite.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from fewer.pruning.pruning import Pruning
from fewer.report.figure import png
from fewer.studies.order import Order
from fewer.studies.plot import pyplot
from fewer.studies.study import Result
from fewer.systems.vision.studies.capacity import capacity_pieces, percent
from fewer.systems.vision.studies.light.rivals import run_features, run_scores
from fewer.systems.vision.studies.light.suite import SUITE, audit_saved
from fewer.systems.vision.studies.measure import Row
from fewer.systems.vision.studies.pieces import run_piece
from fewer.systems.vision.studies.place import Place, data_in_words, expect_pieces, where
from fewer.systems.vision.studies.recipe import DENSE, Recipe, cured, gradual, label

__all__ = [
    "SHORT",
    "audit",
    "features_base",
    "light_pieces",
    "lightest",
    "small_pieces",
    "train_features",
    "train_scores",
]

SMALL = "small-cnn"
DENSITIES = {"small-1": 0.01, "small-3": 0.03, "small-10": 0.099, "small-dense": 1.0}  # 3,116, 9,348 and 30,848 kept
# learned scores: densities and steps; features: steps a round and images that they are judged on
_LONG = ((0.1, 0.03, 0.01), 2400, 1000, 200)
SHORT = {"quick": ((0.03,), 60, 40, 40), "full": _LONG, "paper": _LONG}
LIGHTEST = 0.01026  # 3,197 kept
VARIANTS = {
    "margin": ", hardened at 0.35",
    "contrast": ", high contrast",
    "lamp": ", high contrast",
}
PUBLISHED = (("TRADES (Zhang 2019)", 92.81, 312_202), ("Madry 2018", 88.5, 3_274_634))


def small_pieces(scale: str) -> dict[str, Recipe]:
    """The small network of the robustness literature, one piece a density; they share a folder."""
    if scale == "quick":
        # convolutions this wide take minutes a hundred steps on two cores: the family's scale 2 stands in
        base = cured("light", "cnn2", steps=400, batch=128, seeds=(0,))
    else:
        base = cured("small", SMALL, together=1)
    found = {
        name: dataclasses.replace(base, prunings=(DENSE if density == 1 else gradual(density, base.steps),))
        for name, density in DENSITIES.items()
    }
    if scale != "quick":
        # hardened beyond the budget it is judged at: the attacks that wander longest then have less to find
        for name in ("small-1", "small-3"):
            wider = dataclasses.replace(found[name], name="margin", hardening="pgd:0.35,steps=10,step=0.0875")
            found[name.replace("small", "margin")] = wider
            found[name.replace("small", "contrast")] = _high_contrast("contrast", DENSITIES[name])
        found["lamp-1"] = _layers_compared(_high_contrast("lamp", LIGHTEST))
    return found


def _high_contrast(name: str, density: float) -> Recipe:
    """Black and white before the network, three times the learning rate, an adversary whose steps fall."""
    base = cured(name, SMALL, hardening="pgd:0.3,steps=10,step=0.3,last=0.01,start=mixed,aim=margin")
    return dataclasses.replace(
        base, contrast=80.0, together=1, optimizer=dataclasses.replace(base.optimizer, lr=3e-3),
        prunings=(gradual(density, base.steps),),
    )  # fmt: skip


def _layers_compared(piece: Recipe) -> Recipe:
    """Pruned in many small steps, by magnitudes that count for more where a layer has few left."""
    every = max(1, piece.steps // 300)
    prunings = tuple(dataclasses.replace(pruning, method="lamp", every=every) for pruning in piece.prunings)
    return dataclasses.replace(piece, prunings=prunings)


def rival_pieces(scale: str) -> dict[str, Recipe]:
    """Pruning before training, scored on attacked batches, at the densities of the gradual rows."""
    found = {}
    for method in ("snip", "grasp"):
        densities = (0.1, 0.03, 0.01) if scale != "quick" else (0.03,)
        prunings = tuple(Pruning(method, 1 - density, "global", samples=200) for density in densities)
        base = cured(f"start-{method}", "cnn3") if scale != "quick" else small_pieces("quick")["small-3"]
        found[f"start-{method}"] = dataclasses.replace(base, name=f"start-{method}", prunings=prunings)
    return found


def light_pieces(scale: str) -> dict[str, Recipe]:
    """All that are trained from first weights; of the capacity family those that the light ones are compared with."""
    capacity = capacity_pieces("pgd", "full") if scale != "quick" else {}
    family = {name: piece for name, piece in capacity.items() if name in ("cured-pgd-cnn2", "cured-pgd-cnn3")}
    return {**small_pieces(scale), **family, **rival_pieces(scale)}


def audit(scale: str, piece: Recipe, place: Place) -> list[Row]:
    """The whole suite on what a piece saved."""
    return audit_saved(piece, place, SUITE[scale], limit=None if scale != "quick" else 60)


def _base(scale: str) -> Recipe:
    """The hardened, unpruned networks that learned scores and useful features start from."""
    return (
        capacity_pieces("pgd", "full")["cured-pgd-cnn3"] if scale != "quick" else small_pieces("quick")["small-dense"]
    )


def train_scores(scale: str, place: Place, seeds: Sequence[int] = ()) -> list[Row]:
    """HYDRA at the densities of the other rivals; without seeds, with the base's."""
    densities, steps, _, _ = SHORT[scale]
    base = _base(scale)
    return run_scores(dataclasses.replace(base, seeds=tuple(seeds) or base.seeds), densities, steps, place)


def train_features(scale: str, place: Place) -> list[Row]:
    """Iterative pruning by usefulness, and by magnitude and chance at the same sizes."""
    _, _, steps, samples = SHORT[scale]
    base = features_base(scale)
    run_piece(base, place)
    return run_features(base, steps, place, samples=samples)


def features_base(scale: str) -> Recipe:
    """Usefulness is measured on images that nobody was trained with."""
    return dataclasses.replace(
        _base(scale), name="features-base", prunings=(DENSE,), seeds=(0,), validation=0.1, points=0
    )


def lightest(order: Order) -> Result:
    """Every recipe's robust accuracy against its kept weights; the whole suite for the light networks."""
    scale = order.scale
    place = where(order)
    rows: list[Row] = []
    audits: list[Row] = []
    for name, piece in light_pieces(scale).items():
        rows += run_piece(piece, place)
        if name in (small_pieces(scale) if scale != "quick" else ("small-3",)):
            audits += [{"piece": piece.name, **row} for row in audit(scale, piece, place)]
    rows += train_scores(scale, place) + train_features(scale, place)
    expect_pieces(rows, place)
    return Result(
        title=f"Robust accuracy against kept weights, {data_in_words(order)}, eps 0.3, in percent, mean ± deviation "
        "over seeds; every number names its attack",
        columns=["network", "recipe", "weights", "kept", "biases", "seeds", "clean", "FGSM", "PGD-40", "whole suite"],
        rows=_table(rows, audits),
        notes=[
            *([_CUT] if scale == "quick" else []),
            *_NOTES,
            *sorted({row["refused"] for row in rows if "refused" in row}),
        ],
        figures={"vision-lightest.png": _draw([row for row in rows if "pgd40" in row], audits)},
        details={"runs": rows, "suite": audits},
    )


_CUT = (
    "Quick: the capacity family's scale 2 instead of the 312,202-parameter network, one seed, 10,000 embedded digits, "
    "400 steps of 128, 500 test images (60 for the suite, with 200 Square queries), learned scores 2 x 60 steps, "
    "features 40 steps a round. Full: 40 epochs of 60,000 images, three seeds, 10,000 test images."
)
_NOTES = [
    "gradual: global magnitude between 20 % and 60 % of the hardening. start: scored on attacked batches before it. "
    "learned: HYDRA. features: whole features removed, so weights is what is left of the network.",
    "high contrast: pixels pass a sigmoid of steepness 80 first, whose slope gradient attacks see as that of one of "
    "steepness 10; in training the adversary takes 10 steps from 0.3 down to 0.01 up the margin; learning rate 0.003. "
    "lamp: each weight against the larger ones of its layer, 122 prunings instead of 21.",
    "The suite is FGSM, PGD-40, PGD-100 x 10, APGD-CE, APGD-T, FAB-T and Square, the worst case for each image. "
    "An empty cell: not run. Published under AutoAttack: 92.8 % (TRADES, 312,202 parameters), 88.5 % (Madry 2018, "
    "3,274,634), 96.3 % (best).",
]


def _table(rows: Sequence[Row], audits: Sequence[Row]) -> list[list[Any]]:
    table = []
    for key, group in _grouped([row for row in rows if "pgd40" in row]).items():
        network, recipe, kept = key
        first = group[0]
        table.append(
            [network, recipe, first["weights"], kept, first["biases"], len(group)]
            + [percent(group, name) for name in ("clean", "fgsm", "pgd40")]
            + [_suite(_audits_of(first, audits), len(group))]
        )
    return table


def _suite(audits: Sequence[Row], trained: int) -> str:
    """What the suite left, and of which seeds where it did not meet all."""
    some = f" (seed {', '.join(str(audit['seed']) for audit in audits)})" if 0 < len(audits) < trained else ""
    return f"{percent(audits, 'robust')}{some}"


def _grouped(rows: Sequence[Row]) -> dict[tuple[str, str, int], list[Row]]:
    groups: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        recipe = "dense" if row.get("density") == 1 else f"{row['when']} {row['method']}"
        recipe += VARIANTS.get(row["piece"], "")
        groups.setdefault((row["network"], recipe, row["kept"]), []).append(row)
    return groups


def _audits_of(row: Row, audits: Sequence[Row]) -> list[Row]:
    """Audits of the networks that this row is about: same network, same pruning."""
    if row["when"] != "gradual":
        return []
    name = label(dataclasses.replace(DENSE, method=row["method"], sparsity=1 - row["density"]))
    return [audit for audit in audits if audit["piece"] == row["piece"] and audit["pruning"] == name]


def _draw(rows: Sequence[Mapping[str, Any]], audits: Sequence[Row]) -> bytes:
    figure, axis = pyplot().subplots(figsize=(9, 6), layout="constrained")
    lines: dict[str, list[tuple[int, float]]] = {}
    for (network, recipe, kept), group in _grouped([dict(row) for row in rows]).items():
        name = f"{network}, {'gradual magnitude' if recipe == 'dense' else recipe}, PGD-40"
        lines.setdefault(name, []).append((kept, 100 * statistics.fmean(row["pgd40"] for row in group)))
        if found := _audits_of(group[0], audits):
            worst = 100 * statistics.fmean(audit["robust"] for audit in found)
            lines.setdefault(name.replace("PGD-40", "whole suite"), []).append((kept, worst))
    recipes = list(dict.fromkeys(name.rpartition(", ")[0] for name in lines))
    for name, points in lines.items():
        recipe, _, attack = name.rpartition(", ")
        colour = pyplot().get_cmap("tab20")(recipes.index(recipe) % 20)
        axis.plot(*zip(*sorted(points)), "o-" if attack == "PGD-40" else "s--", color=colour, label=name)
    for name, value, parameters in PUBLISHED:
        axis.plot([parameters], [value], "k*", markersize=10)
        axis.annotate(name, (parameters, value), textcoords="offset points", xytext=(-4, -14), ha="right", fontsize=8)
    axis.set(xscale="log", xlabel="weights kept", ylabel="robust accuracy, %", title="eps 0.3; stars: AutoAttack")
    axis.legend(fontsize=8)
    return png(figure)
