"""One bit of one file of a run folder is another: reading it is refused, or gives what it gave before."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scripts.release.injected.moments import Moments, end
from scripts.release.injected.training import ENDED, REFUSED, different, forked

__all__ = ["flips"]

STEPS = 6


def _job() -> Any:
    from fewer.core.engines.base import Training
    from fewer.pruning.pruning import Pruning
    from fewer.run.job import Job

    training = Training(steps=STEPS, batch=8, validate_every=2)
    return Job("tests.toys:Fit", training=training, prune=Pruning("magnitude", 0.5))


def _train(out: Path) -> None:
    from fewer.core.engines.loop import Loop

    with contextlib.redirect_stderr(io.StringIO()):  # a damaged state is told in a line, and the one before it taken
        _job().run(out, loop=Loop(log_every=1, save_seconds=0.0))


def _read(run: Path) -> dict[str, Any]:
    """What people get of a finished run: evaluated anew, recorded, and drawn as curves."""
    import fewer
    from fewer.core.engines.evaluate import evaluate, predictor
    from fewer.core.files.run_folder import Folder

    found = fewer.load(run)
    masks = {f"{network}/{name}": mask for network, by_name in found.mask.items() for name, mask in by_name.items()}
    return {
        "evaluated": evaluate(found.task, predictor(found.task, found.modules)),
        "recorded": found.metrics,
        "again": _job().run(run),  # the same command finds it finished
        "lines": Folder(run).lines(),
        "masks": {name: mask.tolist() for name, mask in masks.items()},
    }


def _flipped(path: Path, lot: random.Random) -> str:
    content = bytearray(path.read_bytes())
    place, bit = lot.randrange(len(content)), lot.randrange(8)
    content[place] ^= 1 << bit
    path.write_bytes(bytes(content))
    return f"{path.name}, bit {bit} of byte {place}"


def _unfinished(folder: Path) -> list[Path]:
    """Trainings that were ended early, in the middle and late, with everything that such a folder holds."""
    found = []
    for at in (70, 110, 150):
        out = folder / f"unfinished-{at}"

        def work(at: int = at, out: Path = out) -> None:
            Moments(end, at).inject()
            _train(out)

        if forked(work) == ENDED:
            found.append(out)
    if not found:
        raise SystemExit("no training was ended before it was finished")
    return found


def flips(folder: Path, count: int, seed: int = 0) -> dict[str, dict[str, int]]:
    """For each file how many flips were refused, harmless or wrong: other numbers, or an error that is no refusal."""
    finished, told = folder / "finished", folder / "told"
    _train(finished)
    before = json.dumps(_read(finished))
    places = [(finished, path) for path in sorted(finished.iterdir()) if path.stat().st_size]
    for run in _unfinished(folder):
        places += [(run, path) for path in sorted(run.iterdir()) if path.stat().st_size]
    lot, counted = random.Random(seed), dict[str, dict[str, int]]()
    for number in range(count):
        run, path = places[number % len(places)]
        copy = Path(shutil.copytree(run, folder / "copy"))
        what = _flipped(copy / path.name, lot)
        name = f"{path.name}, {'finished' if run == finished else 'unfinished'}"
        outcome = _outcome(_reads(copy, before) if run == finished else _goes_on(copy, finished), told)
        row = counted.setdefault(name, {"refused": 0, "harmless": 0, "wrong": 0})
        row[outcome] += 1
        if outcome == "wrong":
            print(f"{name}: {what}: {told.read_text() if told.exists() else ''}", file=sys.stderr, flush=True)
        shutil.rmtree(copy)
    return counted


def _reads(copy: Path, before: str) -> Callable[[], str]:
    return lambda: "" if json.dumps(_read(copy)) == before else "other numbers"


def _goes_on(copy: Path, finished: Path) -> Callable[[], str]:
    def work() -> str:
        _train(copy)
        return ", ".join(different(finished, copy))

    return work


def _outcome(work: Callable[[], str], told: Path) -> str:
    told.unlink(missing_ok=True)

    def judged() -> None:
        if wrong := work():
            told.write_text(wrong)
            os._exit(ENDED)

    return {0: "harmless", REFUSED: "refused"}.get(forked(judged), "wrong")
