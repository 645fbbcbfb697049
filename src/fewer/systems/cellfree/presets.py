"""Published scenarios and readings of the paper under one name each, in the words of `fewer train`.

The paper leaves open what it trains with and for how long, and contradicts itself on the areas: its setup puts 100
access points in 1 km x 1 km and 50 in 2 km x 2 km, its results speak of 25 and 50 per km2, which is the other way
round. A graph is 100 phones that know nothing of one another, so a batch of 100 phones is a graph.
"""

from __future__ import annotations

import math
from typing import Any

__all__ = ["AREAS_M", "PRESETS", "READINGS"]

# sides of the squares, by reading and number of access points
AREAS_M = {"paper": {100: 1000.0, 50: 2000.0}, "paper-density": {100: 2000.0, 50: 1000.0}}

_LITERAL = {
    "access_points": 100, "side_m": AREAS_M["paper"][100], "model": "sage-literal", "gain_at_1km_db": -35.3,
    "shadowing": "claussen8", "learn_missing": 0.0,
}  # fmt: skip
_PAPER = {"settings": _LITERAL, "steps": 5000, "batch": 100, "optimizer": "adam,lr=1e-3"}  # 50 epochs of 100 graphs

# what the paper leaves open, one change at a time
READINGS: dict[str, dict[str, Any]] = {
    "paper": _PAPER,
    "paper-density": {**_PAPER, "settings": {**_LITERAL, "side_m": AREAS_M["paper-density"][100]}},
    "paper-once": {**_PAPER, "steps": 100},  # every graph once
    "paper-ten": {**_PAPER, "steps": 1000},  # ten epochs
    "paper-sgd": {**_PAPER, "optimizer": "sgd,lr=1e-3"},
    "paper-thousand": {**_PAPER, "steps": 500, "batch": 1000},  # phones in a graph, 50 epochs
    # the constant that the paper has at 1 km stands at 1 m in its reference 3
    "paper-metre": {**_PAPER, "settings": {**_LITERAL, "gain_at_1km_db": -148.1}},
    "paper-fft": {**_PAPER, "settings": {**_LITERAL, "shadowing": "fft"}},  # maps correlated as they should be
    # the paper allows candidates by signal strength
    "paper-signal": {**_PAPER, "settings": {**_LITERAL, "cluster_by": "rsrp"}},
    # a place says nothing of the next
    "paper-white": {**_PAPER, "settings": {**_LITERAL, "decorrelation_m": 0.0}},
    # masks beside the inputs, which are scaled; exact maps; the task's own learning rate
    "improved": {"settings": {"model": "sage", "learn_missing": 0.0}, "steps": 5000, "batch": 100},
}

PRESETS: dict[str, dict[str, Any]] = {
    **READINGS,
    "paper-50": {**_PAPER, "settings": {**_LITERAL, "access_points": 50, "side_m": AREAS_M["paper"][50]}},
    "paper-density-50": {
        **_PAPER, "settings": {**_LITERAL, "access_points": 50, "side_m": AREAS_M["paper-density"][50]}
    },
    # kriging's answer in a network: the local model, twice as wide, learns from phones imagined on kriging's map
    "distilled": {
        "settings": {"model": "distilled", "width": 192}, "steps": 10_000, "batch": 400
    },
    # Scalable cell-free massive MIMO systems (2020), the paper's reference 3: without correlation, wrapped 2 km
    "ref3": {
        "settings": {"side_m": 2000.0, "wrap": True, "shadowing_db": 10.0, "decorrelation_m": 0.0,
                     "site_correlation": 0.0}
    },
    # Foundations of user-centric cell-free massive MIMO (2021): halved every 9 m, -30.5 dB at 1 m
    "book": {
        "settings": {
            "wrap": True, "shadowing_db": 4.0, "decorrelation_m": 9 / math.log(2), "exponent": 3.67,
            "gain_at_1km_db": -30.5 - 3 * 36.7, "site_correlation": 0.0,
        }
    },
    # maps of the Vienna system level simulator
    "vienna": {"settings": {"shadowing_db": 10.0, "decorrelation_m": 20.0, "shadowing": "claussen8"}},
}  # fmt: skip
