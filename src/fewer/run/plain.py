"""From a run back to torch: the network as its author wrote it, with the weights that were trained."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from fewer.core.engines.state import fill_, tensors_of
from fewer.core.errors import UserError
from fewer.custom.calling import leaves
from fewer.custom.program import exported
from fewer.custom.supervised import SupervisedTask
from fewer.run.load import Trained

__all__ = ["torch_of"]

_FORMS = ("module", "state_dict", "program")


def torch_of(run: Trained, form: str, network: str | None) -> Any:
    """The module, its state dict or its exported program."""
    if form not in _FORMS:
        raise UserError(f"form {form!r}", f"one of {', '.join(_FORMS)}")
    name = network or next(iter(run.modules))
    if name not in run.modules or (network is None and len(run.modules) > 1):
        raise UserError(f"network {network!r}", f"one of {', '.join(run.modules)}", "name it: network=...")
    task = run.task
    with torch.random.fork_rng(devices=[]):
        module: nn.Module = task.model() if isinstance(task, SupervisedTask) else task.networks()[name]
    fill_(module, tensors_of(run.modules[name]))
    if form == "module":
        return module.eval()
    if form == "state_dict":
        return module.state_dict()
    inputs = task.inputs(task.data("train").take(torch.arange(2)))
    called = run.modules[name] if isinstance(task, SupervisedTask) else module
    return exported(called, tuple(leaf.float() if leaf.is_floating_point() else leaf for leaf in leaves(inputs)))
