"""The scale of a very small nowcast study, and the words that ask for it."""

from __future__ import annotations

import dataclasses

from fewer.systems.nowcast.studies.scales import SCALES

SMALL = dataclasses.replace(
    SCALES["quick"], samples=4, batch=2, windows={"train": 4, "validation": 14, "test": 14, "heldout": 14}
)
WORDS = ("samples=4", "batch=2", "windows=train=4,validation=14,test=14,heldout=14", "device=cpu")
