"""Kill a short training at random moments, start it again until it ends, compare with one that was never killed.

python tests/run/kills.py 100        prints "100 of 100 identical" and exits with 0 if all are
"""

from __future__ import annotations

import argparse
import functools
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

SETTINGS = ("network=cnn0", "classes=3,7")
FILES = ("weights.safetensors", "mask.safetensors", "metrics.json", "metrics.jsonl")
VARIANTS: dict[str, dict[str, object]] = {
    "plain": {},
    "start": {"prune": {"method": "snip", "sparsity": 0.8}},
    "gradual": {"prune": {"method": "magnitude", "sparsity": 0.8, "when": "gradual", "every": 7}},
    "rigl": {"prune": {"method": "random", "sparsity": 0.7, "scope": "erk", "when": "rigl", "every": 9}},
    "cohort": {"seeds": (0, 3), "prune": {"method": "magnitude", "sparsity": 0.8, "when": "gradual", "every": 11}},
    "hardened": {"harden": "fgsm:0.1"},
}


@dataclass(frozen=True)
class Outcome:
    """One training that was killed and went on."""

    variant: str
    kills: int
    different: tuple[str, ...]


def train(variant: str, out: Path, steps: int) -> None:
    """The training itself, saving as often as it can."""
    from fewer.core.engines.base import Training
    from fewer.core.engines.loop import Loop
    from fewer.pruning.pruning import Pruning
    from fewer.run.job import Job

    described = dict(VARIANTS[variant])
    prune = described.pop("prune", None)
    job = Job(
        "vision", SETTINGS, Training(steps=steps, batch=32),
        prune=Pruning(**prune) if isinstance(prune, dict) else None, **described,  # type: ignore[arg-type]
    )  # fmt: skip
    job.run(out, loop=Loop(log_every=5, save_seconds=0.0))


def forked(variant: str, out: Path, steps: int) -> int:
    """The same in a fork of this process, where torch is imported already: kills land in training, not in imports."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            train(variant, out, steps)
            code = 0
        except BaseException as error:
            print(f"{variant}: {error}", file=sys.stderr, flush=True)
        finally:
            os._exit(code)
    return child


def ended(child: int, after: float) -> bool:
    """Wait; kill -9 when the time is up. True if the training ended by itself."""
    deadline = time.monotonic() + after
    while time.monotonic() < deadline:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            if os.waitstatus_to_exitcode(status) != 0:
                raise SystemExit("a training that was not killed failed")
            return True
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def once(variant: str, reference: Path, work: Path, steps: int, lasts: float, lot: random.Random) -> Outcome:
    """Kill at random moments, at least once, until the training gets through."""
    kills = 0
    while True:
        after = lot.uniform(0.0, lasts) if kills < 2 else 600.0
        if ended(forked(variant, work, steps), after):
            break
        kills += 1
    return Outcome(variant, kills, tuple(different(reference, work)))


def different(reference: Path, other: Path) -> list[str]:
    """Files of the results that are not the same to the bit, and files that should not be there."""
    places = [reference, *sorted(reference.glob("seed-*"))]
    wrong = []
    for place in places:
        twin = other / place.relative_to(reference)
        for name in FILES:
            if (place / name).exists() and (
                not (twin / name).exists() or (place / name).read_bytes() != (twin / name).read_bytes()
            ):
                wrong.append(str(twin.relative_to(other) / name))
    left_over = [path.name for path in other.rglob("*") if path.name.startswith("state.") or ".part" in path.name]
    return wrong + left_over


def kills(count: int, *, variants: list[str], steps: int = 40, seed: int = 0) -> list[Outcome]:
    """That many trainings, the variants in turn, each killed at least once."""
    import torch

    import fewer.run.job
    from fewer.core.registry import make

    torch.set_num_threads(1)
    # tasks hold no weights: the forks share one, and kills land in training and not in the reading of images
    fewer.run.job.make = functools.cache(make)  # type: ignore[attr-defined]
    fewer.run.job.make("vision", SETTINGS)
    lot, outcomes = random.Random(seed), []
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        references: dict[str, tuple[Path, float]] = {}
        for index in range(count):
            variant = variants[index % len(variants)]
            if variant not in references:
                place = Path(folder) / variant
                train(variant, place, steps)  # here, so that the forks find everything imported
                begin = time.monotonic()
                ended(forked(variant, Path(folder) / f"{variant}-timed", steps), 600.0)
                references[variant] = place, time.monotonic() - begin
            place, lasts = references[variant]
            work = Path(folder) / f"run-{index}"
            outcome = once(variant, place, work, steps, lasts, lot)
            while outcome.kills == 0:  # it got through: that proves nothing
                shutil.rmtree(work)
                outcome = once(variant, place, work, steps, lasts, lot)
            outcomes.append(outcome)
            shutil.rmtree(work)
            if outcome.different:
                print(f"{variant}: {', '.join(outcome.different)} differ", file=sys.stderr, flush=True)
    return outcomes


def main() -> int:
    """Count the identical ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=10)
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=list(VARIANTS))
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    outcomes = kills(arguments.count, variants=arguments.variants, steps=arguments.steps, seed=arguments.seed)
    same = sum(not outcome.different for outcome in outcomes)
    print(f"{same} of {len(outcomes)} identical ({sum(outcome.kills for outcome in outcomes)} kills)")
    return 0 if same == len(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
