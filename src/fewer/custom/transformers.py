"""A callback that prunes while a Hugging Face `Trainer` trains: `callbacks=[fewer.transformers.Prune()]`."""

from __future__ import annotations

from typing import Any

from fewer.core.errors import MissingExtra
from fewer.custom.pruner import Pruner, base_of

TrainerCallback: Any = base_of("transformers:TrainerCallback")

__all__ = ["Prune"]


class Prune(TrainerCallback):
    """`prune` as of `fewer train --prune`: a criterion that needs no data, at once or gradually; logs the density."""

    def __init__(self, prune: str = "lamp,when=gradual", *, sparsity: float | None = None) -> None:
        if TrainerCallback is object:
            raise MissingExtra("no transformers", "it installed, to prune in its Trainer", "pip install transformers")
        self.pruner = Pruner(prune, sparsity=sparsity)

    def on_train_begin(self, args: Any, state: Any, flow: Any, **found: Any) -> None:
        self.pruner.begin_(found["model"], state.max_steps)

    def on_step_end(self, args: Any, state: Any, flow: Any, **found: Any) -> None:
        self.pruner.step_(found["model"], state.global_step)

    def on_log(self, args: Any, state: Any, flow: Any, **found: Any) -> None:
        density = self.pruner.count(found["model"]).density
        for lines in (found.get("logs"), state.log_history[-1] if state.log_history else None):
            if lines is not None:
                lines["density"] = density
