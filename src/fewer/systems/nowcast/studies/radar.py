"""A learned nowcast from radar to radar: every event is forecast by a model that has never seen it, beside all others.

The upwind model sees four maps of rain and forecasts eight, 15 minutes apart at 2 km. One model is trained for each
event of --data, from first weights, on generated weather and on all other events; where files are 5 minutes apart each
event is three sequences. It says the probability of 0.2 mm/h, decided as the extrapolation's is. Events whose images do
not fit into steps of 15 minutes are left out. Without --data, and at scale quick, generated weather stands in.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fewer.core.errors import UserError
from fewer.core.files.run_folder import Folder
from fewer.core.settings import from_text
from fewer.studies.order import Order
from fewer.studies.pieces import Piece, Pieces, choice
from fewer.studies.remarks import Record
from fewer.studies.study import Result, hardware, in_words
from fewer.systems.nowcast.bench.radar import Sequence, chosen_rivals
from fewer.systems.nowcast.bench.rivals import CannotForecast, Method, Rates, Said, decisions, ours
from fewer.systems.nowcast.learned import Model, opened_model, tiled
from fewer.systems.nowcast.task.files.own.grid import unplaced
from fewer.systems.nowcast.task.files.own.images import Channel
from fewer.systems.nowcast.task.files.own.quantities import RAIN
from fewer.systems.nowcast.task.files.own.reading import read_images
from fewer.systems.nowcast.task.files.own.standard import standardised
from fewer.systems.nowcast.task.files.own.table import TABLE
from fewer.systems.nowcast.task.generated.windows import generated

__all__ = ["Recipe", "ahead_of_all", "catalogue", "learned", "radar", "settings"]

_STEP, _PIXEL_KM, _SEEN, _LEADS = 15.0, 2.0, 4, 8
_LEAST = 0.2  # mm/h
_WEATHER, _PACK = "weather", "model.pack"
_REPEATED = 4  # times that a real window stands among the generated ones, which are many
_LATE = 60.0  # minutes from which on the claim is


@dataclass(frozen=True)
class Recipe:
    """Sizes of the study."""

    width: int = choice(16, "channels of the first level")
    size: int = choice(128, "pixels of 2 km along a window")
    steps: int = choice(3000, "updates of each model")
    batch: int = choice(8, "windows in a batch")
    generated: int = choice(96, "sequences of generated weather, 8 hours each, that every model sees too")
    precision: str = choice("bfloat16", "of the forward pass in training on CUDA; float32 elsewhere")
    device: str = choice("", "cpu or cuda; none: cuda where there is one")
    fast: str = choice("false", "compile on CUDA")


@dataclass(frozen=True)
class Event:
    """Rain at 2 km, as often as the radar looked."""

    name: str
    rates: Rates
    every: int  # images in 15 minutes

    def sequences(self) -> Iterator[Rates]:
        """As many as begin at different minutes."""
        for first in range(self.every):
            yield self.rates[first :: self.every]


def _recipe(order: Order) -> Recipe:
    quick = Recipe(width=4, size=24, steps=8, batch=2, generated=2)
    return from_text(Recipe, order.words, quick if order.scale == "quick" else Recipe())


def settings(order: Order) -> dict[str, Any]:
    """What an order stands for."""
    return asdict(_recipe(order))


def _events(order: Order) -> list[Event]:
    """Those that have an image every 15 minutes."""
    if not order.data:
        if order.scale != "quick":
            raise UserError("no --data", "a folder of radar events", "fewer reproduce nowcast/radar --data DIR")
        windows = generated("test", count=2, size=24).take(torch.arange(2))
        return [Event(f"generated-{k}", _known(windows.rate[k], windows.valid[k]), 1) for k in range(2)]
    paths = sorted(path for path in Path(order.data).glob("*") if path.is_dir() or path.suffix == ".npz")
    found = []
    for path in paths:
        images = read_images(path)
        if _STEP % images.step_minutes == 0:
            coarse = images.coarser(max(round(_PIXEL_KM / images.grid.kilometres), 1))
            found.append(Event(path.stem, coarse.rates, int(_STEP // images.step_minutes)))
    if len(found) < 2:
        raise UserError(f"{len(found)} events of {order.data}", "two or more with steps that fit into 15 minutes")
    return found


def _known(rate: torch.Tensor, valid: torch.Tensor) -> Rates:
    return np.where(valid.numpy() > 0, rate.numpy(), np.nan).astype(np.float32)


def catalogue(order: Order) -> Pieces:
    """The generated weather, then a model for each event, which it has not seen."""
    recipe = _recipe(order)
    made = {_WEATHER: Piece(f"{recipe.generated} sequences", lambda: (_events(order), _weather(recipe, order)))}
    known = order.scale == "quick" or Path(order.data or "-").is_dir()
    for event in _events(order) if known else ():  # without files only what needs none can be told
        line = f"{recipe.steps} updates of batch {recipe.batch} without {event.name}"
        made[f"without-{event.name}"] = Piece(line, lambda event=event: train(event.name, order), late=True)  # type: ignore[misc]
    return Pieces(made, Recipe)


def _place(order: Order, name: str) -> Folder:
    return Folder(order.out / "radar" / name)


def _weather(recipe: Recipe, order: Order) -> Path:
    """Generated weather as events, kept once for all models."""
    folder, size = _place(order, _WEATHER).path, -(-recipe.size // 12) * 12
    if (folder / "done.json").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    for split, count in (("train", recipe.generated), ("validation", max(recipe.generated // 8, 1))):
        windows = generated(split, count=count, size=size)
        for k in range(count):
            one = windows.take(torch.tensor([k]))
            _write(folder / f"{split}-{k}.npz", _known(one.rate[0], one.valid[0]))
    Folder(folder).write_json("done.json", {"size": size})
    return folder


def _write(path: Path, rates: Rates) -> None:
    np.savez_compressed(path, rain=rates.astype(np.float16), step_min=_STEP, res_km=_PIXEL_KM)


def _prepared(name: str, order: Order) -> Path:
    """A folder of events as anybody's: this one is for testing, the others and generated weather to learn from."""
    weather, folder = _weather(_recipe(order), order), _place(order, f"files-{name}").path
    folder.mkdir(parents=True, exist_ok=True)
    lines = [(path.stem.split("-")[0], path.name, path) for path in sorted(weather.glob("*.npz"))]
    for _, target, path in lines:
        (folder / target).unlink(missing_ok=True)
        (folder / target).hardlink_to(path)
    table = [(split, target, "") for split, target, _ in lines]
    for event in _events(order):
        for k, rates in enumerate(event.sequences()):
            target = f"{event.name}-{k}.npz"
            _write(folder / target, rates)
            table += [("test", target, "")] if event.name == name else _REPEATED * [("train", target, "")]
    with (folder / TABLE).open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("split", "seen", "forecast"), *table])
    return folder


