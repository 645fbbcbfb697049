"""Memory layouts of a network, and which is fastest here: found by timing, once per architecture.

Convolutions run 1.4 to 2.1 times faster in the right one, and which it is depends on the channels.
"""

from __future__ import annotations

import contextlib
import copy
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn

from fewer.core.engines.nets import NetworkSet
from fewer.core.errors import UserError

__all__ = ["LAYOUTS", "Layout", "best_layout", "layout"]

LAYOUTS = ("contiguous", "channels_last", "native")
_chosen: dict[Any, str] = {}


@dataclass(frozen=True)
class Layout:
    """Networks laid out, and the switch they must run under."""

    name: str
    nets: NetworkSet

    @contextlib.contextmanager
    def active(self) -> Iterator[NetworkSet]:
        """The networks, with oneDNN switched off if the layout is torch's native one."""
        before = torch.backends.mkldnn.enabled
        try:
            # not `mkldnn.flags`: it also sets TF32, which warns on most machines
            torch.backends.mkldnn.enabled = before and self.name != "native"  # type: ignore[assignment]
            yield self.nets
        finally:
            torch.backends.mkldnn.enabled = before


def _converted(tensor: Tensor) -> Tensor:
    return tensor.contiguous(memory_format=torch.channels_last) if tensor.ndim == 4 else tensor


def layout(nets: NetworkSet, name: str) -> Layout:
    """The networks in a layout; channels_last works on copies."""
    if name not in LAYOUTS:
        raise UserError(f"layout {name!r}", f"one of {', '.join(LAYOUTS)}")
    if name != "channels_last":
        return Layout(name, nets)
    if nets.state is not None:
        state = {net: {key: _converted(value) for key, value in part.items()} for net, part in nets.state.items()}
        return Layout(name, replace(nets, state=state))
    modules = {
        key: copy.deepcopy(module).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        for key, module in nets.modules.items()
    }
    return Layout(name, replace(nets, modules=modules))


def best_layout(nets: NetworkSet, device: torch.device, step: Callable[[NetworkSet], object]) -> Layout:
    """The layout in which `step` is fastest; networks of one architecture are timed once per process."""
    parts = [part for module in nets.modules.values() for part in module.modules()]
    if not any(isinstance(part, nn.Conv2d) for part in parts):
        return layout(nets, "contiguous")
    shapes = tuple(tuple(p.shape) for module in nets.modules.values() for p in module.parameters())
    key = (device, shapes, torch.get_num_threads())
    if key not in _chosen:
        names = LAYOUTS if device.type == "cpu" else LAYOUTS[:2]
        _chosen[key] = _fastest({name: layout(nets, name) for name in names}, device, step)
    return layout(nets, _chosen[key])


def _fastest(candidates: dict[str, Layout], device: torch.device, step: Callable[[NetworkSet], object]) -> str:
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for turn in range(4):
        for name, candidate in candidates.items():
            with candidate.active() as nets:
                start = time.perf_counter()
                step(nets)
                if device.type == "cuda":
                    torch.cuda.synchronize(device)
                # the first turn pays for lazy initialisation
                if turn:
                    seconds[name].append(time.perf_counter() - start)
    return min(seconds, key=lambda name: median(seconds[name]))
