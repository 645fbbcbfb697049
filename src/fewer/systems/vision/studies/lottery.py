"""Figures 9 to 12: lottery tickets against new random weights and random masks, trained normally and adversarially.

The network is the one whose percentages the paper prints (784-300-100-10). Beside the paper's FGSM stands PGD, in
training and in the attack, because networks trained with FGSM alone are hardly robust.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from fewer.attack.hardening.harden import harden
from fewer.core.engines.base import Engine, Training
from fewer.core.engines.optimizer import Optimizer
from fewer.core.files.run_folder import Folder
from fewer.pruning.schedules.lottery import Lottery, lottery
from fewer.report.figure import png
from fewer.studies.order import Order
from fewer.studies.plot import pyplot
from fewer.studies.study import Result
from fewer.systems.vision.studies.measure import Row, accuracies
from fewer.systems.vision.studies.pieces import Place, expect_pieces, where

__all__ = ["TRAININGS", "lottery_cost", "tickets", "train_tickets"]

TRAININGS = {"normal": "", "fgsm": "fgsm:0.3,mix=0.5,ramp=0", "pgd": "pgd:0.3"}
STARTS = {"reset": "first weights", "fresh": "new random weights", "shuffled": "random mask"}
# Frankle prunes the output layer at half the rate; at the full rate it keeps 14 weights of 1,000 after 12 rounds.
FULL = Lottery(rounds=12, rate=0.3, output_share=0.5, keep_weights=False)
QUICK = Lottery(rounds=4, rate=0.66, output_share=0.5, keep_weights=False)


def _schedule(scale: str, device: str) -> tuple[Lottery, Training, tuple[int, ...]]:
    """Adam at 1.2e-3 as in the paper's code; 4.8 epochs of 60,000 images a round, or when quick three of 8,000."""
    optimizer = Optimizer(lr=1.2e-3, weight_decay=1e-4)
    if scale == "quick":
        return QUICK, Training(400, 60, optimizer, device), (0,)
    return FULL, Training(2400, 120, optimizer, device), (0, 1, 2)


def lottery_cost(scale: str, kind: str) -> str:
    """What a training costs, in words."""
    settings, training, seeds = _schedule(scale, "cpu")
    lines = len(settings.starts) * len(seeds)
    return (
        f"mlp, {lines} lines in a cohort: {(settings.rounds + 1) * training.steps} cohort steps of batch "
        f"{training.batch} in {settings.rounds + 1} rounds, {TRAININGS[kind] or 'not hardened'}"
    )


def train_tickets(kind: str, scale: str, place: Place) -> list[Row]:
    """Every line in every round of one kind of training; finished rounds are only read."""
    out = place.out / "pieces" / f"lottery-{kind}"
    settings, training, seeds = _schedule(scale, place.device if place.source else "cpu")
    if not place.source:
        rounds = sorted(out.glob("round-*/metrics.json"))
        return [row for path in rounds for row in Folder(path.parent).read_json(path.name)]
    task = place.task("mlp", initial="xavier")
    hardened = harden(task, TRAININGS[kind], total=training.steps) if TRAININGS[kind] else task

    def measure(engine: Engine) -> list[Row]:
        found = [
            accuracies(task, engine.state.modules_of(replica), limit=place.limit)
            for replica in range(engine.state.replicas)
        ]
        shown = ", ".join(f"{row['clean']:.1%} / {row['fgsm']:.1%} / {row['pgd40']:.1%}" for row in found)
        place.log(f"lottery {kind}: clean / FGSM / PGD-40 {shown}")
        return found

    about = {"hardening": TRAININGS[kind], "images": "digits" if place.source == "digits" else "mnist"}
    return lottery(hardened, training, settings, seeds=seeds, out=out, measure=measure, about=about)


def tickets(order: Order) -> Result:
    """All trainings, as a table over rounds and as the four figures with PGD beside them."""
    scale = order.scale
    place = where(order)
    found = {kind: train_tickets(kind, scale, place) for kind in TRAININGS}
    found = {kind: rows for kind, rows in found.items() if rows}
    expect_pieces(found, place)
    table = [
        [kind, number, f"{100 * _mean(rows, number, 'reset', 'share'):.2f}"]
        + [_cell(rows, number, start) for start in STARTS]
        for kind, rows in ((kind, _shares(rows)) for kind, rows in found.items())
        for number in sorted({row["round"] for row in rows})
    ]
    cut = (
        "Quick: one seed, the embedded digits, 400 steps of 60 images a round, two thirds of the survivors pruned, 500 "
        "test images. Full: three seeds, 60,000 images, 2,400 steps of 120 a round (4.8 epochs; the paper's 12), 30 %."
    )
    return Result(
        title="Figures 9 to 12: lottery tickets, clean / FGSM / PGD-40 accuracy in percent, mean over seeds",
        columns=["training", "round", "kept %", *STARTS.values()],
        rows=table,
        notes=[
            *([cut] if scale == "quick" else []),
            "Masks are those of the line with the first weights; new random weights take the same mask, a random mask "
            "keeps as many weights in each layer. Figures are those after the last step.",
        ],
        figures={"vision-fig9-12.png": _draw({kind: _shares(rows) for kind, rows in found.items()})},
        details=found,
    )


def _shares(rows: Sequence[Row]) -> list[Row]:
    return [{**row, "share": row["kept"] / row["weights"]} for row in rows]


def _mean(rows: Sequence[Row], number: int, start: str, key: str) -> float:
    return statistics.fmean(row[key] for row in rows if row["round"] == number and row["start"] == start)


def _cell(rows: Sequence[Row], number: int, start: str) -> str:
    return " / ".join(f"{100 * _mean(rows, number, start, key):.1f}" for key in ("clean", "fgsm", "pgd40"))


def _draw(found: Mapping[str, Sequence[Row]]) -> bytes:
    titles = {"normal": "normal training (Figs. 9, 10)", "fgsm": "FGSM training (Figs. 11, 12)", "pgd": "PGD training"}
    figure, axes = pyplot().subplots(2, len(found), figsize=(5 * len(found), 8), layout="constrained", squeeze=False)
    for column, (kind, rows) in zip(axes.T, found.items()):
        attacked = "pgd40" if kind == "pgd" else "fgsm"
        numbers = sorted({row["round"] for row in rows})
        for axis, key in zip(column, ("clean", attacked)):
            for start, colour in zip(STARTS, ("#4878a8", "#b03030", "#808080")):
                x = [100 * _mean(rows, number, start, "share") for number in numbers]
                means = [100 * _mean(rows, number, start, key) for number in numbers]
                axis.plot(x, means, marker=".", color=colour, label=STARTS[start])
            axis.set(xscale="log", xlabel="weights kept, %", ylabel=f"{key} accuracy, %", ylim=(0, 100))
            axis.invert_xaxis()
            axis.legend()
        column[0].set_title(titles[kind])
    return png(figure)