def train(name: str, order: Order) -> None:
    """The model that has not seen this event, with its pack."""
    from fewer.run import api

    folder, recipe = _place(order, f"without-{name}"), _recipe(order)
    if (folder.path / "trained.json").exists():
        return
    device = recipe.device or ("cuda" if torch.cuda.is_available() else "cpu")
    words: dict[str, Any] = {"precision": recipe.precision} if device == "cuda" else {}
    begin = time.perf_counter()
    run = api.train(
        "nowcast", folder.path / "run", steps=recipe.steps, batch=recipe.batch, device=device,
        compile=device == "cuda" and recipe.fast == "true",
        optimizer=f"adamw,lr=2e-3,weight_decay=2e-2,clip_value=2.0,warmup={recipe.steps // 40},decay_from=0.3",
        settings={
            "data": str(_prepared(name, order)), "model": "drift", "width": str(recipe.width),
            "size": str(recipe.size), "seen": str(_SEEN), "leads": str(_LEADS), "step_minutes": f"{_STEP:g}",
            "augment": "true",
        }, **words,
    )  # fmt: skip
    api.pack(run, folder.path / _PACK)
    made = {"event": name, "seconds": time.perf_counter() - begin, "machine": in_words(hardware())}
    folder.write_json("trained.json", made)
    order.log(f"{name}: trained")


def learned(model: Model) -> Method:
    """A trained model as the benches' methods are called."""

    def forecast(rates: Rates, ahead: Any, step_minutes: float) -> Said:
        frames = [standardised(one[None].astype(np.float32), (Channel(*RAIN),)) for one in rates]
        seen, missing = (np.stack(part) for part in zip(*frames))
        grid = unplaced(rates.shape[1], rates.shape[2], _PIXEL_KM)
        maps = tiled(model, grid, seen.astype(np.float32), missing.astype(np.float32))[0][: len(ahead)]
        share = maps / (maps + model.positive_weight * (1 - maps))  # what a loss with a weight learns is undone
        return Said(share, {_LEAST: decisions(np.nan_to_num(share))})

    return forecast


