"""The same job by default: dense as a new user trains it, dense for long, and `--prune auto`, on logs that nobody chose
anything on.

`--data` names a folder of such logs (hopper-expert.hdf5 and so on; what its ABOUT.txt says of them is told); without
it our own experts are recorded with a seed and a noise that no recipe was chosen on. Every training is a piece: `fewer
reproduce control/defaults --pieces ...`. On CUDA a piece is all seeds in lock-step, by as many updates as the same
command makes on a CPU.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from fewer.core.errors import UserError
from fewer.core.files.atomic import write_json
from fewer.core.settings import from_text
from fewer.run.job import Job
from fewer.run.options import job_of
from fewer.studies.order import Order
from fewer.studies.pieces import Piece, Pieces, choice
from fewer.studies.study import Result, hardware, in_words
from fewer.systems.control.studies.agents import commands, spelled
from fewer.systems.control.studies.training.lockstep import in_lockstep
from fewer.systems.control.studies.training.scales import ENVIRONMENTS, environments, file_of
from fewer.systems.control.task.statistics import statistics

__all__ = ["WAYS", "about", "catalogue", "defaults"]

Row = dict[str, Any]

ALGORITHMS = ("plain-bc", "bc", "bcq")
SPARSITY = {"quick": 0.9, "full": 0.95, "paper": 0.95}
SEEDS = {"quick": (0,), "full": (0, 1, 2, 3, 4), "paper": (0, 1, 2, 3, 4)}
LOGGED = {"quick": 2000, "full": 40_000, "paper": 100_000}  # steps
LONG = 100_000  # updates
UNSEEN = 2027  # seed of the experts' roll-outs
NOISE = {"hopper": 0.15, "halfcheetah": 0.15, "walker2d": 0.15}  # recipes were chosen on sampled actions and on 0.1
WAYS = {
    "dense": "as `fewer train` does it by default",
    "long": f"dense, {LONG:,} updates",
    "auto": "by --prune auto",
}
_SMALL = ("hidden=64,48", "autoencoder_hidden=64,64", "episodes=2", "horizon=40", "transitions=2000")


@dataclass(frozen=True)
class Choices:
    """What may be changed."""

    environments: tuple[str, ...] = choice((), "such as hopper,walker2d; empty: all of the scale")
    algorithms: tuple[str, ...] = choice((), "such as plain-bc,bcq; empty: all")
    ways: tuple[str, ...] = choice((), "such as dense,auto; empty: all")
    seeds: tuple[int, ...] = choice((), "such as 0,1,2; empty: the scale's own")
    device: str = choice("", "cpu or cuda; empty: cuda where there is one")
    compile: bool = choice(False, "fused kernels on CUDA, after a minute of compiling: for bcq")


@dataclass(frozen=True)
class Agent:
    """One training."""

    environment: str
    algorithm: str
    way: str
    seed: int

    @property
    def name(self) -> str:
        """Of its piece and its folder."""
        return f"{self.environment}-{self.algorithm}-{self.way}-{self.seed}"


def about(order: Order) -> dict[str, Any]:
    """Every setting that the order stands for."""
    jobs = {}
    for algorithm, way in product(ALGORITHMS, WAYS):
        config = _job(order, Agent("hopper", algorithm, way, 0), "LOGS").config()
        own = {key: value for key, value in config.items() if key not in ("settings", "seeds", "threads")}
        jobs[f"{algorithm}, {way}"] = own
    there = not order.data or Path(order.data).is_dir()  # a command may be asked what it stands for without its logs
    logs = [_logged(order, one) if there else f"{one}-expert.hdf5" for one in environments(order.scale)]
    found = {"logs": logs, "seeds": SEEDS[order.scale], "jobs": jobs}
    return json.loads(json.dumps(found))  # type: ignore[no-any-return]  # lists, as a file holds them


def catalogue(order: Order) -> Pieces:
    """One piece a training."""
    chosen = from_text(Choices, order.words)
    axes = (
        _among(chosen.environments, environments(order.scale)), _among(chosen.algorithms, ALGORITHMS),
        _among(chosen.ways, tuple(WAYS)), chosen.seeds or SEEDS[order.scale],
    )  # fmt: skip
    if order.scale != "quick" and (chosen.device or _device()) == "cuda":
        return Pieces(dict(_cohorts(order, chosen, axes)), Choices)
    agents = [Agent(*values) for values in product(*axes)]
    return Pieces({one.name: Piece(WAYS[one.way], partial(_row, order, one)) for one in agents}, Choices)


def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _cohorts(order: Order, chosen: Choices, axes: Sequence[Sequence[Any]]) -> Iterator[tuple[str, Piece]]:
    *kinds, seeds = axes
    for environment, algorithm, way in product(*kinds):
        agents = [Agent(environment, algorithm, way, seed) for seed in seeds]
        line = f"{WAYS[way]}, {len(agents)} seeds in lock-step"
        yield (
            f"{environment}-{algorithm}-{way}",
            Piece(line, partial(_rows_together, order, agents, compile=chosen.compile)),
        )


def defaults(order: Order) -> Result:
    """What is there: one row for each algorithm and environment that has a dense and a pruned training."""
    rows = [json.loads(path.read_text()) for path in sorted(_folder(order).glob("*.json"))]
    if order.scale == "quick":
        rows = [_row(order, Agent("hopper", *values, 0)) for values in product(ALGORITHMS, WAYS)]
    table = []
    for algorithm, environment in product(ALGORITHMS, ENVIRONMENTS):
        own = [row for row in rows if (row["algorithm"], row["environment"]) == (algorithm, environment)]
        by_way = {way: [row for row in own if row["way"] == way] for way in WAYS}
        if by_way["dense"] and by_way["auto"]:
            table.append(_line(algorithm, environment, by_way))
    logs = ", ".join(dict.fromkeys(row["logs"] for row in rows))
    return Result(
        title=f"The same job by default: `--prune auto --sparsity {SPARSITY[order.scale]:g}` beside dense training, on "
        "logs that no recipe was chosen on",
        columns=["algorithm", "environment", "dense by default", f"dense, {LONG:,} updates", "--prune auto",
                 "% of the better dense", "worst episode: dense, auto", "processor seconds: dense, auto", "seeds"],
        rows=table,
        notes=[
            f"Logs: {logs}. Scores are D4RL's, mean over seeds of 20 episodes each, with 95 % bootstrap intervals of "
            "the mean over seeds where there are three or more; seeds: of dense, long and pruned trainings. Processor "
            "seconds are the median of a whole run: scoring of weights, training and the judging episodes; agents of a "
            "GPU, all seeds in lock-step and in TF32, have none.",
            *_told(order.data),
        ],
        details={"agents": rows},
        commands=commands(order),
        machines=list(dict.fromkeys(row["hardware"] for row in rows if "hardware" in row)),
    )  # fmt: skip


def _told(folder: str) -> list[str]:
    """How the user's logs were made, where the folder says so."""
    place = Path(folder) / "ABOUT.txt"
    return [" ".join(place.read_text().split())] if folder and place.is_file() else []


