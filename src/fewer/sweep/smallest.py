"""Budget in, network out: the smallest network of a task that still does the job, and the curve that was seen.

Shares of the weights from half down to a two-hundredth are tried by bisection, each with the task's recipe, each a run
folder of its own: the same call goes on after a kill. On a GPU, or with engine=cohort, all of them are trained first,
in lock-step. What is chosen is chosen on the validation split; the figure on the test split is told beside it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fewer.core.engines.evaluate import evaluate, predictor
from fewer.core.engines.loop import Loop
from fewer.core.errors import Busy, UserError
from fewer.core.files.atomic import write_json
from fewer.core.files.run_folder import CONFIG, Folder
from fewer.packs.pack import Allowance
from fewer.packs.pack import load as load_pack
from fewer.pruning.reach import count
from fewer.run.job import Job
from fewer.run.load import Trained, load
from fewer.run.options import job_of
from fewer.run.packing import by_name, pack_run
from fewer.sweep.cohort_unit import NotBatchable, run_together, shared

__all__ = ["FRONTIER", "SHARES", "Budget", "Found", "smallest"]

FRONTIER = "frontier.json"
SHARES = (0.5, 0.3, 0.2, 0.1, 0.05, 0.03, 0.02, 0.01, 0.005)  # of the prunable weights
_APART = "apart"  # in the folder of a cohort that does not go as one
_CALLS = 200  # predictions of one sample, whose median is told

Row = dict[str, Any]


@dataclass(frozen=True)
class Budget:
    """What the network may cost; one of them."""

    max_loss: float | None = None  # share of the dense figure, on the validation split
    max_bytes: int | None = None  # of the pack
    max_microseconds: float | None = None  # of one sample's prediction by the pack, one thread

    def __post_init__(self) -> None:
        given = [value for value in asdict(self).values() if value is not None]
        if len(given) != 1 or not given[0] > 0:
            raise UserError(f"{len(given)} budgets, {given}", "one, above 0", "such as --max-loss 0.01")

    def fits(self, row: Row) -> bool:
        """Whether a network of the curve is within it."""
        if "refused" in row:
            return False
        if self.max_loss is not None:
            return bool(row["loss"] <= self.max_loss)
        if self.max_bytes is not None:
            return bool(row["bytes"] <= self.max_bytes)
        return bool(row["microseconds"] <= float(self.max_microseconds or 0))


@dataclass(frozen=True)
class Found:
    """The run that is within the budget, and every network that was tried, largest first."""

    run: Trained
    row: Row
    curve: list[Row]


def smallest(
    task: str,
    words: Mapping[str, Any],
    budget: Budget,
    out: str | Path,
    *,
    told: Callable[[Row], None] | None = None,
) -> Found:
    """Search into the folder `out`, or go on there; `words` as for `train`, pruned by `auto` unless they say how.

    Within a loss the fewest weights are found; within bytes or microseconds the most, which do the job best.
    """
    search = _Search(task, {"prune": "auto", **{k: v for k, v in words.items() if v is not None}}, Path(out), told)
    low, high = 0, len(SHARES)  # with a loss, shares before `low` fit; with a size, those from `high` on
    while low < high:
        middle = (low + high) // 2
        if budget.max_loss is not None and low == 0 and high < len(SHARES):
            middle = high - 1  # figures scatter: the next larger may do the job where one larger still does not
        tried = search.row(SHARES[middle])
        too_large = not budget.fits(tried) and "refused" not in tried
        if budget.fits(tried) if budget.max_loss is not None else too_large:
            low = middle + 1
        else:
            high = middle
    chosen = low - 1 if budget.max_loss is not None else low
    if not 0 <= chosen < len(SHARES) or not budget.fits(search.row(SHARES[chosen])):
        raise UserError(
            f"{_said(budget)} for {task}", f"what one of the networks in {search.out / FRONTIER} keeps to",
            "allow more, or train longer with --steps",
        )  # fmt: skip
    row = search.row(SHARES[chosen])
    search.write(budget, row)
    return Found(load(search.out / row["run"]), row, search.curve())


def _name(share: float) -> str:
    return f"kept-{100 * share:g}"


def _trained_together(job: Job, folder: Folder) -> bool:
    """Whether the folder holds this job as a cohort left it; whatever else is there is for the job to judge."""
    if not folder.finished:
        return False
    config = folder.read_json(CONFIG)
    others, _ = config.pop("cohort", None), config.pop("versions", None)
    return others is not None and config == json.loads(json.dumps(job.config()))


def _said(budget: Budget) -> str:
    name, value = next((name, value) for name, value in asdict(budget).items() if value is not None)
    return f"{name.replace('_', ' ')} {value:g}"


class _Search:
    """Networks that were tried, each in a folder named by the share it keeps."""

    def __init__(self, task: str, words: Mapping[str, Any], out: Path, told: Callable[[Row], None] | None) -> None:
        self.task, self.words, self.out, self.told = task, words, out, told
        self.rows: dict[float, Row] = {}
        dense = {key: value for key, value in words.items() if key not in ("prune", "sparsity", "only", "skip")}
        first = job_of(task, dense)
        if "sparsity" in words or len(first.seeds) > 1:
            raise UserError("a sparsity or several seeds", "neither: sparsity is what is searched", "leave them out")
        if first.training.device != "cpu" or first.engine == "cohort":
            self._train_together({"dense": first, **{_name(share): self._job(share) for share in SHARES}})
        self.dense = self._tried(1.0, "dense", first)
        if "refused" in self.dense:
            raise UserError(f"a dense training that failed ({self.dense['refused']})", "one to measure by")

    def row(self, share: float) -> Row:
        """A network that keeps this share; trained where it is not there yet."""
        if share not in self.rows:
            self._tried(share, _name(share), self._job(share))
        return self.rows[share]

    def _job(self, share: float) -> Job:
        return job_of(self.task, {**self.words, "sparsity": round(1 - share, 6)})

    def _train_together(self, jobs: Mapping[str, Job]) -> None:
        """Those that may be one cohort, as one; whoever is left is trained when its turn comes."""
        groups: dict[str | None, list[str]] = {}
        for name, job in jobs.items():
            groups.setdefault(shared(job), []).append(name)
        waiting = [names for common, names in groups.items() if common is not None]
        while waiting:
            names = waiting.pop()
            folder = Folder(self.out / f"cohort-{names[0]}-to-{names[-1]}")
            if len(names) < 2 or all(Folder(self.out / name).finished for name in names):
                continue
            try:
                if not (folder.path / _APART).exists():
                    run_together({name: jobs[name] for name in names}, folder, self.out, Loop())
            except NotBatchable:  # a mask was refused on the way: the fewer weights are kept, the sooner
                (folder.path / _APART).touch()
            if (folder.path / _APART).exists():
                waiting += [names[: len(names) // 2], names[len(names) // 2 :]]

    def _tried(self, share: float, name: str, job: Job) -> Row:
        row: Row = {"share": share, "run": name}
        try:
            if not _trained_together(job, Folder(self.out / name)):
                job.run(self.out / name, loop=Loop())
            row |= self._measured(self.out / name, share)
        except Busy:
            raise
        except UserError as error:  # a mask that cuts inputs off, or a training that diverged: too few weights
            row["refused"] = str(error)
        self.rows[share] = row
        self.write(None, None)
        if self.told is not None:
            self.told(row)
        return row

    def _measured(self, path: Path, share: float) -> Row:
        run = load(path)
        found = evaluate(run.task, predictor(run.task, run.modules, run.job.seeds[0]), "validation")
        name, figure = next(iter(found.items()))
        dense = figure if share == 1 else self.dense["validation"]
        left = count(run.task, run.modules, run.mask)
        pack = path.with_suffix(".pack")
        return {
            "metric": name, "validation": figure, "loss": (dense - figure) / max(abs(dense), 1e-12),
            "test": run.metrics[name],
            "weights": left.prunable, "kept": left.kept_prunable, "steps": run.job.training.steps,
            "bytes": pack_run(run, pack), "microseconds": _microseconds(pack, run),
        }  # fmt: skip

    def curve(self) -> list[Row]:
        """All of them, largest first."""
        return [self.rows[share] for share in sorted(self.rows, reverse=True)]

    def write(self, budget: Budget | None, chosen: Row | None) -> None:
        """The curve so far, and where the chosen one stands."""
        asked = None if budget is None else asdict(budget)
        self.out.mkdir(parents=True, exist_ok=True)
        write_json(self.out / FRONTIER, {"task": self.task, "budget": asked, "chosen": chosen, "curve": self.curve()})


def _microseconds(path: Path, run: Trained) -> float:
    pack = load_pack(path, allowance=Allowance.unlimited())
    sample = by_name(run.task.inputs(run.task.data("train").take(torch.arange(1))))
    arrays = [np.ascontiguousarray(tensor.numpy()) for tensor in sample.values()]
    times = []
    for _ in range(_CALLS):
        begin = time.perf_counter()
        pack.predict(*arrays)
        times.append(time.perf_counter() - begin)
    return 1e6 * float(np.median(times))
