"""One training over several processes, started by torchrun: `torchrun --nproc-per-node 2 -m fewer train ...`.

Every process takes its share of each batch and the gradients are averaged, so the same global batch gives the same
numbers as one process. Process 0 prunes, restores and writes; the others receive its state and follow.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch import distributed as group

from fewer.core.engines.base import Training
from fewer.core.engines.loop import Loop, fit
from fewer.core.engines.plain import Plain
from fewer.core.errors import UserError
from fewer.core.files.run_folder import Folder
from fewer.core.task import Noise, Objective, Task
from fewer.run.job import Job

__all__ = ["Distributed", "train_distributed"]

_PATIENCE = timedelta(hours=2)  # for process 0 to read data, prune, evaluate


@dataclass(frozen=True)
class ShareOfNoise:
    """The rows of a whole batch's noise that belong to this process; noise that is not by sample is common."""

    whole: Noise
    rank: int
    share: int  # samples of each process

    @property
    def step(self) -> Tensor:
        return self.whole.step

    def normal(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """Standard normal."""
        return self._rows(self.whole.normal(name, self._widened(shape)), shape)

    def uniform(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """In [0, 1)."""
        return self._rows(self.whole.uniform(name, self._widened(shape)), shape)

    def _by_sample(self, shape: tuple[int, ...]) -> bool:
        return bool(shape) and shape[0] == self.share

    def _widened(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (shape[0] * group.get_world_size(), *shape[1:]) if self._by_sample(shape) else shape

    def _rows(self, drawn: Tensor, shape: tuple[int, ...]) -> Tensor:
        first = self.rank * self.share
        return drawn[first : first + self.share] if self._by_sample(shape) else drawn


class Distributed(Plain):
    """The plain engine on this process's share of each batch. Norms see the share alone, as in torch's own DDP."""

    def __init__(
        self, task: Task[Any], training: Training, seed: int = 0, *, modules: Mapping[str, nn.Module] | None = None
    ) -> None:
        count = group.get_world_size()
        if training.batch % count:
            raise UserError(f"a batch of {training.batch} over {count} processes", "a multiple", "change --batch")
        self.rank, self.share = group.get_rank(), training.batch // count
        super().__init__(task, training, seed, modules=modules)
        self.versions: tuple[int, ...] = ()

    def begin_(self) -> None:
        """Take over the state of process 0, masks included."""
        networks = self.state.networks.values()
        masked = [int(network.mask is not None) for network in networks]
        header = torch.tensor([self.count, *masked], dtype=torch.int64, device=self.device)
        group.broadcast(header, 0)
        self.count, *masked = header.tolist()
        for network, mask in zip(networks, masked):
            if mask and network.mask is None:
                network.mask = torch.ones_like(network.weights)
        self._share_state_()
        self.counted = [self._turns(objective) for objective in self.objectives]

    def _share_state_(self) -> None:
        for _, tensor in self.state.named():
            group.broadcast(tensor, 0)
        self.versions = self._mask_versions()

    def _mask_versions(self) -> tuple[int, ...]:
        return tuple(-1 if n.mask is None else n.mask._version for n in self.state.networks.values())

    def advance(self, steps: int) -> None:
        """That many steps; after a change of the masks all processes take that of process 0, to the bit."""
        if self._mask_versions() != self.versions:
            self._share_state_()
        super().advance(steps)

    def agreed(self, numbers: Tensor) -> Tensor:
        """Those of process 0, which alone has read the folder."""
        shared = numbers.to(self.device)
        group.broadcast(shared, 0)
        return shared.cpu()

    def noise(self) -> Noise:
        """What belongs to this share of the batch."""
        return ShareOfNoise(super().noise(), self.rank, self.share)

    def _order(self) -> Tensor:
        return super()._order()[:, self.rank * self.share : (self.rank + 1) * self.share]

    def gradients(self, objective: Objective[Any], batch: Any) -> tuple[Tensor, dict[str, Tensor]]:
        losses, found = super().gradients(objective, batch)
        sizes = [gradient.shape[1] for gradient in found.values()]
        whole = torch.cat([losses[:, None].to(self.training.dtype), *found.values()], 1)  # one message for all
        group.all_reduce(whole)
        mean, *parts = whole.div_(group.get_world_size()).split([1, *sizes], 1)
        return mean[:, 0], dict(zip(found, parts))


class _Ranked(Job):
    """A job whose engine is one of several."""

    def plain(self) -> type[Plain]:
        return Distributed


def train_distributed(job: Job, out: str | Path, *, loop: Loop | None = None) -> list[dict[str, float]] | None:
    """Train the job with every process that torchrun started; its metrics in process 0, None in the others."""
    if len(job.seeds) > 1 or job.engine not in ("auto", "plain"):
        raise UserError(f"{len(job.seeds)} seeds, engine {job.engine}, under torchrun", "one seed, plain", "--seeds 0")
    if job.prune is not None and job.prune.when == "rounds":
        raise UserError("rounds under torchrun", "another time to prune", "leave when=rounds out")
    with _joined(job.training.device) as device:
        training = dataclasses.replace(job.training, device=device)
        first = group.get_rank() == 0
        # only process 0 reads the other run: the others may be on hosts that do not have it
        start_from = job.start_from if first else None
        ranked = _Ranked(job.task, job.settings, training, job.prune, job.harden, "plain", job.seeds, start_from)
        finished = torch.tensor([int(first and Folder(out).finished)], device=device)
        group.broadcast(finished, 0)
        if first:
            return ranked.run(out, loop=loop)
        if not finished.item():
            engine = ranked.build()
            engine.begin_()
            fit(engine, events=ranked.events(), loop=dataclasses.replace(loop or Loop(), on_log=None, watch=None))
        return None


@contextmanager
def _joined(device: str) -> Iterator[str]:
    """The process group, and this process's device."""
    on_gpu = device.startswith("cuda")
    place = f"cuda:{os.environ.get('LOCAL_RANK', '0')}" if on_gpu else device
    if on_gpu:
        torch.cuda.set_device(place)
    group.init_process_group("nccl" if on_gpu else "gloo", timeout=_PATIENCE)
    try:
        yield place
    finally:
        group.destroy_process_group()
