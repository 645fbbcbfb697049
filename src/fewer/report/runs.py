"""A report on finished runs: what was trained, how it went, what is left of the weights, how it stands an attack."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fewer.core.abilities import Attackable
from fewer.core.folder import Folder
from fewer.core.mask import prunable
from fewer.job import Trained
from fewer.report.chart import bars, curves
from fewer.report.page import Page, figure, table, words
from fewer.report.pictures import PICTURES

__all__ = ["page_of", "run_name"]


def run_name(run: Trained) -> str:
    """A run's folder name, with its parent where it is one of several seeds."""
    return f"{run.path.parent.name}/{run.path.name}" if run.path.name.startswith("seed-") else run.path.name


def page_of(runs: Sequence[Trained], title: str, attacks: Sequence[str] = (), limit: int = 500) -> Page:
    """The page; each attack is counted on the first `limit` test samples."""
    page = Page(
        title, f"{len(runs)} run{'s' if len(runs) > 1 else ''}; everything below was measured from their files."
    )
    page.add("What was trained", table(["run", "task", "weights", "kept", "pruned by", "hardened", "steps"],
                                       [_row(run) for run in runs]))  # fmt: skip
    names = list(dict.fromkeys(name for run in runs for name in run.figures))
    page.add(
        "How well it went",
        words("Figures on the test split, after the last step: no checkpoint was picked by looking at them."),
        table(["run", *names], [[run_name(run), *[run.figures.get(name, "") for name in names]] for run in runs]),
    )
    page.add("Learning", figure(curves(_losses(runs), "step", "loss"), "Training loss, mean of each logging interval."))
    pruned = [run for run in runs if run.mask]
    if pruned:
        parts = [
            figure(bars(_keeps(run), "%"), f"{run_name(run)}: share of the weights kept, per layer.") for run in pruned
        ]
        page.add("What is left", *parts)
    if attacks and all(isinstance(run.task, Attackable) for run in runs):
        page.add("Under attack", *_attacked(runs, attacks, limit))
    for run in runs:
        if run.job.task in PICTURES:
            page.add(f"Seen: {run_name(run)}", PICTURES[run.job.task](run, attacks[-1] if attacks else "pgd:0.3"))
    page.add("Where the numbers come from", table(["run", "folder", "seed", "torch", "fewer", "commit"],
                                                  [_origin(run) for run in runs]))  # fmt: skip
    return page


def _row(run: Trained) -> list[Any]:
    weights = sum(module.get_parameter(n).numel() for module in run.modules.values() for n in prunable(module))
    kept = sum(int(m.sum()) for by in run.mask.values() for m in by.values()) if run.mask else weights
    prune = run.job.prune
    method = f"{prune.method} {prune.sparsity:.3g} {prune.when}" if prune else "-"
    return [run_name(run), run.job.task, weights, kept, method, run.job.harden or "-", run.job.training.steps]


def _losses(runs: Sequence[Trained]) -> dict[str, list[tuple[float, float]]]:
    found: dict[str, list[tuple[float, float]]] = {}
    for run in runs:
        own = Folder(run.path).lines()
        lines = own or Folder(run.path.parent).lines()
        for name in [key for key in (lines[0] if lines else {}) if key.startswith("loss/")]:
            points = [(line["step"], _value(line[name], run)) for line in lines if line.get(name) is not None]
            label = run_name(run) if len(lines[0]) == 2 else f"{run_name(run)} {name.removeprefix('loss/')}"
            found[label] = [(x, y) for x, y in points if y is not None]
    return found


def _value(logged: Any, run: Trained) -> Any:
    if not isinstance(logged, list):
        return logged
    cohort = Folder(run.path).read_json("config.json").get("cohort", [])
    return logged[cohort.index(run.job.seeds[0])] if run.job.seeds[0] in cohort else logged[0]


def _keeps(run: Trained) -> dict[str, float]:
    return {
        f"{network}.{name}".removesuffix(".weight"): 100.0 * float(mask.float().mean())
        for network, by_name in run.mask.items()
        for name, mask in by_name.items()
    }


def _attacked(runs: Sequence[Trained], attacks: Sequence[str], limit: int) -> list[str]:
    from fewer.attack.figures import under_attack

    rows = []
    for run in runs:
        seed = run.job.seeds[0]
        found = [under_attack(run.task, run.modules, attack, limit=limit, seed=seed) for attack in attacks]
        rows.append([run_name(run), *[next(iter(figures.values())) for figures in found]])
    note = f"The first figure of the task, when an adversary may change the input, on {limit} test samples."
    return [words(note), table(["run", *attacks], rows)]


def _origin(run: Trained) -> list[Any]:
    config = Folder(run.path).read_json("config.json")
    versions = config.get("versions") or _parent_versions(run.path)
    commit = str(versions.get("commit", ""))[:10]
    return [
        run_name(run),
        str(run.path),
        run.job.seeds[0],
        versions.get("torch", ""),
        versions.get("fewer", ""),
        commit,
    ]


def _parent_versions(path: Path) -> dict[str, Any]:
    parent = Folder(path.parent)
    return dict(parent.read_json("config.json").get("versions", {})) if (path.parent / "config.json").exists() else {}
