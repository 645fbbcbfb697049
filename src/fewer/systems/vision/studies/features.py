"""Figures 5 to 8: how useful the features of a classifier are, and how many stay useful under attack.

Threes against sevens with 100 features as in the paper, on a network trained normally and on one that was hardened;
then all ten classes. Figure 8 is computed with the step that the paper prints, which cannot cross the ball, and with
steps that can.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from fewer.pruning.features.usefulness import Reach, Usefulness, usefulness
from fewer.report.figure import png
from fewer.studies.order import Order
from fewer.studies.plot import pyplot
from fewer.studies.study import Result
from fewer.systems.vision.studies.capacity import percent
from fewer.systems.vision.studies.measure import Row
from fewer.systems.vision.studies.pieces import run_piece, saved_modules
from fewer.systems.vision.studies.place import Place, data_in_words, expect_pieces, where
from fewer.systems.vision.studies.recipe import DENSE, Recipe, cured

__all__ = ["PRINTED", "SAMPLES", "correlation", "feature_pieces", "features", "measure_piece"]

SAMPLES = {"quick": 120, "full": 1000, "paper": 1000}  # images that features are judged on
HARDENING = "pgd:0.3,steps=3,step=0.15,ramp=0.5"
PRINTED = "3 x 0.01, as printed"
REACHES = {
    PRINTED: Reach(step=0.01, steps=3),
    "3 x 0.1": Reach(step=0.1, steps=3),
    "10 x 0.05": Reach(step=0.05, steps=10),
}
_KEPT = "usefulness.json"
_FIG6 = "actual, with its weight w: E[(2y - 1)(2 s(w f) - 1)] (Fig. 6)"


_TITLES = {"3,7": "3 against 7", "": "ten classes"}


def feature_pieces(scale: str) -> dict[str, Recipe]:
    """Threes against sevens, then ten classes, each trained normally and hardened."""
    steps = 300 if scale == "quick" else 3000
    found = {}
    for classes, short in (("3,7", "37"), ("", "10")):
        for name, hardening in (("standard", ""), ("hardened", HARDENING)):
            found[f"features-{name}-{short}"] = cured(
                f"features-{name}-{short}", "cnn1", steps=steps * (2 if hardening else 1), hardening=hardening,
                batch=128, classes=classes, validation=0.1, seeds=(0,) if scale == "quick" else (0, 1, 2),
            )  # fmt: skip
    return found


def features(order: Order) -> Result:
    """Usefulness and robust usefulness of every feature of four networks, as numbers and as the four figures."""
    place = where(order)
    rows: list[list[Any]] = []
    details: dict[str, Any] = {}
    for piece in feature_pieces(order.scale).values():
        title, name = _TITLES[piece.classes], piece.name.split("-")[1]
        numbers = measure_piece(piece, order.scale, place)
        if not numbers:
            continue
        details[f"{title}, {name}"] = numbers
        rows.append(
            [title, name, len(numbers), percent(numbers, "clean"), percent(numbers, "pgd40"), *_counts(numbers)]
        )
    expect_pieces(rows, place)
    paper: list[Any] = ["3 against 7", "standard, paper", "", "", "", "most / not told / few", "rising"]
    paper += [0 if key == PRINTED else "" for key in REACHES] + [""]
    return Result(
        title=f"Figures 5 to 8: features that are useful, and robustly useful, of 100, {data_in_words(order)}, mean "
        "over seeds",
        columns=[
            "classes", "network", "seeds", "clean %", "PGD-40 %", "useful / dead / harmful",
            "correlation, living / all", *(f"robust, {key}" for key in REACHES), "robust standardised, 10 x 0.05",
        ],
        rows=[paper, *rows],
        notes=[
            "Robust: the usefulness stays above zero under a search of the given steps in a ball of 0.3.",
            "The paper prints 3 steps of 0.01: they reach 0.03 of 0.3.",
            "Useful: the expectation of Section IV, (2y - 1)(2 s(w f) - 1), is above zero (Figure 6); the correlation "
            "is of it and of the normalised usefulness (Figure 7).",
            "Dead features never fire on the training images; they are neither useful nor robust.",
        ],
        figures={"vision-fig5-8.png": _draw(details)},
        details=details,
    )  # fmt: skip


def measure_piece(piece: Recipe, scale: str, place: Place) -> list[Row]:
    """Accuracies and the usefulness of every feature, for each seed; kept beside its metrics."""
    found = []
    for row in run_piece(piece, place):
        folder = place.folder(piece, DENSE, row["seed"])
        if not (folder.path / _KEPT).exists() and place.source:
            # All classes ask for both ends of every feature; fewer images, and the strongest search, are enough.
            reaches = REACHES if piece.classes else {"10 x 0.05": REACHES["10 x 0.05"]}
            limit, task = SAMPLES[scale] if piece.classes else SAMPLES[scale] // 2, place.images_of(piece)
            modules = saved_modules(piece, DENSE, row["seed"], place)
            measured = {key: usefulness(task, modules, limit=limit, reach=reach) for key, reach in reaches.items()}
            folder.write_json(_KEPT, _numbers(measured))
        if (folder.path / _KEPT).exists():
            found.append({key: row[key] for key in ("seed", "clean", "pgd40")} | folder.read_json(_KEPT))
    return found


def _counts(numbers: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Means over seeds."""
    counted = [_count(each) for each in numbers]
    robust = [_mean([each["robust"][key] for each in counted if key in each["robust"]]) for key in REACHES]
    return [
        " / ".join(_mean([each[key] for each in counted]) for key in ("useful", "dead", "harmful")),
        " / ".join(f"{statistics.fmean(each[key] for each in counted):.2f}" for key in ("living", "all")),
        *robust,
        _mean([each["standardised"] for each in counted]),
    ]


