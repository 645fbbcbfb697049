"""What a phone costs each selector: processor time in batches and alone, in turns on the same phones."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import torch

from fewer.bench.row import interleaved_seconds
from fewer.core.seed import Stream
from fewer.packs import pack
from fewer.packs.trace.trace import trace
from fewer.systems.cellfree.task.selectors.selector import Selector
from fewer.systems.cellfree.task.selectors.trained import Trained
from fewer.systems.cellfree.task.survey import Survey

__all__ = ["costs"]

ALONE = 20  # single phones in a row
ROUNDS = 7


def costs(selectors: Mapping[str, Selector], phones: Survey) -> dict[str, dict[str, float]]:
    """Microseconds a phone, of all phones at once and one at a time; local networks run in packs, as they are used."""
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: Path(folder) / f"{number}.pack" for number, name in enumerate(selectors)}
        calls = {name: _call(one, paths[name]) for name, one in selectors.items()}
        many = interleaved_seconds(
            {name: partial(call, phones) for name, call in calls.items()}, rounds=ROUNDS, warmup=1
        )
        first = [phones.rows(slice(row, row + 1)) for row in range(min(ALONE, len(phones)))]
        alone = interleaved_seconds(
            {name: partial(_one_by_one, call, first) for name, call in calls.items()}, rounds=ROUNDS, warmup=1
        )
    return {
        name: {"batch_us": 1e6 * many[name] / len(phones), "alone_us": 1e6 * alone[name] / len(first)} for name in calls
    }


def _one_by_one(call: Callable[[Survey], object], phones: list[Survey]) -> None:
    for phone in phones:
        call(phone)


def _call(selector: Selector, path: Path) -> Callable[[Survey], object]:
    if not isinstance(selector, Trained) or selector.task.settings.graph:
        return lambda phones: selector.scores(phones.master, phones.rsrp_db, phones.reported)
    task, noise = selector.task, Stream(torch.tensor(0), torch.tensor(0))
    example = task.inputs(task.data("train").take(torch.arange(2)))
    with torch.no_grad():
        program, tensors = trace(
            lambda nets, *leaves: task.predict(nets, type(example)(*leaves), noise), example._asdict(),
            networks=selector.modules,
        )  # fmt: skip
    pack.write(path, program, tensors)
    packed = pack.load(path)

    def call(phones: Survey) -> object:
        reported = phones.reported.astype(np.float32)
        return packed.predict(phones.master, phones.rsrp_db.astype(np.float32), reported)

    return call
