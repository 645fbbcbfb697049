"""What a nowcast study stands for: its settings, its trainings, its title, its notes and the commands that make it."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import Any

from fewer.core.settings import from_text
from fewer.studies.order import Order
from fewer.studies.plan import Planned
from fewer.systems.nowcast.studies.catalogue import Choices
from fewer.systems.nowcast.studies.members import MEMBERS
from fewer.systems.nowcast.studies.place import Place
from fewer.systems.nowcast.studies.scales import Scale, members_of
from fewer.systems.nowcast.studies.where import where

__all__ = ["commands", "described", "plan", "settings", "titled", "trained"]

_TITLES = {
    "nowcast/table1": "Table 1 of the nowcast paper",
    "nowcast/table2": "Table 2 of the nowcast paper",
    "nowcast/fig1": "Figure 1 of the nowcast paper, and IoU by lead time",
    "nowcast/longer": "Table 1 with more training for fewer models",
    "nowcast/scarce": "A vote where windows are scarce",
    "nowcast/drift": "Models that know the geometry against extrapolation",
}
_SPLITS = {"test": "test", "heldout": "held-out"}


def settings(order: Order) -> dict[str, Any]:
    """Weather, sizes and how each model is trained."""
    place = where(order)
    scale = from_text(Choices, order.words).scale(place.scale)
    found = {key: getattr(scale, key) for key in ("size", "windows", "seed")}
    shared = {} if scale.paper else {key: getattr(scale, key) for key in ("samples", "batch", "precision")}
    data = f"files: {order.data}" if order.data else "generated weather"
    members = {name: _recipe(scale, name) for name in members_of(order)}
    return {"data": data, **found, **shared, "thresholds": "chosen on validation windows", "members": members}


def _recipe(scale: Scale, name: str) -> dict[str, Any]:
    one = MEMBERS[name]
    chosen, training = scale.settings(one), scale.training(one, "cpu")
    rule, plain = training.optimizer, type(training.optimizer)()
    return {
        "settings": {**one.settings, "width": chosen.features, "loss": chosen.loss}, "seed": scale.seed + one.seed,
        "updates": training.steps, "batch": training.batch, "precision": training.precision,
        "optimizer": {key: value for key, value in dataclasses.asdict(rule).items()
                      if key in ("kind", "lr") or value != getattr(plain, key)},
    }  # fmt: skip


def plan(order: Order) -> list[Planned]:
    """Every training; the first updates are shown on few windows."""
    place = where(order)
    few = place.rehearsed()
    return [
        Planned(
            name,
            place.scale.training(MEMBERS[name], "cpu").steps,
            functools.partial(few.engine, MEMBERS[name]),
            heavy=order.scale == "paper",
        )
        for name in members_of(order)
    ]


def trained(place: Place) -> str:
    """Weather, size and length of training in a few words."""
    scale = place.scale
    weather = "the competition's files" if place.files else "generated weather"
    if scale.paper:
        return f"{weather}, {scale.size} pixels, each model trained as in the paper"
    each = f"{scale.samples:,} samples of {scale.windows['train']:,} windows"
    return f"{weather}, {scale.size} pixels, {each} for every model, one training each"


def titled(order: Order, place: Place, split: str) -> str:
    """With size, data and length of training."""
    counted = f"{place.scale.windows[split]:,} {_SPLITS[split]} windows"
    return f"{_TITLES[order.study]}: IoU per region-year on {counted}; {trained(place)}"


def commands(order: Order) -> list[str]:
    """All that make it from nothing, in order."""
    if order.scale == "quick":
        return [order.command()]
    put_together = dataclasses.replace(order, words=())
    head, tail = f"fewer reproduce {order.study} --scale {order.scale} --pieces all", "--processes 16 --out DIR"
    data = ["--data DATA"] if order.data else []
    changed = [f"--set {word}" for word in _changes(order)]
    return [" ".join([head, *changed, *data, tail]), put_together.command()]


def _changes(order: Order) -> list[str]:
    """What the pieces that are there were made with beside the scale's own."""
    made, own = where(order).scale, where(dataclasses.replace(order, out=Path("nowhere"))).scale
    words = [f"{key}={value}" for key in ("samples", "size", "batch", "precision")
             if (value := getattr(made, key)) != getattr(own, key)]  # fmt: skip
    if made.windows != own.windows:
        words.append("windows=" + ",".join(f"{split}={count}" for split, count in made.windows.items()))
    if made.rates != own.rates:
        words.append(f"rates={made.rates[0]:g},{made.rates[1]:g}")
    return words


def described(order: Order, place: Place) -> list[str]:
    """How it was made, and what its columns count."""
    scale, counts = place.scale, place.scale.windows
    whose = (
        "The competition's files: its validation windows are dealt out in turn, as the truth of its own test windows "
        "was never published"
        if place.files
        else "Generated weather, not the competition's"
    )
    length = (
        f"models trained as the paper's presets say (one epoch is {scale.samples:,} samples)"
        if scale.paper
        else f"{scale.samples} samples (batch {scale.batch}) for every model unless its row says otherwise"
    )
    small = (
        " Quick: far too small and short to rank models; it shows that everything runs."
        if order.scale == "quick"
        else ""
    )
    lines = [
        f"{whose}: {counts['train']} training windows of {scale.size} pixels, {length}, {counts['validation']} "
        f"validation, {counts['test']} test and {counts['heldout']} held-out windows.{small}",
        "The paper's numbers are of the competition's own windows and of far longer training. In brackets: 95 % of a "
        "bootstrap over windows within region-years; differences are paired; how far another training of the same "
        "model would end from it is not in them. Rain is from probability 0.5 on unless a threshold is said.",
        "Average precision: of all pixels and lead times, whatever the threshold; by chance the wet share. "
        "Cross-entropy: the loss that is trained, on these windows. Knows where: mean probability where it rained less "
        "where it did not, within a window; 0 if a model only knows how wet a window is.",
        "16 bit is bfloat16 arithmetic with weights in 32 bit; 32 bit multiplies matrices in TF32. Train all: the "
        "validation windows are learnt from too, so that such a model's threshold is chosen on windows it has seen.",
        "The paper chose its best prediction per region on the leaderboard's own windows, among all its submissions.",
    ]
    absent = [name for name in members_of(order) if not place.path(name, "json").exists()]
    return [*lines, *([f"Not trained here: {', '.join(absent)}."] if absent else [])]
