"""From a finished run to a pack: trace the task's prediction, keep the kept weights, write one file."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fewer.core.abilities import Annotated
from fewer.core.data import convert
from fewer.core.engines.state import check_finite
from fewer.core.errors import UserError
from fewer.core.registry import system_of
from fewer.core.seed import Stream
from fewer.core.system import imported
from fewer.packs import pack
from fewer.packs.trace.trace import trace
from fewer.run.load import Trained

__all__ = ["by_name", "carried_bytes", "pack_run"]

_CALIBRATION = 512  # training samples from which int8 chooses its steps


def pack_run(run: Trained, path: str | Path, values: str = "float32", *, bare: bool = False) -> int:
    """Write the run's prediction as a pack; its length in bytes. A bare one carries the prediction and no more."""
    check_finite(run.modules, str(run.path))
    task = run.task
    first = next(parameter for module in run.modules.values() for parameter in module.parameters())
    example = task.inputs(convert(task.data("train").take(torch.arange(2)), torch.device("cpu"), first.dtype))
    inputs = by_name(example)
    noise = Stream(torch.tensor(run.job.seeds[0]), torch.tensor(0))

    def predict(nets: Any, *tensors: Tensor) -> Tensor:
        given = tensors[0] if isinstance(example, Tensor) else type(example)(**dict(zip(inputs, tensors)))
        return task.predict(nets, given, noise)

    with torch.no_grad():
        program, tensors = trace(predict, inputs, networks=run.modules, any_length=":" in run.job.task)
    masks = {
        f"{network}.{name}": mask.numpy()
        for network, by_name in run.mask.items()
        for name, mask in by_name.items()
        if f"{network}.{name}" in tensors
    }
    settings = {
        "task": run.job.task, "settings": list(run.job.settings), "metrics": run.metrics,
        "prune": run.job.prune.described() if run.job.prune else None, "harden": run.job.harden,
    }  # fmt: skip
    carry = system_of(run.job.task).carry
    if carry and not bare and (carried := imported(carry)(task)):
        settings["carried"] = carried
    if isinstance(task, Annotated) and (about := dict(task.about())):
        settings["about"] = about
    if values != "float32":
        settings["figures_of"] = "the run, before its values were rounded"
    calibration = None
    if values == "int8":
        count = min(_CALIBRATION, len(task.data("train")))
        sample = by_name(task.inputs(task.data("train").take(torch.arange(count))))
        calibration = [np.asarray(tensor) for tensor in sample.values()]
    return pack.write(path, program, tensors, masks=masks, values=values, settings=settings, calibration=calibration)


def carried_bytes(carried: Mapping[str, Any] | None) -> int:
    """How many bytes of a file are what it takes along beside its network, as the file compresses it."""
    return len(zlib.compress(json.dumps(carried, separators=(",", ":")).encode(), 9)) if carried else 0


def by_name(inputs: Any) -> dict[str, Tensor]:
    """The tensors of a task's inputs by their names; one alone is `x`."""
    if isinstance(inputs, Tensor):
        return {"x": inputs}
    if isinstance(inputs, dict):
        return dict(inputs)
    if hasattr(inputs, "_asdict"):
        return dict(inputs._asdict())
    raise UserError(f"inputs of type {type(inputs).__name__}", "a tensor, a dict or a NamedTuple of tensors")
