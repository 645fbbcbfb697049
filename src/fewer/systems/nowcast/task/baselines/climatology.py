"""How often it rains at each pixel of each region-year: a forecast by itself, and the paper's calibration mask."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from fewer.core.data import batches
from fewer.core.errors import UserError
from fewer.core.task import Data, Predict
from fewer.systems.nowcast.task.scores.scores import wet
from fewer.systems.nowcast.task.windows import LEADS, Windows

__all__ = ["Climatology", "calibrated"]

_PER_BATCH = 8
_PRIOR = 32.0  # pixels' worth of the common share that every pixel starts with: a pixel never seen has that share


class Climatology:
    """Shares of wet pixels, all lead times together, shrunk to the place's and the whole's share where little is seen.

    As a forecast it says the same at every lead time; a place that was not in the data gets the common map.
    """

    def __init__(self, data: Data[Windows], *, rain_mm_per_hour: float = 0.2, limit: int | None = None) -> None:
        rain: dict[int, Tensor] = {}
        seen: dict[int, Tensor] = {}
        for index in batches(data, _PER_BATCH, limit):
            batch = data.take(index)
            raining = wet(batch.rate, rain_mm_per_hour) & (batch.valid > 0)
            for sums, part in ((rain, raining), (seen, batch.valid > 0)):
                for place, found in zip(batch.place.tolist(), part.sum(1).cpu()):
                    sums[place] = sums.get(place, torch.zeros(found.shape)) + found
        if not rain:
            raise UserError("a climatology of nothing", "at least one window")
        common = torch.stack(list(rain.values())).sum(0), torch.stack(list(seen.values())).sum(0)
        share = float(common[0].sum() / common[1].sum().clamp(min=1))
        self.everywhere = (common[0] + _PRIOR * share) / (common[1] + _PRIOR)
        self.maps = {place: self._map(rain[place], seen[place], share) for place in rain}

    @staticmethod
    def _map(rain: Tensor, seen: Tensor, share: float) -> Tensor:
        own = float((rain.sum() + _PRIOR * share) / (seen.sum() + _PRIOR))
        return (rain + _PRIOR * own) / (seen + _PRIOR)

    def at(self, place: Tensor) -> Tensor:
        """(batch, 1, size, size)."""
        found = [self.maps.get(int(one), self.everywhere) for one in place]
        return torch.stack(found)[:, None].to(place.device)

    def __call__(self, batch: Windows) -> Tensor:
        """The forecast: (batch, LEADS, size, size)."""
        return self.at(batch.place).expand(-1, LEADS, -1, -1)


def calibrated(predict: Predict, train: Tensor, validation: Tensor) -> Predict:
    """The paper's difference mask: p / (1 + f_train - f_validation), f the share of wet pixels, (places, size, size).

    Where it rained more in the training split than in the validation split, the model becomes less certain. It was
    worth -0.0002 IoU to the paper's authors; it looks at the validation split, so scores there are no longer unseen.
    """

    def prediction(batch: Any) -> Tensor:
        answer = predict(batch)
        apart = (train - validation)[batch.place.to(train.device)][:, None]
        return (answer / (1 + apart).to(answer)).clamp(0, 1)

    return prediction
