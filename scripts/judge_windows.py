"""The windows of the forecasting page, an hour ahead: IoU of the shipped packs, of persistence and of extrapolation.

python scripts/judge_windows.py

Rain is 0.2 mm/h or more, a pack's decision 0.5, as the page draws them; windows are generated weather that was drawn
for testing, those of the drawn with most rain in the first four hours (`scripts/draw_page_weather.py`).
"""

from __future__ import annotations

import sys

import numpy as np

from fewer import zoo
from fewer.packs.pack import load
from fewer.systems.nowcast.showcase import SHIPPED, Showcase

PACKS = ("nowcast-80", "nowcast-90")
AN_HOUR = 3  # the fourth of the lead times, 15 minutes apart


def main() -> int:
    """A row for each forecast, a column for each window."""
    shown = Showcase.read(SHIPPED)
    found = {name: shown.iou(rain, AN_HOUR) for name, rain in shown.rivals.items()}
    for name in PACKS:
        said = load(zoo.path(name)).predict(satellite=shown.satellite, missing=shown.missing.astype(np.float32))
        ours = found[name] = shown.iou(said >= 0.5, AN_HOUR)
        rivals = zip(*(found[rival] for rival in shown.rivals))
        ahead = sum(mine > max(theirs) for mine, theirs in zip(ours, rivals))
        print(f"{name}: ahead of {' and '.join(shown.rivals)} in {ahead} of {len(ours)} windows")
    for name, scores in found.items():
        print(f"{name:<16}", *(f"{score:.3f}" for score in scores), f" mean {np.mean(scores):.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
