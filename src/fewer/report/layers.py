"""What a run's files say of its training and of its masks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fewer.core.files.run_folder import CONFIG, Folder
from fewer.report.groups import Group, interval
from fewer.run.load import Trained

__all__ = ["keeps", "losses"]

Series = dict[str, list[tuple[float, ...]]]
_POINTS, _LAYERS = 120, 16


def losses(groups: Sequence[Group]) -> dict[str, Series]:
    """By network, a line a group: (step, mean over its seeds, half an interval)."""
    found: dict[str, Series] = {}
    for group in groups:
        by_step: dict[str, dict[int, list[float]]] = {}
        for run in group.runs:
            for line in Folder(run.path).lines() or Folder(run.path.parent).lines():
                for name in [key for key in line if key.startswith("loss/")]:
                    value = _value(line[name], run)
                    if value is not None:
                        by_step.setdefault(name.removeprefix("loss/"), {}).setdefault(line["step"], []).append(value)
        for network, steps in by_step.items():
            every = -(-len(steps) // _POINTS)  # a chart has no more pixels
            points = [(float(step), *interval(values)) for step, values in sorted(steps.items())]
            found.setdefault(network, {})[group.name] = [*points[:-1:every], points[-1]]
    return found


def _value(logged: Any, run: Trained) -> Any:
    """A cohort's log holds a list, one number a replica."""
    if not isinstance(logged, list):
        return logged
    cohort = Folder(run.path).read_json(CONFIG).get("cohort", [])
    place = cohort.index(run.job.seeds[0]) if isinstance(cohort, list) and run.job.seeds[0] in cohort else 0
    return logged[place] if place < len(logged) else None


def keeps(run: Trained) -> dict[str, float]:
    """Percent of the weights kept per layer; of a deep network the largest layers, and the others together."""
    masks = {
        f"{network}.{name}".removesuffix(".weight"): mask
        for network, by_name in run.mask.items()
        for name, mask in by_name.items()
    }
    shown = sorted(masks, key=lambda name: masks[name].numel(), reverse=True)
    shown = shown[: _LAYERS - 1] if len(shown) > _LAYERS else shown
    found = {name: 100.0 * float(mask.float().mean()) for name, mask in masks.items() if name in shown}
    rest = [mask for name, mask in masks.items() if name not in shown]
    if rest:
        share = sum(int(mask.sum()) for mask in rest) / sum(mask.numel() for mask in rest)
        found[f"{len(rest)} smaller layers"] = 100.0 * share
    return found
