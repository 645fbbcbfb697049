"""What hostile clients cost, as RESULTS.md shows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from published.stamp import load, stamp

from hurting.measure import HEALTH_MS, MEMORY_MB, Seen

__all__ = ["record"]


def record(seen: Sequence[Seen], command: str) -> dict[str, Any]:
    """One row for each attack."""
    return {
        "title": "Hostile requests and connections beside ordinary ones: what they cost the service",
        "columns": ["attack", "times", "answers", "ms until answered", "MB more", "health: ms, median and most",
                    f"health beyond {HEALTH_MS:.0f} ms", "the same of an unhurt server", "a phone: ms, p99",
                    "other answers to phones", "connections lost"],
        "rows": [_row(each) for each in seen],
        "notes": [
            f"Asked for: at most {MEMORY_MB:.0f} MB more than before in all processes together, and /healthz within "
            f"{HEALTH_MS:.0f} ms. Health and one phone are asked for on new connections all the while; a second "
            "service that nobody hurts is asked at the same moments and shows what the machine itself does.",
            "An attack is made one time after the other by a process of its own, which shares the cores with the "
            "services; it ends early after the longest time that the command allows.",
            f"Load when this ended: {load()}.",
        ],
        **stamp(command),
    }  # fmt: skip


def _row(seen: Seen) -> list[object]:
    waits, aside = np.array(seen.waits or [0.0]), np.array(seen.aside or [0.0])
    answers = ", ".join(f"{count} x {status}" for status, count in seen.statuses.most_common())
    return [
        seen.name.replace("_", " "),
        sum(seen.statuses.values()),
        answers,
        f"{np.median(seen.took or [0.0]):.1f}, most {max(seen.took, default=0.0):.0f}",
        f"{seen.megabytes:.0f}",
        f"{np.median(waits):.1f}, {waits.max():.0f}",
        f"{(waits > HEALTH_MS).sum()} of {waits.size}",
        f"{(aside > HEALTH_MS).sum()} of {aside.size}, most {aside.max():.0f}",
        f"{np.percentile(seen.ordinary or [0.0], 99):.0f}",
        ", ".join(f"{count} x {status}" for status, count in seen.unlike.most_common()),
        seen.lost,
    ]
