"""Tables II and III and Figures 2 and 3: robust accuracy against capacity, by the paper's recipe and by a cured one.

The paper sees a threshold of capacity between scales 2 and 3. Whether it is one of optimisation, networks that do not
leave the loss of guessing in time, is what the cured recipe and the remarks on each training are for.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from fewer.core.engines.optimizer import Optimizer
from fewer.report.figure import png
from fewer.studies.order import Order
from fewer.studies.plot import pyplot
from fewer.studies.study import Result
from fewer.systems.vision.studies.pieces import DENSE, Recipe, cured, expect_pieces, gradual, run_piece, where

__all__ = ["capacity_pieces", "curves", "table2", "table3"]

PAPER = {  # clean and attacked accuracy in percent, by scale
    "pgd": ((89.67, 5.5), (93.43, 4.25), (95.92, 3.11), (98.29, 83.96), (98.29, 71.90), (98.99, 84.87)),
    "fgsm": ((94.57, 5.74), (95.54, 6.8), (96.38, 5.66), (98.36, 92.02), (98.84, 88.01), (95.90, 92.09)),
}
_EPOCHS = 50
_PAPER_STEPS = round(_EPOCHS * 60000 / 128)


def capacity_pieces(attack: str, scale: str) -> dict[str, Recipe]:
    """By name: `paper-pgd-cnn0`, `cured-pgd-cnn0` and so on. Scales 0 to 5, or when quick those that take minutes."""
    found: dict[str, Recipe] = {}
    for number in range(6) if scale == "full" else (0, 2):
        network = f"cnn{number}"
        wide = {"together": 1, "weights": False} if number > 3 else {}
        steps = 9400 if scale == "full" else 400
        hardening = "pgd:0.3" if attack == "pgd" else "fgsm:0.3,ramp=0.3"
        name = f"cured-{attack}-{network}"
        found[name] = _quick(cured(name, network, steps=steps, hardening=hardening, points=10, **wide), scale)
        if attack == "pgd" and scale == "full" and number in (2, 3):
            densities = (0.1,) if number == 2 else (0.1, 0.03, 0.01)
            found[name] = dataclasses.replace(found[name], prunings=(DENSE, *(gradual(d, steps) for d in densities)))
        name = f"paper-{attack}-{network}"
        preset = "paper-fgsm:0.3" if attack == "fgsm" else "paper:0.3" if scale == "full" else "pgd:0.3,mix=0.5,ramp=0"
        steps = _PAPER_STEPS if scale == "full" else 400
        sgd = Optimizer("sgd", lr=1e-3, momentum=0.9)
        paper = Recipe(
            name, network, preset, steps, 128, sgd, points=10, together=wide.get("together", 0), weights=False
        )
        found[name] = _quick(paper, scale)
    return found


def _quick(piece: Recipe, scale: str) -> Recipe:
    return piece if scale == "full" else dataclasses.replace(piece, seeds=(0,), batch=128, points=4)


def table2(order: Order) -> Result:
    """PGD-trained, PGD-40 attacked."""
    return _table(order, "pgd")


def table3(order: Order) -> Result:
    """FGSM-trained, FGSM attacked; PGD-40 beside it, because FGSM alone is no measure of robustness."""
    return _table(order, "fgsm")


def _table(order: Order, attack: str) -> Result:
    scale = order.scale
    place = where(order)
    rows, details = [], {}
    for name, piece in capacity_pieces(attack, scale).items():
        found = run_piece(dataclasses.replace(piece, prunings=(DENSE,)), place)
        if not found:
            continue
        number = int(piece.network.removeprefix("cnn"))
        clean, attacked = PAPER[attack][number]
        rows.append(
            [number, found[0]["weights"], name.split("-")[0], len(found)]
            + [percent(found, key) for key in ("clean", "fgsm", "pgd40")]
            + [clean, attacked]
        )
        details[name] = found
    expect_pieces(rows, place)
    cut = [] if scale == "full" else [_CUT[attack]]
    return Result(
        title=f"{'Table II: PGD' if attack == 'pgd' else 'Table III: FGSM'}-trained networks, eps 0.3, in percent",
        columns=["scale", "weights", "recipe", "seeds", "clean", "FGSM", "PGD-40", "paper clean", "paper attacked"],
        rows=rows,
        notes=[*cut, *_READING[attack]],
        details=details,
    )


_CUT = {
    "pgd": "Quick: scales 0 and 2, one seed, 10,000 embedded digits, 400 steps of 128, 7 attack steps instead of 40 in "
    "the paper's preset, 500 test images. "
    "Full: six scales, 60,000 images, the paper's 50 epochs, 10,000 test images.",
    "fgsm": "Quick: scales 0 and 2, one seed, 10,000 embedded digits, 400 steps of 128, 500 test images. "
    "Full: six scales, 60,000 images, the paper's 50 epochs, 10,000 test images.",
}
_READING = {
    "pgd": [
        "paper: PGD-40 from the clean image, half clean and half attacked loss, the whole budget from the first step, "
        "SGD 1e-3. cured: PGD-7 from a random start, attacked images only, budget ramped over 30 % of the steps, Adam.",
    ],
    "fgsm": [
        "The paper attacks with FGSM what was trained with FGSM; the PGD-40 column says how much of it is robust.",
        "paper: half clean and half attacked loss, the whole budget from the first step, SGD 1e-3. cured: attacked "
        "images only, budget ramped over 30 % of the steps, Adam.",
    ],
}


def percent(rows: Sequence[Mapping[str, Any]], key: str) -> str:
    """Mean over the rows, with the standard deviation if there are several."""
    values = [100 * row[key] for row in rows if key in row]
    if not values:
        return ""
    spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.1f}{spread}"


def curves(order: Order) -> Result:
    """Figures 2 and 3: accuracy against capacity beside the paper's, and on the way of training."""
    scale = order.scale
    place = where(order)
    found = {
        attack: {
            name: run_piece(dataclasses.replace(piece, prunings=(DENSE,)), place) for name, piece in pieces.items()
        }
        for attack in ("fgsm", "pgd")
        for pieces in [capacity_pieces(attack, scale)]
    }
    rows = [
        [f"Fig. {2 if attack == 'fgsm' else 3}", name, percent(each, "clean"), percent(each, _own(attack))]
        for attack, by_name in found.items()
        for name, each in by_name.items()
        if each
    ]
    expect_pieces(rows, place)
    return Result(
        title="Figures 2 and 3: accuracy against capacity, trained and attacked with FGSM (2) and PGD (3)",
        columns=["figure", "run", "clean %", "attacked %"],
        rows=rows,
        notes=[] if scale == "full" else list(_CUT.values()),
        figures={"vision-fig2-3.png": _draw(found)},
        details={"runs": found, "paper": PAPER},
    )


