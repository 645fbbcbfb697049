"""Many replicas in lock-step against the eager loop: aggregate updates a second."""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from fewer.attack.hardening.harden import harden
from fewer.bench.overview import Line, line_text, write
from fewer.bench.row import Row
from fewer.core.engines.base import Engine, Training
from fewer.core.engines.cohort import Cohort
from fewer.core.engines.plain import Plain
from fewer.core.task import Task
from fewer.systems.vision.task.task import Settings, Vision

__all__ = ["NOTES", "PLACE", "TITLE", "run"]

TITLE = "Many replicas in lock-step against one by one: aggregate updates a second, batch 128"
PLACE = 4
NOTES = (
    "Both sides with 32-bit numbers, and TF32 products on a GPU. One by one: the plain engine, eager, one network at a "
    "time.",
)

# network, hardening, required ratio on CUDA
CASES = (
    ("mlp", "", 100.0),
    ("mlp", "pgd:0.3,ramp=0", 100.0),
    ("cnn0", "pgd:0.3,ramp=0", 20.0),
    ("cnn3", "pgd:0.3,ramp=0", 30.0),
)
# graph: as any cohort on CUDA; compile: fused kernels too; columns: and convolutions as products of matrices;
# direct: and those of few inputs as sums of products
WAYS = ("graph", "compile", "columns", "direct")
_DIRECT = 9  # a kernel of 3 x 3 on one channel


@dataclass(frozen=True)
class Entrant:
    """Somebody who trains, warm."""

    engine: Engine
    replicas: int

    def rate(self, seconds: float) -> float:
        """Updates a second of all replicas."""
        cuda = self.engine.device.type == "cuda"
        steps, chunk, start = 0, 4, time.perf_counter()
        while time.perf_counter() - start < seconds:
            self.engine.advance(chunk)
            if cuda:
                torch.cuda.synchronize()
            steps += chunk
        return steps * self.replicas / (time.perf_counter() - start)


def run(quick: bool = False) -> list[Row]:
    """One row a network and way: plain and cohort in one run, on the GPU if there is one."""
    if not torch.cuda.is_available():
        return measure(CASES[:-1] if quick else CASES, ("graph",), 1.0 if quick else 4.0)
    cases = [(case, ("graph",) if quick or case[0][:3] != "cnn" else WAYS) for case in CASES]
    return [row for case, ways in cases for row in measure([case], ways, 1.0 if quick else 4.0)]


def measure(cases: Sequence[tuple[str, str, float]], ways: Sequence[str], seconds: float, wait: str = "") -> list[Row]:
    """All get ready, then are timed in turns; `wait` names a file whose coming says that nobody else is at work."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    ready = [(case, way, *_entrants(case, way, device)) for case in cases for way in ways]
    while wait and not Path(wait).exists():
        time.sleep(0.2)
    rows = []
    for (network, hardening, required), way, alone, together in ready:
        turns = [(together.rate(seconds / 2), alone.rate(seconds / 2)) for _ in range(2)]
        ours, theirs = (sum(one) / len(turns) for one in zip(*turns))
        rows.append(
            Row(
                f"{network} {'PGD-7 ' if hardening else ''}training, {together.replicas} replicas, {way}, {device}",
                ours, theirs, "updates/s", ours / theirs, "plain engine, one by one",
                required if device == "cuda" else None,
            )
        )  # fmt: skip
    return rows


def _entrants(case: tuple[str, str, float], way: str, device: str) -> tuple[Entrant, Entrant]:
    network, hardening, _ = case
    replicas = 32 if device == "cuda" else 4
    training = Training(steps=100_000, batch=128, device=device)
    task: Task[Any] = Vision(Settings(network=network))
    if hardening:
        task = harden(task, hardening)
    cohort = Cohort(task, dataclasses.replace(training, compile=way != "graph"), range(replicas))
    cohort.columns = {"columns": 0, "direct": _DIRECT}.get(way)
    entrants = Entrant(Plain(task, training, 0), 1), Entrant(cohort, replicas)
    for entrant in entrants:
        entrant.engine.advance(8)  # compiled, captured
    print(f"{network} {way}: ready", file=sys.stderr, flush=True)
    return entrants


def main() -> None:
    """Arguments for those who wait for a GPU."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", default="cnn3", help="by commas")
    parser.add_argument("--ways", default="graph,columns", help=f"of {', '.join(WAYS)}, by commas")
    parser.add_argument("--seconds", type=float, default=2.0, help="of a row's two turns together, each side")
    parser.add_argument("--wait", default="", metavar="FILE", help="get ready, and time when this file has come")
    parser.add_argument("--out", default="", metavar="FOLDER", help="write bench-cohort.json there")
    given = parser.parse_args()
    cases = [case for case in CASES if case[0] in given.networks.split(",")]
    rows = measure(cases, given.ways.split(","), given.seconds, given.wait)
    lines = [Line("cohort", row) for row in rows]
    print("\n".join(map(line_text, lines)))
    if given.out:
        command = (
            f"python -m {__spec__.name} --networks {given.networks} --ways {given.ways} --seconds {given.seconds:g}"
        )
        write(Path(given.out), lines, command)


if __name__ == "__main__":
    main()
