"""How a finished run shows itself in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fewer.core.html_table import shown
from fewer.pruning.reach import count

if TYPE_CHECKING:
    from fewer.run.load import Trained

__all__ = ["run_shown"]


def run_shown(run: Trained) -> str:
    """Figures, what is kept of the weights, and how large they are."""
    found = count(run.task, run.modules, run.mask)
    rows: list[tuple[str, Any]] = [*run.metrics.items(), ("weights and biases", found.weights)]
    if run.mask:
        rows += [("weights kept", str(found))]
    rows += [("bytes, dense float32", 4 * found.weights)]
    how = [f"pruned by {run.job.prune.method}"] if run.job.prune else []
    how += [f"hardened by {run.job.harden}"] if run.job.harden else []
    title = f"{run.job.task}: {', '.join(run.modules)}"
    return shown(title, ["", ""], rows, [", ".join([*how, f"in {run.path}"])])
