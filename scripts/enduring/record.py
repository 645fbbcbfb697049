"""What mixed traffic went through, as RESULTS.md shows it."""

from __future__ import annotations

from typing import Any

import numpy as np
from published.stamp import load, stamp

from enduring.run import Endured

__all__ = ["record"]


def record(found: Endured, command: str) -> dict[str, Any]:
    """One row for each kind of request, and one for all."""
    plan, told = found.plan, found.summary()
    rows: list[list[object]] = []
    for name, seen in found.seen.items():
        middle, late, most = np.percentile(seen.seconds or [0.0], [50, 99, 100]) * 1e3
        rows.append(
            [
                name,
                seen.answered,
                sum(seen.ended.values()),
                sum(seen.unexpected.values()),
                f"{middle:.1f}",
                f"{late:.1f}",
                f"{most:.0f}",
            ]
        )
    rows.append(["all", told["answered"], told["ended_with_a_killed_worker"],
                 sum(sum(seen.unexpected.values()) for seen in found.seen.values()),
                 f"{told['p50_ms']:.1f}", f"{told['p99_ms']:.1f}", ""])  # fmt: skip
    return {
        "title": f"Mixed traffic for {plan.seconds / 60:.0f} minutes while workers are killed and packs are reloaded",
        "columns": ["request", "answered", "ended with a killed worker", "wrong answers", "ms, median", "ms, p99",
                    "ms, most"],
        "rows": rows,
        "notes": [
            f"{plan.workers} workers; one is killed every {plan.kill:g} s ({found.kills} kills), all packs are "
            f"reloaded every {plan.reload:g} s ({found.reloads} signals, {found.counted.get('good', 0):g} reloads, "
            f"{found.counted.get('failed', 0):g} failed)"
            f"{'; TERM under load at the end' if plan.terminate else ''}.",
            "Lost, that is unanswered though no worker had been killed since the connection last had an answer: "
            f"{len(found.lost)}. New connections that were refused: {told['could_not_connect']}.",
            f"Memory of all processes, what they share counted once: {told['megabytes'][0]} MB after ten seconds, "
            f"{told['megabytes'][1]} MB at the end.",
            f"Clients run in one process beside the service. Load when this ended: {load()}.",
        ],
        **stamp(command),
    }  # fmt: skip