def _among(given: tuple[str, ...], known: tuple[str, ...]) -> tuple[str, ...]:
    if wrong := [word for word in given if word not in known]:
        raise UserError(f"{wrong[0]!r}", f"one of {', '.join(known)}")
    return given or known


def _folder(order: Order) -> Path:
    return order.out / f"defaults-{order.scale}"


def _logged(order: Order, environment: str) -> str:
    """The logs as they are said beside the numbers, without folders."""
    if order.data:
        return file_of(order.data, environment, "expert").name
    return f"expert:{environment}:{LOGGED[order.scale]}:{UNSEEN}:{NOISE[environment]:g}"


def _job(order: Order, agent: Agent, logs: str) -> Job:
    small = _SMALL if order.scale == "quick" else ()
    words: dict[str, Any] = {
        "settings": [f"environment={agent.environment}", f"algorithm={agent.algorithm}", f"data={logs}", *small],
        "seeds": agent.seed,
    }
    if agent.way == "auto":
        words |= {"prune": "auto", "sparsity": SPARSITY[order.scale]}
    elif agent.way == "long":
        words["steps"] = LONG
    job = job_of("control", words)
    if order.scale != "quick":
        return job
    steps = {"dense": 20, "long": 30, "auto": 40}[agent.way]
    return dataclasses.replace(job, training=dataclasses.replace(job.training, steps=steps))


