"""Tables II and III and Figures 2 and 3: robust accuracy against capacity, by the paper's recipe and by a cured one.

The paper sees a threshold of capacity between scales 2 and 3. Whether it is one of optimisation, networks that do not
leave the loss of guessing in time, is what the cured recipe and the remarks on each training are for. Beside them stand
networks trained as long without an adversary: the paper says that hardening needs more capacity than they do.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from fewer.report.figure import png
from fewer.studies.order import Order
from fewer.studies.plot import pyplot
from fewer.studies.study import Result
from fewer.systems.vision.studies.measure import Row
from fewer.systems.vision.studies.pieces import run_piece
from fewer.systems.vision.studies.place import Place, data_in_words, expect_pieces, where
from fewer.systems.vision.studies.recipe import DENSE, Recipe, cured, gradual, printed

__all__ = ["PAPER", "capacity_pieces", "curves", "missing", "percent", "recipe_of", "table2", "table3"]

PAPER = {  # clean and attacked accuracy in percent, by scale
    "pgd": ((89.67, 5.5), (93.43, 4.25), (95.92, 3.11), (98.29, 83.96), (98.29, 71.90), (98.99, 84.87)),
    "fgsm": ((94.57, 5.74), (95.54, 6.8), (96.38, 5.66), (98.36, 92.02), (98.84, 88.01), (95.90, 92.09)),
}
_QUICK_PGD = "pgd:0.3,start=centre,mix=0.5,ramp=0"  # 7 steps instead of 40


def capacity_pieces(attack: str, scale: str) -> dict[str, Recipe]:
    """By name: `paper-standard-cnn0`, `cured-pgd-cnn0`, `paper-pgd-cnn0` and so on; when quick, those of minutes."""
    found: dict[str, Recipe] = {}
    for number in (0, 2) if scale == "quick" else range(6):
        wide: dict[str, Any] = {"together": 1} if number > 3 else {}
        found[f"paper-standard-cnn{number}"] = printed(f"paper-standard-cnn{number}", **wide, weights=number < 4)
        if scale != "paper":
            found[f"cured-{attack}-cnn{number}"] = _cured(attack, number, scale, wide)
        found[f"paper-{attack}-cnn{number}"] = printed(f"paper-{attack}-cnn{number}", points=10, **wide)
    return {name: _quick(piece) for name, piece in found.items()} if scale == "quick" else found


def _cured(attack: str, number: int, scale: str, wide: Mapping[str, Any]) -> Recipe:
    name, hardening = f"cured-{attack}-cnn{number}", "pgd:0.3" if attack == "pgd" else "fgsm:0.3,ramp=0.3"
    piece = cured(name, f"cnn{number}", hardening=hardening, points=10, **wide, weights=number < 4)
    if attack == "pgd" and scale == "full" and number in (2, 3):
        densities = (0.1,) if number == 2 else (0.1, 0.03, 0.01)
        piece = dataclasses.replace(piece, prunings=(DENSE, *(gradual(d, piece.steps) for d in densities)))
    return piece


def _quick(piece: Recipe) -> Recipe:
    hardening = _QUICK_PGD if piece.hardening == "paper:0.3" else piece.hardening
    optimizer = dataclasses.replace(piece.optimizer, warmup=min(piece.optimizer.warmup, 40))
    return dataclasses.replace(
        piece, seeds=(0,), batch=128, steps=400, points=4, hardening=hardening, optimizer=optimizer
    )


def recipe_of(name: str) -> str:
    """Of a piece: standard, cured or paper."""
    return "standard" if "-standard-" in name else name.split("-")[0]


def table2(order: Order) -> Result:
    """PGD-trained, PGD-40 attacked."""
    return _table(order, "pgd")


def table3(order: Order) -> Result:
    """FGSM-trained, FGSM attacked; PGD-40 beside it, because FGSM alone is no measure of robustness."""
    return _table(order, "fgsm")


def _table(order: Order, attack: str) -> Result:
    place = where(order)
    rows, details = [], {}
    pieces = unpruned(attack, order.scale)
    for name, found in _trained(pieces, place).items():
        number, recipe = int(name[-1]), recipe_of(name)
        beside = ["", ""] if recipe == "standard" else list(PAPER[attack][number])
        rows.append(
            [number, found[0]["weights"], recipe, len(found)]
            + [percent(found, key) for key in ("clean", "fgsm", "pgd40")]
            + beside
        )
        details[name] = found
    expect_pieces(rows, place)
    numbered, upper = ("Table II", "PGD-40") if attack == "pgd" else ("Table III", "FGSM")
    return Result(
        title=f"{numbered}: networks trained with {upper}, and without, {data_in_words(order)}, eps 0.3; accuracy in "
        f"percent, mean ± deviation over seeds",
        columns=[
            "scale", "weights", "recipe", "seeds", "clean", "FGSM", "PGD-40", "paper, clean", f"paper, {upper}",
        ],
        rows=rows,
        notes=[*_NOTES[attack], *missing(pieces, details)],
        details=details,
    )  # fmt: skip


def unpruned(attack: str, scale: str) -> dict[str, Recipe]:
    """The pieces of a table, without the densities that other studies want of some."""
    pieces = capacity_pieces(attack, scale)
    return {name: dataclasses.replace(piece, prunings=(DENSE,)) for name, piece in pieces.items()}


def _trained(pieces: Mapping[str, Recipe], place: Place) -> dict[str, list[Row]]:
    found = {name: run_piece(piece, place) for name, piece in pieces.items()}
    return {name: rows for name, rows in found.items() if rows}


def missing(pieces: Mapping[str, Recipe], found: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    """A sentence about seeds that were asked for and not trained."""
    lacking = []
    for name, piece in pieces.items():
        seeds = set(piece.seeds) - {row["seed"] for row in found.get(name, ())}
        if seeds:
            some = "" if len(seeds) == len(piece.seeds) else f" (seed {', '.join(map(str, sorted(seeds)))})"
            lacking.append(f"{name}{some}")
    return [f"Not trained: {', '.join(lacking)}."] if lacking else []


_HALF = "half clean and half attacked loss, the whole budget from the first step, SGD 1e-3"
_STANDARD = "standard: as long, without an adversary; the paper prints no such row."
_NOTES = {
    "pgd": [
        f"paper: PGD-40 from the clean image, {_HALF}. cured: PGD-7 from a random start, attacked images only, budget "
        f"ramped over 30 % of the steps, Adam. {_STANDARD}",
    ],
    "fgsm": [
        "The paper attacks with FGSM what was trained with FGSM; the PGD-40 column says how much of it is robust.",
        f"paper: {_HALF}. cured: attacked images only, budget ramped over 30 % of the steps, Adam. {_STANDARD}",
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
    place = where(order)
    found = {attack: _trained(unpruned(attack, order.scale), place) for attack in ("fgsm", "pgd")}
    rows = [
        [f"Fig. {2 if attack == 'fgsm' else 3}", int(name[-1]), recipe_of(name), len(each)]
        + [percent(each, "clean"), percent(each, _own(attack))]
        + (["", ""] if recipe_of(name) == "standard" else list(PAPER[attack][int(name[-1])]))
        for attack, by_name in found.items()
        for name, each in by_name.items()
    ]
    expect_pieces(rows, place)
    return Result(
        title=f"Figures 2 and 3: accuracy against capacity, trained and attacked with FGSM (2) and PGD (3), "
        f"{data_in_words(order)}, eps 0.3, in percent",
        columns=["figure", "scale", "recipe", "seeds", "clean", "attacked", "paper, clean", "paper, attacked"],
        rows=rows,
        figures={"vision-fig2-3.png": _draw(found)},
        details={"runs": _curves(found), "paper": PAPER},
    )


def _curves(found: Mapping[str, Mapping[str, Sequence[Row]]]) -> dict[str, Any]:
    """What is drawn; the tables hold the rest of every run."""
    drawn = ("seed", "clean", "fgsm", "pgd40", "points")
    return {
        attack: {name: [{key: row[key] for key in drawn} for row in rows] for name, rows in by_name.items()}
        for attack, by_name in found.items()
    }


def _own(attack: str) -> str:
    return "fgsm" if attack == "fgsm" else "pgd40"


def _draw(found: Mapping[str, Mapping[str, list[dict[str, Any]]]]) -> bytes:
    figure, axes = pyplot().subplots(2, 2, figsize=(12, 8), layout="constrained")
    for (top, below), (attack, by_name) in zip(axes.T, found.items()):
        title = f"Fig. {2 if attack == 'fgsm' else 3}: {attack.upper()}"
        top.plot(range(6), [pair[1] for pair in PAPER[attack]], "k--", marker="o", label="printed in the paper")
        for recipe, colour in (("paper", "#b03030"), ("cured", "#4878a8"), ("standard", "#808080")):
            runs = {name: rows for name, rows in by_name.items() if recipe_of(name) == recipe}
            scales = [int(name[-1]) for name in runs]
            means = [100 * statistics.fmean(row[_own(attack)] for row in rows) for rows in runs.values()]
            top.plot(scales, means, marker="s", color=colour, label=f"{recipe}, ours")
            for number, rows in zip(scales, runs.values()):
                points = rows[0]["points"]
                values = [100 * point[_own(attack)] for point in points]
                shade = 0.3 + 0.7 * number / 5
                if points:
                    below.plot(
                        [p["step"] for p in points], values, color=colour, alpha=shade, label=f"{recipe} {number}"
                    )
        top.set(title=title, xlabel="capacity scale", ylabel="accuracy under attack, %", ylim=(0, 100))
        below.set(title="on the way, first seed", xlabel="step", ylabel="accuracy under attack, %", ylim=(0, 100))
        top.legend()
        below.legend(fontsize=7, ncols=2)
    return png(figure)
