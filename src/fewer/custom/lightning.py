"""A callback that prunes while Lightning trains: `Trainer(callbacks=[fewer.lightning.Prune(sparsity=0.9)])`."""

from __future__ import annotations

from typing import Any

from fewer.core.errors import MissingExtra
from fewer.custom.pruner import Pruner, base_of

Callback: Any = base_of("lightning.pytorch.callbacks:Callback")

__all__ = ["Prune"]


class Prune(Callback):
    """`prune` as of `fewer train --prune`: a criterion that needs no data, at once or gradually; logs the density."""

    def __init__(self, prune: str = "lamp,when=gradual", *, sparsity: float | None = None) -> None:
        if Callback is object:
            raise MissingExtra("no lightning", "it installed, to prune in its Trainer", "pip install lightning")
        self.pruner = Pruner(prune, sparsity=sparsity)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self.pruner.begin_(pl_module, int(trainer.estimated_stepping_batches))

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        self.pruner.step_(pl_module, trainer.global_step)
        pl_module.log("density", self.pruner.count(pl_module).density)
