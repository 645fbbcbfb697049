"""Figures 9 to 12: lottery tickets against new random weights and random masks, trained normally and adversarially.

The paper's rate, its percentages and its network do not fit each other, so each reading has a name. Beside the paper's
FGSM stands PGD, in training and in the attack, because networks trained with FGSM alone are hardly robust.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fewer.attack.hardening.harden import harden
from fewer.core.engines.base import Engine, Training
from fewer.core.engines.cohort import Cohort
from fewer.core.files.run_folder import Folder
from fewer.core.task import Task
from fewer.pruning.schedules.lottery import Lottery, lottery
from fewer.report.figure import png
from fewer.run.lottery import tickets as rounds_of
from fewer.run.options import job_of
from fewer.studies.order import Order
from fewer.studies.plot import pyplot
from fewer.studies.study import Result
from fewer.systems.vision.presets import PRESETS
from fewer.systems.vision.studies.measure import Row, accuracies
from fewer.systems.vision.studies.place import Place, data_in_words, expect_pieces, where

__all__ = ["KINDS", "READINGS", "Game", "games", "tickets", "train_tickets"]

KINDS = {"normal": "", "fgsm": PRESETS["paper-lottery-fgsm"]["harden"], "pgd": "pgd:0.3"}
STARTS = {"reset": "first weights", "fresh": "new random weights", "shuffled": "random mask"}
PRINTED = {6: 11.9, 12: 1.5, 15: 0.6, 20: 0.2}  # percent of the weights that the paper's text names, by round
SHOWN = (0, 3, 6, 9, 12, 15, 18, 20)  # rounds of the table; the details have all


@dataclass(frozen=True)
class Reading:
    """One way to read how the paper prunes."""

    line: str
    preset: str
    output_share: float = 1.0  # of the rate at the output layer


READINGS = {
    "rate": Reading("30 % of every layer in each round, 784-300-100-10", "paper-lottery"),
    "half": Reading("the same, the output layer at half the rate as Frankle does", "paper-lottery", 0.5),
    "text": Reading("30 % in each round of the network of the text, 784-300-100-100-10", "paper-lottery-text"),
    "percent": Reading("0.2 % of the weights left after 20 rounds", "paper-lottery-percent"),
}
_ASKED: dict[str, dict[str, tuple[str, ...]]] = {  # readings and kinds of training that a scale makes
    "quick": {"half": ("normal", "fgsm", "pgd")},
    "full": {"rate": ("normal", "fgsm", "pgd"), "half": ("normal", "fgsm"), "text": ("normal", "fgsm")},
    "paper": dict.fromkeys(("rate", "text", "percent"), ("normal", "fgsm")),
}


@dataclass(frozen=True)
class Game:
    """What is trained for one reading and one kind of training."""

    reading: str
    kind: str
    network: str
    settings: Lottery
    training: Training
    seeds: tuple[int, ...]

    @property
    def name(self) -> str:
        """Of its piece."""
        return f"lottery-{self.reading}-{self.kind}"

    @property
    def lines(self) -> int:
        """In one cohort."""
        return len(self.settings.starts) * len(self.seeds)

    def tasks(self, place: Place) -> tuple[Task, Task]:  # type: ignore[type-arg]
        """The images, and what is trained on them."""
        task = place.task(self.network, initial="xavier")
        hardening = KINDS[self.kind]
        return task, harden(task, hardening, total=self.training.steps) if hardening else task

    def engine(self, place: Place) -> Engine:
        """Before the first step of a round."""
        _, hardened = self.tasks(place)
        return Cohort(hardened, dataclasses.replace(self.training, device=place.device), list(self.seeds) * len(STARTS))


def games(scale: str) -> dict[str, Game]:
    """Every training of a scale by the name of its piece."""
    made = (_game(scale, reading, kind) for reading, kinds in _ASKED[scale].items() for kind in kinds)
    return {game.name: game for game in made}


def _game(scale: str, reading: str, kind: str) -> Game:
    """Full: the paper's 12 epochs a round in batches twice as large as its code's; random masks beside its lines."""
    job = job_of("vision", PRESETS[READINGS[reading].preset])
    assert job.prune is not None
    network = dict(pair.split("=") for pair in job.settings)["network"]
    starts = tuple(STARTS)[:2] if scale == "paper" else tuple(STARTS)
    settings = dataclasses.replace(
        rounds_of(job.prune), output_share=READINGS[reading].output_share, starts=starts, keep_weights=False
    )
    training = job.training
    seeds: tuple[int, ...] = (0, 1, 2)
    if scale == "quick":
        settings, seeds = dataclasses.replace(settings, rounds=4, rate=0.66), (0,)
        training = dataclasses.replace(training, steps=400)
    if scale == "full":
        training = dataclasses.replace(training, steps=training.steps // 2, batch=training.batch * 2)
    return Game(reading, kind, network, settings, training, seeds)


def train_tickets(game: Game, place: Place) -> list[Row]:
    """Every line in every round of one kind of training; finished rounds are only read."""
    out = place.out / "pieces" / game.name
    if not place.source:
        rounds = sorted(out.glob("round-*/metrics.json"))
        return [row for path in rounds for row in Folder(path.parent).read_json(path.name)]
    task, hardened = game.tasks(place)

    def measure(engine: Engine) -> list[Row]:
        found = [
            accuracies(task, engine.state.modules_of(replica), limit=place.limit)
            for replica in range(engine.state.replicas)
        ]
        shown = ", ".join(f"{row['clean']:.1%} / {row['fgsm']:.1%} / {row['pgd40']:.1%}" for row in found)
        place.log(f"{game.name}: clean / FGSM / PGD-40 {shown}")
        return found

    about = {"hardening": KINDS[game.kind], "images": "digits" if place.source == "digits" else "mnist"}
    training = dataclasses.replace(game.training, device=place.device)
    return lottery(hardened, training, game.settings, seeds=game.seeds, out=out, measure=measure, about=about)


def tickets(order: Order) -> Result:
    """All trainings, as a table over rounds and as the four figures with PGD beside them."""
    place = where(order)
    asked = games(order.scale)
    found = {name: train_tickets(game, place) for name, game in asked.items()}
    details = {name.removeprefix("lottery-"): rows for name, rows in found.items() if rows}
    expect_pieces(details, place)
    table = [
        [*name.split("-"), number, PRINTED.get(number, ""), *_kept(rows, number)]
        + [_cell(rows, number, start) for start in STARTS]
        for name, rows in details.items()
        for number in SHOWN
        if any(row["round"] == number for row in rows)
    ]
    game = next(iter(asked.values()))
    return Result(
        title=f"Figures 9 to 12: lottery tickets, {data_in_words(order)}, {game.training.steps:,} steps of "
        f"{game.training.batch} images a round; clean / FGSM / PGD-40 accuracy in percent, mean over "
        f"{len(game.seeds)} seed(s)",
        columns=[
            "reading", "training", "round", "paper's kept %", "kept % of weights", "kept % with biases",
            *STARTS.values(),
        ],
        rows=table,
        notes=[
            *(f"{reading}: {READINGS[reading].line}." for reading in dict.fromkeys(n.split("-")[0] for n in details)),
            "Masks are those of the line with the first weights; new random weights take the same mask, a random mask "
            "keeps as many weights in each layer. Figures are those after the last step.",
        ],
        figures={"vision-fig9-12.png": _draw(details)},
        details=details,
    )  # fmt: skip


def _kept(rows: Sequence[Row], number: int) -> tuple[str, str]:
    """Percent of the weights, and of all parameters: biases are never pruned."""
    row = next(row for row in rows if row["round"] == number and row["start"] == "reset")
    biases = _BIASES[row["weights"]]
    return (
        f"{100 * row['kept'] / row['weights']:.2f}",
        f"{100 * (row['kept'] + biases) / (row['weights'] + biases):.2f}",
    )


_BIASES = {266_200: 410, 276_200: 510}  # by weights: 300 + 100 + 10, and another 100


def _mean(rows: Sequence[Row], number: int, start: str, key: str) -> float:
    return statistics.fmean(row[key] for row in rows if row["round"] == number and row["start"] == start)


def _cell(rows: Sequence[Row], number: int, start: str) -> str:
    if not any(row["start"] == start for row in rows):
        return ""
    return " / ".join(f"{100 * _mean(rows, number, start, key):.1f}" for key in ("clean", "fgsm", "pgd40"))


_TITLES = {"normal": "normal training (Figs. 9, 10)", "fgsm": "FGSM training (Figs. 11, 12)", "pgd": "PGD training"}


def _draw(found: Mapping[str, Sequence[Row]]) -> bytes:
    """A column for each reading and kind of training: clean accuracy above, attacked below."""
    figure, axes = pyplot().subplots(2, len(found), figsize=(4.5 * len(found), 8), layout="constrained", squeeze=False)
    for column, (name, rows) in zip(axes.T, found.items()):
        reading, kind = name.split("-")
        numbers = sorted({row["round"] for row in rows})
        for axis, key in zip(column, ("clean", "pgd40" if kind == "pgd" else "fgsm")):
            for start, colour in zip(STARTS, ("#4878a8", "#b03030", "#808080")):
                if any(row["start"] == start for row in rows):
                    x = [float(_kept(rows, number)[0]) for number in numbers]
                    means = [100 * _mean(rows, number, start, key) for number in numbers]
                    axis.plot(x, means, marker=".", color=colour, label=STARTS[start])
            axis.set(xscale="log", xlabel="weights kept, %", ylabel=f"{key} accuracy, %", ylim=(0, 100))
            axis.invert_xaxis()
            axis.legend()
        column[0].set_title(f"{_TITLES[kind]}, {reading}")
    return png(figure)