def _judged(event: Event, order: Order) -> dict[str, dict[str, Any]]:
    """IoU by lead time of every method, pooled over the starts of all its sequences; seconds a forecast."""
    model = opened_model(str(_place(order, f"without-{event.name}").path / _PACK))
    methods: dict[str, Method] = {"learned": learned(model), "extrapolation": ours, **chosen_rivals(quick=False)}
    counts = {name: np.zeros((2, _LEADS)) for name in methods}
    seconds: dict[str, list[float]] = {name: [] for name in methods}
    sequence = Sequence(event.name, next(event.sequences()), _STEP)
    for start in sequence.starts():
        truth = sequence.rates[start + 1 : start + 1 + _LEADS]
        seen, wet = np.isfinite(truth), np.nan_to_num(truth) >= _LEAST
        for name in list(counts):
            begin = time.process_time()
            try:
                found = methods[name](sequence.rates[start + 1 - _SEEN : start + 1], sequence.ahead, _STEP)
            except CannotForecast:
                del counts[name]
                continue
            said = found.decided[_LEAST] & seen
            seconds[name].append(time.process_time() - begin)
            counts[name] += np.stack([(wet & said & seen).sum((1, 2)), ((wet & seen) | said).sum((1, 2))])
    return {
        name: {
            "iou": (both / np.maximum(either, 1)).tolist(), "seconds": float(np.median(seconds[name])),
            "starts": len(sequence.starts()),
        }
        for name, (both, either) in counts.items()
    }  # fmt: skip


def radar(order: Order) -> Result:
    """The table of the events whose model is there; at scale quick all is made first."""
    events, recipe = _events(order), _recipe(order)
    if order.scale == "quick":
        for piece in catalogue(order).every.values():
            piece.make()
    done = [one for one in events if (_place(order, f"without-{one.name}").path / "trained.json").exists()]
    if not done:
        raise UserError(f"no model in {order.out}", "one or more", "--pieces all first")
    found = {event.name: _judged(event, order) for event in done}
    ahead = [_STEP * (k + 1) for k in range(_LEADS)]
    rows = []
    for title, parts in [*((name, [one]) for name, one in found.items()), ("mean of events", list(found.values()))]:
        for method in (name for name in parts[0] if all(name in part for part in parts)):
            scores = np.mean([part[method]["iou"] for part in parts], 0)
            late = float(scores[[lead >= _LATE for lead in ahead]].mean())
            cost = float(np.mean([part[method]["seconds"] for part in parts]))
            shown = [f"{scores[ahead.index(lead)]:.3f}" for lead in (15.0, 30.0, 60.0, 90.0, 120.0)]
            rows.append([title, method, *shown, f"{scores.mean():.3f}", f"{late:.3f}", f"{cost:.2f}"])
    leads = [f"{lead} min" for lead in (15, 30, 60, 90, 120)]
    columns = ["event", "method", *leads, "mean", f"{_LATE:g} min and later", "processor seconds"]
    whose = "radar events, each left out once" if order.data else "generated weather in place of radar"
    title = (
        f"Radar to radar: IoU at {_LEAST:g} mm/h, 2 km, by a model that has not seen the event; {len(found)} {whose}; "
        f"width {recipe.width}, {recipe.steps} updates of batch {recipe.batch}, one training each"
    )
    notes = [
        f"Each model saw {recipe.generated} sequences of generated weather and, {_REPEATED} times as often, the other "
        f"events; windows of {recipe.size} pixels of 2 km, turned and mirrored; up to 6 starts an event; scores are "
        "pooled over starts, then averaged.",
        "Every method sees the same four maps; probabilities are decided by the threshold of largest expected IoU, "
        "rates by 0.2 mm/h. The extrapolation's weights were fitted on some of these events.",
    ]
    trained = [_place(order, f"without-{one.name}").read_json("trained.json") for one in done]
    return Result(
        title, columns, rows, notes, details={"events": found, "minutes": ahead}, commands=_commands(order),
        machines=list(dict.fromkeys(one["machine"] for one in trained if "machine" in one)),
    )  # fmt: skip


def _commands(order: Order) -> list[str]:
    if order.scale == "quick":
        return []
    made = replace(order, words=()).command()
    return [made.replace(" --out", " --pieces all --out"), made]


def ahead_of_all(record: Record) -> list[str]:
    """Whether the learned model is ahead of the best other method from an hour on, on the mean of the events."""
    events, minutes = record["details"]["events"], record["details"]["minutes"]
    late = [k for k, lead in enumerate(minutes) if lead >= _LATE]
    means = {
        method: float(np.mean([[one[method]["iou"][k] for k in late] for one in events.values()]))
        for method in next(iter(events.values())) if all(method in one for one in events.values())
    }  # fmt: skip
    mine = means.pop("learned")
    best = max(means, key=means.__getitem__)
    return [
        f"From {_LATE:g} minutes on the learned model has {mine / means[best]:.2f} times the IoU of {best}, the best "
        f"other method on the mean of {len(events)} events ({mine:.3f} against {means[best]:.3f})."
    ]
