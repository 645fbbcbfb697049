"""The cell-free paper's figures, and what it leaves open: the paper's numbers beside those of every reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fewer.report.figure import png
from fewer.studies.order import Order
from fewer.studies.plan import Planned
from fewer.studies.study import Result
from fewer.systems.cellfree.presets import READINGS
from fewer.systems.cellfree.studies.worlds import (
    CELLS,
    Case,
    cells,
    kept_metrics,
    mean_and_spread,
    plan_of,
    refuse_data,
    seeds_of,
    settings_for,
    spelled,
)  # fmt: skip
from fewer.systems.cellfree.task.settings import Settings

__all__ = ["fig2", "fig3", "figure_plan", "figure_settings", "readings", "readings_plan", "readings_settings"]

SHOWN = {  # readings in both figures: what a column calls them, and how many deployments they are trained on at most
    "paper": ("literal, areas of the setup", 10),
    "paper-density": ("literal, areas of the densities", 3),
    "improved": ("masks, scaling, FFT maps, areas of the setup", 10),
}
ONE_BY_ONE = 3  # deployments of each reading
ENVIRONMENTS = ("paper-metre", "paper-fft", "paper-signal", "paper-white")
TEN_EPOCHS = READINGS["paper-ten"]["steps"]  # of environments, but at scale paper
PAPER = {  # the text's numbers; the rest of the figures has none
    ("precision", 100, 10): "0.83",
    ("recall", 100, 10): "0.68",
    ("auc", 100, 10): "> 0.9",
    ("auc", 50, 10): "> 0.9",
    ("average_precision", 100, 10): "> 0.8",
    ("average_precision", 50, 10): "> 0.8",
}
HALF = ("precision", "recall", "other_precision", "other_recall")
RANKS = ("auc", "average_precision", "other_auc", "other_average_precision")
_JUDGED = "10,000 training phones, 8,000 fresh ones to judge by."


def _figure_cases(order: Order) -> list[Case]:
    shown = {"paper": SHOWN["paper"], "improved": SHOWN["improved"]} if order.data else SHOWN
    return [
        Case(order, reading, cell, seed)
        for reading, (_, most) in shown.items()
        for cell in cells(order)
        for seed in seeds_of(order, len(seeds_of(order)) if order.scale == "paper" else most)
    ]


def figure_settings(order: Order) -> dict[str, Any]:
    """Of Figures 2 and 3."""
    return _settings(order, _figure_cases(order))


def figure_plan(order: Order) -> list[Planned]:
    """Of Figures 2 and 3."""
    return plan_of(_figure_cases(order))


def _settings(order: Order, cases: Sequence[Case]) -> dict[str, Any]:
    found: dict[str, Any] = {"data": order.data or "simulated"}
    for case in cases:
        one = found.setdefault(case.reading, {"training": case.words(), "networks": {}})
        network = one["networks"].setdefault(f"L={case.cell[0]} c={case.cell[1]}", {"deployments": []})
        network["deployments"].append(case.seed)
        network["settings"] = vars(settings_for(order, case.reading, case.cell, 0))
        del network["settings"]["deployment_seed"]
    return found


def fig2(order: Order) -> Result:
    """Precision and recall at one half, as the paper counts them and without the master's own link."""
    return _figure(order, "Figure 2", HALF)


def fig3(order: Order) -> Result:
    """Area under the curve and average precision, with and without the master's own link."""
    return _figure(order, "Figure 3", RANKS)


def _figure(order: Order, title: str, names: tuple[str, ...]) -> Result:
    cases = _figure_cases(order)
    details: dict[str, dict[str, list[dict[str, float]]]] = {}
    for case, found in zip(cases, kept_metrics(cases)):
        details.setdefault(case.reading, {}).setdefault(_cell(case.cell), []).append(found)
    rows: list[list[Any]] = []
    for cell in cells(order):
        for name in names:
            paper = "" if order.data else PAPER.get((name, *cell), "")
            ours = [spelled(own[_cell(cell)], name) for own in details.values()]
            rows.append([*cell, name.replace("_", " "), paper, *ours])
    counts = {len(found) for own in details.values() for found in own.values()}
    deployments = "one deployment" if counts == {1} else f"{min(counts)} to {max(counts)} deployments"
    return Result(
        title=f"{title}: the paper's network, {order.data or 'simulated'}, {deployments}, mean ± spread",
        columns=["access points", "candidates", "metric", "paper", *(SHOWN[reading][0] for reading in details)],
        rows=rows,
        notes=[
            f"{cases[0].training.steps:,} updates of 100 phones (a graph), {_JUDGED}",
            "Literal: L raw inputs in dB, 0 where nothing was measured, -35.3 dB at 1 km, Claussen's maps with 8 "
            "neighbours, Adam at a constant 0.001. The paper names no optimiser, epochs, deviation or correlation of "
            "shadowing, nor how many deployments it shows.",
            "The paper's setup has 100 access points in 1 km x 1 km and 50 in 2 km x 2 km; its densities, 25 and 50 "
            "per km2, are those of the areas exchanged.",
            "'other' leaves out the link to the master, which is positive by definition; recall counts positives "
            "outside the candidates as misses.",
        ],
        figures={f"cellfree-{title.lower().replace('ure ', '')}.png": _bars(details, names[:2])},
        details=details,
    )