def _own(attack: str) -> str:
    return "fgsm" if attack == "fgsm" else "pgd40"


def _draw(found: Mapping[str, Mapping[str, list[dict[str, Any]]]]) -> bytes:
    figure, axes = pyplot().subplots(2, 2, figsize=(12, 8), layout="constrained")
    for (top, below), (attack, by_name) in zip(axes.T, found.items()):
        title = f"Fig. {2 if attack == 'fgsm' else 3}: {attack.upper()}"
        top.plot(range(6), [pair[1] for pair in PAPER[attack]], "k--", marker="o", label="printed in the paper")
        for recipe, colour in (("paper", "#b03030"), ("cured", "#4878a8")):
            runs = {name: rows for name, rows in by_name.items() if name.startswith(recipe) and rows}
            scales = [int(name[-1]) for name in runs]
            means = [100 * statistics.fmean(row[_own(attack)] for row in rows) for rows in runs.values()]
            top.plot(scales, means, marker="s", color=colour, label=f"{recipe} recipe, ours")
            for number, rows in zip(scales, runs.values()):
                points = rows[0]["points"]
                values = [100 * point[_own(attack)] for point in points]
                shade = 0.3 + 0.7 * number / 5
                below.plot([p["step"] for p in points], values, color=colour, alpha=shade, label=f"{recipe} {number}")
        top.set(title=title, xlabel="capacity scale", ylabel="accuracy under attack, %", ylim=(0, 100))
        below.set(title="on the way, first seed", xlabel="step", ylabel="accuracy under attack, %", ylim=(0, 100))
        top.legend()
        below.legend(fontsize=7, ncols=2)
    return png(figure)
