"""A classifier whose scores are rough but quick while an attack searches; each success is judged anew, exactly.

On a GPU a step of an attack in bfloat16 costs a fraction of one in float32, and where it leads is as good a point to
try. Only whether that point fools must be exact: `confirmed` asks the network as it was given.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from fewer.attack.attack_loss import logits_and_labels, wrong
from fewer.core.abilities import Variant
from fewer.core.engines.nets import NetworkSet
from fewer.core.task import Nets, Noise, Task

__all__ = ["CHUNK", "Rough", "confirmed", "exactly"]

CHUNK = 1024  # images that pass a network at once: always as many, so that it is compiled once


class Rough(Variant):
    """The task with scores by copies of the networks in bfloat16, in chunks of one size; compiled on a GPU."""

    def __init__(self, task: Task[Any], nets: NetworkSet) -> None:
        super().__init__(task)
        self.exact = logits_and_labels(self.task, "an audit")
        self.device = next(p for module in nets.modules.values() for p in module.parameters()).device
        self.quick = replace(nets, modules=self._copies(nets.modules), training=False)
        self.chunk = CHUNK if self.device.type == "cuda" else 0
        self.logits = self.rough_logits  # the variant's own attribute hides a method

    def _copies(self, modules: Mapping[str, nn.Module]) -> dict[str, nn.Module]:
        made = {}
        for name, module in modules.items():
            made[name] = copy.deepcopy(module).requires_grad_(False).eval()
            if self.device.type == "cuda":
                made[name].to(memory_format=torch.channels_last)  # type: ignore[call-overload]
                made[name].compile(dynamic=False)
        return made

    @contextmanager
    def quickly(self) -> Iterator[None]:
        """For as long as a search takes, on a GPU: what cannot be compiled goes on as it is, with a warning; and since
        chunks are of one size, cuDNN looks for the fastest kernels."""
        if self.device.type != "cuda":
            yield
            return
        cudnn, compiling = torch.backends.cudnn, torch._dynamo.config
        before = cudnn.benchmark, compiling.suppress_errors
        cudnn.benchmark = compiling.suppress_errors = True
        try:
            yield
        finally:
            cudnn.benchmark, compiling.suppress_errors = before

    def rough_logits(self, nets: Nets, inputs: Tensor, noise: Noise) -> Tensor:
        """(batch, classes), in float32, from the quick copies; `nets` are not asked."""
        with torch.autocast(self.device.type, torch.bfloat16):
            if not self.chunk:
                return self.task.logits(self.quick, inputs, noise).float()  # type: ignore[attr-defined,no-any-return]
            return torch.cat([self._whole(part, noise) for part in inputs.split(self.chunk)])

    def _whole(self, part: Tensor, noise: Noise) -> Tensor:
        """Scores of at most a chunk, filled up to one."""
        filled = F.pad(part, (0,) * (2 * part.ndim - 1) + (self.chunk - len(part),))
        scores: Tensor = self.task.logits(self.quick, filled, noise)  # type: ignore[attr-defined]
        return scores[: len(part)].float()


def confirmed(task: Any, nets: NetworkSet, batch: Any, noise: Noise, fooled: Tensor) -> Tensor:
    """Of the samples that a rough classifier calls fooled, those that are; every other classifier is believed."""
    if not isinstance(task, Rough):
        return fooled
    rows = fooled.nonzero()[:, 0]
    if not len(rows):
        return fooled
    with torch.no_grad(), exactly():
        few = pytree.tree_map(lambda leaf: leaf.index_select(0, rows), batch)
        judged = torch.cat([wrong(*task.exact(nets, part, noise)) for part in _parts(few, len(rows))])
    return fooled.index_put((rows,), judged)


def _parts(batch: Any, count: int) -> list[Any]:
    bounds = range(0, count, CHUNK)
    return [pytree.tree_map(lambda leaf, at=at: leaf[at : at + CHUNK], batch) for at in bounds]


@contextmanager
def exactly() -> Iterator[None]:
    """Convolutions and products in float32 to the last digit, without autocast or searches for the fastest kernel."""
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    before = cudnn.allow_tf32, matmul.allow_tf32, cudnn.benchmark
    cudnn.allow_tf32 = matmul.allow_tf32 = cudnn.benchmark = False
    try:
        with torch.autocast("cuda" if torch.cuda.is_available() else "cpu", enabled=False):
            yield
    finally:
        cudnn.allow_tf32, matmul.allow_tf32, cudnn.benchmark = before