def _cell(cell: tuple[int, int]) -> str:
    return f"L={cell[0]} c={cell[1]}"


def _bars(details: dict[str, dict[str, list[dict[str, float]]]], names: tuple[str, ...]) -> bytes:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    axes = figure.subplots(1, len(names), sharey=True)
    width = 0.8 / len(details)
    for panel, name in zip(axes, names):
        for index, (reading, own) in enumerate(details.items()):
            pairs = [mean_and_spread(found, name) for found in own.values()]
            places = [place + (index - (len(details) - 1) / 2) * width for place in range(len(pairs))]
            means, spreads = zip(*pairs)
            panel.bar(places, means, width, yerr=spreads, capsize=2, label=SHOWN[reading][0])
        for place, key in enumerate(next(iter(details.values()))):
            size, candidates = (int(part[2:]) for part in key.split())
            if text := PAPER.get((name, size, candidates), ""):
                low = float(text.removeprefix("> "))
                panel.hlines(low, place - 0.45, place + 0.45, "k", "--" if text[0] == ">" else "-",
                             label=f"paper {text}" if place == 0 else None)  # fmt: skip
        panel.set_xticks(range(len(pairs)), [key.replace(" ", "\n") for key in own], fontsize=8)
        panel.set(title=name.replace("_", " "), ylim=(0, 1))
        panel.grid(axis="y", alpha=0.3)
        panel.legend(fontsize=6, loc="lower left")
    return png(figure, dpi=130)


def _reading_cases(order: Order) -> list[Case]:
    refuse_data(order, "readings are of the paper's own simulation")
    whole = order.scale == "paper"
    most = len(seeds_of(order)) if whole else ONE_BY_ONE
    return [
        Case(order, name, CELLS[0], seed, TEN_EPOCHS if name in ENVIRONMENTS and not whole else 0)
        for name in READINGS
        for seed in seeds_of(order, most)
    ]


def readings_settings(order: Order) -> dict[str, Any]:
    """Of every reading."""
    return _settings(order, _reading_cases(order))


def readings_plan(order: Order) -> list[Planned]:
    """Of every reading."""
    return plan_of(_reading_cases(order))


def readings(order: Order) -> Result:
    """One thing at a time that the paper leaves open, or that we changed: what it does to its numbers."""
    cases = _reading_cases(order)
    details: dict[str, list[dict[str, float]]] = {}
    for case, found in zip(cases, kept_metrics(cases)):
        details.setdefault(case.reading, []).append(found)
    shown = ("precision", "recall", "auc", "average_precision", "other_average_precision", "ignored")
    rows: list[list[Any]] = [["the paper", "", "", "0.83", "0.68", "> 0.9", "> 0.8", "", "0.16"]]
    updates = {case.reading: case.training.steps for case in cases}
    for name, each in details.items():
        rows.append([f"`{name}`", _changed(name), updates[name], *(spelled(each, metric) for metric in shown)])
    return Result(
        title=f"Readings of the paper: {CELLS[0][0]} access points, {CELLS[0][1]} candidates, simulated, "
        f"{len(details['paper'])} deployments, mean ± spread",
        columns=["`--preset`", "what differs from `paper`", "updates", *(metric.replace("_", " ") for metric in shown)],
        rows=rows,
        notes=[
            f"{_JUDGED} `fewer train cellfree --preset NAME` trains one of them.",
            f"Readings of the environment ({', '.join(ENVIRONMENTS)}) have {updates[ENVIRONMENTS[0]]:,} updates: "
            f"compare them with `{'paper' if order.scale == 'paper' else 'paper-ten'}`.",
        ],
        details=details,
    )


def _changed(name: str) -> str:
    """The words in which a preset differs from `paper`, left-out ones included."""
    own, plain = (_words(READINGS[one]) for one in (name, "paper"))
    return ", ".join(f"{key}={value}" for key, value in own.items() if plain[key] != value)


def _words(preset: Mapping[str, Any]) -> dict[str, Any]:
    training = {key: preset.get(key, "the task's own") for key in ("steps", "batch", "optimizer")}
    return {**vars(Settings(**preset["settings"])), **training}