def _row(order: Order, agent: Agent) -> Row:
    """One training with what it came to; found again once it is there."""
    file = _folder(order) / f"{agent.name}.json"
    if file.exists():
        return dict(json.loads(file.read_text()))
    job, run = _job(order, agent, _source(order, agent)), _folder(order) / "runs" / agent.name
    resumed, begin, clock = run.exists(), time.process_time(), time.perf_counter()
    metrics = job.run(run)[0]
    # of a run that went on after a kill nobody knows the whole
    seconds = (None, None) if resumed else (time.process_time() - begin, time.perf_counter() - clock)
    return _written(order, agent, job.training.steps, metrics, seconds)


def _rows_together(order: Order, agents: Sequence[Agent], *, compile: bool) -> list[Row]:
    """The same of all seeds in lock-step; seconds there are no agent's own."""
    files = [_folder(order) / f"{agent.name}.json" for agent in agents]
    missing = [agent for agent, file in zip(agents, files) if not file.exists()]
    if missing:
        first = missing[0]
        job = dataclasses.replace(_job(order, first, _source(order, first)), seeds=tuple(one.seed for one in missing))
        place = _folder(order) / "cohorts" / f"{first.name}-{len(missing)}"
        for agent, metrics in zip(missing, in_lockstep(job, place, device="cuda", compile=compile, log=order.log)):
            _written(order, agent, job.training.steps, metrics, (None, None))
    return [dict(json.loads(file.read_text())) for file in files]


def _source(order: Order, agent: Agent) -> str:
    return str(file_of(order.data, agent.environment, "expert")) if order.data else _logged(order, agent.environment)


def _written(
    order: Order, agent: Agent, steps: int, metrics: Mapping[str, float], seconds: tuple[float | None, float | None]
) -> Row:
    row: Row = {
        **dataclasses.asdict(agent), "logs": _logged(order, agent.environment), "steps": steps,
        "score": metrics["score"], "lowest": metrics["score_lowest"],
        "processor_seconds": None if seconds[0] is None else round(seconds[0], 1),
        "wall_seconds": None if seconds[1] is None else round(seconds[1], 1),
        "hardware": in_words(hardware()),
    }  # fmt: skip
    write_json(_folder(order) / f"{agent.name}.json", row)
    order.log(f"{agent.name}: {row['score']:.1f}, {row['steps']} updates, {row['processor_seconds']} s")
    return row


def _line(algorithm: str, environment: str, by_way: dict[str, list[Row]]) -> list[Any]:
    means = {way: sum(row["score"] for row in own) / len(own) for way, own in by_way.items() if own}
    better = max(means[way] for way in ("dense", "long") if way in means)
    lowest = [f"{min(row['lowest'] for row in by_way[way]):.0f}" for way in ("dense", "auto")]
    return [
        algorithm, spelled(environment), *(_spelled(by_way[way]) for way in WAYS),
        f"{100 * means['auto'] / better:.1f}", ", ".join(lowest),
        ", ".join(_seconds(by_way[way]) for way in ("dense", "auto")),
        ", ".join(str(len(own)) for own in by_way.values()),
    ]  # fmt: skip


def _spelled(own: Sequence[Row]) -> str:
    if not own:
        return "not trained"
    found = statistics([row["score"] for row in own])
    interval = f" ({found['low']:.1f} to {found['high']:.1f})" if len(own) > 2 else ""
    return f"{found['mean']:.1f}{interval}"


def _seconds(own: Sequence[Row]) -> str:
    known = sorted(row["processor_seconds"] for row in own if row["processor_seconds"] is not None)
    return f"{known[len(known) // 2]:.0f}" if known else "-"
