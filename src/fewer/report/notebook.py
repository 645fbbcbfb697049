"""How a finished run shows itself in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fewer.core.mask import density, kept, total
from fewer.core.notebook import shown

if TYPE_CHECKING:
    from fewer.job import Trained

__all__ = ["run_shown"]


def run_shown(run: Trained) -> str:
    """Figures, what is kept of the weights, and how large they are."""
    weights = sum(p.numel() for module in run.modules.values() for p in module.parameters())
    rows: list[tuple[str, Any]] = [*run.figures.items(), ("weights and biases", weights)]
    if run.mask:
        rows += [("weights kept", f"{kept(run.mask):,} of {total(run.mask):,} ({density(run.mask):.1%})")]
    rows += [("bytes, dense float32", 4 * weights)]
    how = [f"pruned by {run.job.prune.method}"] if run.job.prune else []
    how += [f"hardened by {run.job.harden}"] if run.job.harden else []
    title = f"{run.job.task}: {', '.join(run.modules)}"
    return shown(title, ["", ""], rows, [", ".join([*how, f"in {run.path}"])])
