"""Small robust networks on photographs: standard, hardened, and pruned while either, each a piece that goes on.

`photo_recipes` says what is trained, `photo_training` how. On a GPU networks are compiled and run in bfloat16, channels
last; an audit searches so and confirms every success in float32. Without --data, and at scale quick, the embedded
digits stand in.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fewer.attack import threat
from fewer.attack.audit import Audit
from fewer.attack.threat import Threat
from fewer.core.engines.nets import NetworkSet
from fewer.core.files.run_folder import METRICS
from fewer.core.settings import from_text
from fewer.studies.order import Order
from fewer.studies.pieces import Piece, Pieces
from fewer.studies.remarks import Record
from fewer.studies.study import Result
from fewer.systems.vision.studies.light.photo_recipes import BUDGET, Choices, Recipe, recipes
from fewer.systems.vision.studies.light.photo_training import (
    device_of,
    finished_network,
    folder_of,
    pixels,
    task_of,
    train,
)
from fewer.systems.vision.studies.light.suite import PART, audited

__all__ = ["COLUMNS", "catalogue", "drops", "photographs", "pieces", "settings", "suite", "table"]

COLUMNS = ["training", "network", "kept weights", "clean", "PGD-50 on the margin", "under all tried", "tried"]
_AT_ONCE = 5120  # images of a batch of an audit on a GPU: five chunks


def suite(scale: str, budget: float = BUDGET) -> tuple[Threat, ...]:
    """The whole suite and a PGD-50 on the margin; what finds most comes first, so that a part of it tells most."""
    if scale == "quick":
        return threat.parse(f"fgsm:{budget:.8f}+pgd:{budget:.8f},steps=3")
    fgsm, pgd40, restarted, apgd, targeted, fab, square = threat.suite(budget)
    margin = Threat("pgd-margin", budget, every=True)
    return fgsm, pgd40, margin, apgd, targeted, square, fab, restarted


def settings(order: Order) -> dict[str, Any]:
    """What the order stands for."""
    chosen = from_text(Choices, order.words)
    return {
        "attacks": [each.title for each in suite(order.scale)],
        "images under attack": chosen.images or "all",
        "trainings": {name: dataclasses.asdict(recipe) for name, recipe in recipes(order).items()},
    }  # fmt: skip


def catalogue(order: Order) -> Pieces:
    """A piece for each training, and one for each audit."""
    return Pieces(pieces(recipes(order), order, from_text(Choices, order.words)), Choices)


def pieces(made: Mapping[str, Recipe], order: Order, chosen: Choices) -> dict[str, Piece]:
    """Trainings, then audits, each by its name."""
    every = {
        name: Piece(_cost(each), lambda each=each: train(each, order), late=bool(each.start_from))  # type: ignore[misc]
        for name, each in made.items()
    }
    for name, each in made.items():
        line = f"the suite and PGD-50 on the margin against the finished {name}"
        make = functools.partial(audit, each, order, chosen)
        every[f"audit-{name}"] = Piece(line, make, late=True)
    return every


def _cost(recipe: Recipe) -> str:
    tuned = f", from {recipe.start_from}" if recipe.start_from else ""
    kept = f"all but {recipe.sparsity:.0%}" if not recipe.keep else f"{recipe.keep} weights"
    return (
        f"{recipe.network}, {recipe.epochs} epochs of batch {recipe.batch}, {recipe.hardening or 'not hardened'}, "
        f"{kept} kept{tuned}"
    )


def audit(recipe: Recipe, order: Order, chosen: Choices) -> None:
    """The attacks, one after the other; one that is over is kept."""
    folder = folder_of(recipe.name, order)
    if (folder.path / "suite.json").exists():
        return
    task, device = task_of(recipe, order), device_of(order)
    nets = NetworkSet({"net": finished_network(recipe.name, task, order).to(device)}, training=False)
    images = (20 if order.scale == "quick" else chosen.images) or None
    how = Audit(limit=images)
    if device == "cuda":
        how = Audit(limit=images, per_batch=_AT_ONCE, layout="contiguous", search=chosen.search)
    report = audited(task, nets, folder, suite(order.scale, recipe.budget), how, attacks=chosen.attacks)
    order.log(f"{recipe.name}\n{report.text()}")


def photographs(order: Order) -> Result:
    """The table of what is finished; at scale quick all is made first."""
    if order.scale == "quick":
        for piece in catalogue(order).every.values():
            piece.make()
    rows, details = table(recipes(order), order)
    title = f"Robust and light networks on photographs, {pixels(order)}, ResNet-18 and slim ones at 8/255, one seed"
    return Result(
        title, COLUMNS, rows, _notes(order, details), details={"trainings": details},
        commands=_commands(order, details), machines=_machines(details),
    )  # fmt: skip


def _notes(order: Order, details: Sequence[Mapping[str, Any]]) -> list[str]:
    where = " and ".join(sorted({each["device"] for each in details}))
    rough = "cuda" in where and from_text(Choices, order.words).search == "bfloat16"
    searched = ": a search in bfloat16 on a GPU, each success confirmed in float32" if rough else ""
    made = {each["name"] for each in details}
    missing = [name for name in recipes(order) if name not in made]
    return [
        f"{pixels(order)}, which costs some points of accuracy: compare rows with each other, not with published ones; "
        f"one seed; trained on {where}",
        f"at 8/255 in the largest pixel; worst case per image over what was tried{searched}; what was not tried may "
        "find more",
        "hardened: PGD-7, steps of 2/255, batch 512; pruned ones begin at the dense one's weights (hardened-99 at "
        "hardened-95's, small-98k at small's) and lose weights by LAMP in the first half of some more epochs",
        *([f"not trained: {', '.join(missing)}"] if missing else []),
    ]


def _commands(order: Order, details: Sequence[Mapping[str, Any]]) -> list[str]:
    """What makes the pieces that are there, then the table."""
    if order.scale == "quick":
        return []
    audits = [f"audit-{each['name']}" for each in details if each["suite"]]
    asked = " ".join([*(str(each["name"]) for each in details), *audits])
    tried = max((len(each["suite"]["lines"]) for each in details if each["suite"]), default=0)
    words = [word for word in order.words if not word.startswith("attacks=")]
    some = [f"attacks={tried}"] if 0 < tried < len(suite(order.scale)) else []
    made = dataclasses.replace(order, words=(*words, *some)).command()
    return [made.replace(" --out", f" --pieces {asked} --out"), order.command()]


def _machines(details: Iterable[Mapping[str, Any]]) -> list[str]:
    """Where pieces were trained; a piece knows the kind of its device alone."""
    return ["a CUDA GPU"] if any(each["device"] == "cuda" for each in details) else []


def drops(record: Record) -> list[str]:
    """How far each pruned network is from the dense one that it began at, clean and under what both met, in points."""
    found, lines = {each["name"]: each for each in record["details"]["trainings"]}, []
    for name, each in found.items():
        source = found.get(each["start_from"])
        while source is not None and source["start_from"]:
            source = found.get(source["start_from"])
        if source is None:
            continue
        said = [_told("without an attack", each["clean"] - source["clean"])]
        both = list(zip((each["suite"] or {}).get("lines", []), (source["suite"] or {}).get("lines", [])))
        if both:
            said.append(_told(f"under {len(both)} attacks", both[-1][0]["standing"] - both[-1][1]["standing"]))
        kept = f"{each['kept']:,} of {each['weights']:,} weights"
        lines.append(f"{name} ({kept}) against {source['name']}: {', '.join(said)}.")
    return lines


def _told(what: str, difference: float) -> str:
    return f"{100 * difference:+.2f} points {what}"


def table(names: Iterable[str], order: Order) -> tuple[list[list[Any]], list[dict[str, Any]]]:
    """A row for each finished training, and all that is known of it."""
    rows, details = [], []
    for name in names:
        folder = folder_of(name, order)
        if not folder.finished:
            continue
        found = folder.read_json(METRICS)
        suite_file = next((file for file in ("suite.json", PART) if (folder.path / file).exists()), None)
        under = folder.read_json(suite_file) if suite_file else None
        rows.append([name, found["network"], found["kept"], f"{found['clean']:.2%}", *_stood(under)])
        kept = {key: value for key, value in under.items() if key != "survived"} if under else None
        details.append({**found, "suite": kept})
    return rows, details


def _stood(under: dict[str, Any] | None) -> list[str]:
    """Accuracy under the margin's attack alone, under all that was tried, and what that was."""
    if under is None or not under["lines"]:
        return ["", "", ""]
    margin = [line["alone"] for line in under["lines"] if "margin" in line["attack"]]
    names = " + ".join(line["attack"].partition(", L-inf")[0] for line in under["lines"])
    alone = f"{margin[0]:.2%}" if margin and margin[0] is not None else ""
    return [alone, f"{under['lines'][-1]['standing']:.2%} of {under['images']}", names]