def _mean(values: Sequence[float]) -> str:
    return f"{statistics.fmean(values):.1f}".removesuffix(".0") if values else ""


def _count(numbers: Mapping[str, Any]) -> dict[str, Any]:
    """How many features are useful, dead, harmful and robust, and how the two usefulnesses go together."""
    living, every = correlation(numbers)
    raw, dead = (torch.tensor(numbers[key]) for key in ("raw", "dead"))
    strongest = numbers["robust"]["10 x 0.05"]["robust_standard"]
    return {
        "useful": int((raw > 0).sum()), "dead": int(dead.sum()), "harmful": int((raw < 0).sum()),
        "living": living, "all": every,
        "robust": {key: sum(value > 0 for value in each["robust_raw"]) for key, each in numbers["robust"].items()},
        "standardised": sum(value > 0 for value in strongest),
    }  # fmt: skip


def correlation(numbers: Mapping[str, Any]) -> tuple[float, float]:
    """Of normalised and actual usefulness: over living features, and over all."""
    both = torch.tensor([numbers["standard"], numbers["raw"]])
    parts = (both[:, ~torch.tensor(numbers["dead"])], both)
    living, every = (float(torch.corrcoef(part)[0, 1]) for part in parts)
    return living, every


def _numbers(measured: Mapping[str, Usefulness]) -> dict[str, Any]:
    found = next(iter(measured.values()))
    robust = {
        key: {kind: table.score(kind).tolist() for kind in ("robust_raw", "robust_standard")}
        for key, table in measured.items()
    }
    plain = {kind: found.score(kind).tolist() for kind in ("raw", "standard")}
    return {**plain, "dead": found.dead.tolist(), "robust": robust}


def _draw(details: Mapping[str, Sequence[Mapping[str, Any]]]) -> bytes:
    """Figures 5 to 8 in columns, a row for each network that tells threes from sevens; the first seed."""
    pictured = {name.split(", ")[1]: found[0] for name, found in details.items() if name.startswith(_TITLES["3,7"])}
    figure, axes = pyplot().subplots(
        len(pictured), 4, figsize=(17, 3.6 * len(pictured)), layout="constrained", squeeze=False
    )
    for row, (name, found) in zip(axes, pictured.items()):
        for place, key, title in ((row[0], "standard", f"{name}: normalised (Fig. 5)"), (row[1], "raw", _FIG6)):
            place.stairs(sorted(found[key], reverse=True), fill=True, color="#4878a8")
            place.set(title=title, xlabel="feature, sorted", ylabel="usefulness")
        row[2].scatter(found["standard"], found["raw"], s=14, color="#4878a8")
        row[2].set(title="both (Fig. 7)", xlabel="normalised", ylabel="actual")
        for (key, each), colour in zip(found["robust"].items(), ("#b0b0b0", "#e0a030", "#b03030")):
            row[3].plot(sorted(each["robust_raw"], reverse=True), label=key, color=colour)
        row[3].axhline(0, color="black", linewidth=0.8)
        row[3].set(title="robust (Fig. 8)", xlabel="feature, sorted")
        row[3].legend(title="search")
    return png(figure)
