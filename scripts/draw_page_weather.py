"""Draw the weather that the forecast page shows, with what persistence and extrapolation say of it; some minutes.

python scripts/draw_page_weather.py [SIZE]
python scripts/draw_page_weather.py --opening   # the zoo has other networks: choose the first window anew, draw nothing

Both rivals count their table on training windows and choose, for each lead time, from which probability on it rains on
validation windows; shown are those of the first test windows that have most rain in four hours. The page opens with
the one on which the networks of the zoo, together, score nearest to their mean.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import torch

from fewer import zoo
from fewer.core.data import batches
from fewer.packs.pack import load
from fewer.systems.nowcast.showcase import DRAWN, SHIPPED, Showcase, rain_codes, wettest
from fewer.systems.nowcast.task.baselines.persistence import SatelliteExtrapolation, SatellitePersistence
from fewer.systems.nowcast.task.generated.windows import generated
from fewer.systems.nowcast.task.scores.scores import Scores
from fewer.systems.nowcast.task.scores.thresholds import choose

TRAINING, VALIDATION = 64, 28


def main() -> None:
    """Write the file."""
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 84
    train = generated("train", count=TRAINING, size=size)
    validation = generated("validation", count=VALIDATION, size=size)
    test = generated("test", count=DRAWN, size=size).take(torch.arange(DRAWN))
    chosen = torch.from_numpy(wettest(test.rate.numpy(), test.valid.numpy()))
    shown = type(test)(*(leaf[chosen] for leaf in test))
    rivals = {}
    for name, kind in (("persistence", SatellitePersistence), ("extrapolation", SatelliteExtrapolation)):
        predict, scores = kind(train), Scores()
        for index in batches(validation, 4):
            batch = validation.take(index)
            scores.add(predict(batch), batch.rate, batch.valid, batch.place)
        thresholds, iou = choose(scores, per_lead=True, lowest=0.02)  # at long leads they never say 0.2
        print(f"{name}: IoU {iou:.3f} on validation windows, rain from {thresholds} on", flush=True)
        rivals[name] = (predict(shown) >= torch.tensor(thresholds).view(-1, 1, 1)).numpy()
    fell = rain_codes(shown.rate.numpy(), shown.valid.numpy())
    SHIPPED.write_bytes(Showcase(shown.satellite.numpy(), shown.missing.numpy(), fell, rivals).written())
    print(f"{SHIPPED}: {SHIPPED.stat().st_size} bytes, windows {chosen.tolist()} of {DRAWN}")
    opened()


def opened() -> None:
    """Write into the file which window the page shows first."""
    shown = Showcase.read(SHIPPED)
    packs = [load(zoo.path(name)) for name in zoo.names() if name.startswith("nowcast-")]
    said = [
        np.mean([pack.predict(satellite=satellite, missing=missing) for pack in packs], axis=0) >= 0.5
        for satellite, missing in zip(shown.satellite, shown.missing)
    ]
    found = replace(shown, opening=shown.typical(np.stack(said)))
    SHIPPED.write_bytes(found.written())
    print(f"{SHIPPED}: opens with window {found.opening} of {len(found)}")


if __name__ == "__main__":
    opened() if "--opening" in sys.argv else main()
