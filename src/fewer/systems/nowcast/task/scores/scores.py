"""How good a rain forecast is, counted in one pass whatever the batches: only pixels that a radar saw count.

What is kept does not grow with pixels: per region-year and lead time a histogram of the probabilities given to wet and
to dry pixels, per sample and lead time four counts. Every score is a function of these, so none depends on how samples
were batched. Ratios that have nothing below the line are no NaN: a group (region-year, sample, lead time) without rain
in forecast or truth is left out of a mean over groups; where every group is empty, a forecast that agreed on "no rain"
scores 1 and a set without a valid pixel 0 (its `pixels` say so).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from fewer.core.errors import UserError
from fewer.systems.nowcast.task.scores.neighbourhood import Neighbourhood

__all__ = [
    "LEVELS",
    "Counts",
    "Level",
    "Scores",
    "average_precision",
    "average_precisions",
    "leveled",
    "mean_iou",
    "wet",
]

LEVELS = 100  # steps of probability that are told apart: edges at 0.01, 0.02, ..., 0.99


class Counts(NamedTuple):
    """Valid pixels by forecast and truth, in tensors of any one shape."""

    hits: Tensor
    false_alarms: Tensor
    misses: Tensor
    quiet: Tensor  # dry in both

    def sum(self, axis: int | None = None) -> Counts:
        """Pooled over an axis, or over everything."""
        return Counts(*[part.sum() if axis is None else part.sum(axis) for part in self])

    def iou(self) -> Tensor:
        """Intersection over union of the rain class, which forecasters call CSI."""
        return _share(self.hits, self.hits + self.false_alarms + self.misses, self._agreed())

    def pod(self) -> Tensor:
        """Probability of detection: the share of rain that was forecast; 1 where there was none to miss."""
        return _share(self.hits, self.hits + self.misses, self._agreed())

    def far(self) -> Tensor:
        """False alarm ratio: the share of forecast rain that did not fall."""
        return _share(self.false_alarms, self.hits + self.false_alarms, torch.zeros_like(self.hits))

    def _agreed(self) -> Tensor:
        return (self.quiet > 0).to(self.hits)


class Level(NamedTuple):
    """A row of the reliability table."""

    forecast: float  # mean probability given
    observed: float  # share of these pixels that were wet
    pixels: int


def wet(rate: Tensor, rain_mm_per_hour: float = 0.2) -> Tensor:
    """Which pixels count as rain: at least the threshold, or anything above zero where it is zero (stage 1)."""
    return rate >= rain_mm_per_hour if rain_mm_per_hour > 0 else rate > 0


def leveled(probability: Tensor) -> Tensor:
    """Level k where k / LEVELS <= probability < (k + 1) / LEVELS, to the bit of single precision."""
    edges = torch.arange(1, LEVELS, device=probability.device, dtype=torch.float64).div(LEVELS).float()
    return torch.bucketize(probability.contiguous(), edges, right=True)


def mean_iou(groups: Counts) -> float:
    """The mean over groups that had rain in forecast or truth; see the module for when none had."""
    some = groups.hits + groups.false_alarms + groups.misses > 0
    if bool(some.any()):
        return float(groups.iou()[some].mean())
    return float(groups.sum().iou())


class Scores:
    """Feed it forecasts, ask for metrics at any time."""

    def __init__(
        self,
        *,
        rain_mm_per_hour: float = 0.2,
        decision: float | Sequence[float] = 0.5,
        scales: Iterable[int] = (),
        regions: Sequence[str] = (),
        histograms: bool = True,
    ) -> None:
        """`decision`: the probability from which on it is said to rain, one or one a lead time.
        `scales`: widths in pixels, odd, at which fractions are compared (FSS). `regions`: names by place.
        Without `histograms` it is several times faster, and knows no reliability and no other threshold."""
        chosen = torch.as_tensor(decision, dtype=torch.float32).reshape(-1)
        if not bool(((chosen > 0) & (chosen <= 1)).all()):
            raise UserError(f"decision thresholds {chosen.tolist()}", "probabilities above 0, at most 1")
        self.rain_mm_per_hour, self.decision, self.regions = rain_mm_per_hour, chosen, regions
        self.neighbourhoods = {scale: Neighbourhood(scale) for scale in scales}
        self.filing = histograms
        self.histograms: dict[int, Tensor] = {}  # place: (leads, 2, LEVELS), how often each level met dry and wet
        self._counts: list[Tensor] = []  # (batch, 4, leads)
        self._places: list[Tensor] = []
        self._squares, self._unknown = 0.0, 0
        self._given = torch.zeros(LEVELS, dtype=torch.float64)

    @torch.no_grad()
    def add(self, probability: Tensor, rate: Tensor, valid: Tensor, place: Tensor) -> None:
        """A batch: probability, rate in mm/h and valid are (batch, leads, height, width), place (batch,).

        A probability that is no number forecasts no rain; `unknown` then tells its share.
        """
        if probability.shape != rate.shape or rate.shape != valid.shape or len(place) != len(rate):
            shapes = ", ".join(str(tuple(part.shape)) for part in (probability, rate, valid, place))
            raise UserError(f"shapes {shapes}", "three times (batch, leads, height, width), then (batch,)")
        rate, valid, place = (part.to(probability.device) for part in (rate, valid, place))
        seen = (valid > 0) & torch.isfinite(rate)
        truth = wet(rate, self.rain_mm_per_hour) & seen
        given = probability.float()
        self._unknown += int((seen & torch.isnan(given)).sum())
        given = torch.nan_to_num(given, nan=0.0)
        said = (given >= self.decision.to(given.device).view(1, -1, 1, 1)) & seen
        dims = (-2, -1)
        hits, forecast, observed = (said & truth).sum(dims), said.sum(dims), truth.sum(dims)
        quiet = seen.sum(dims) - forecast - observed + hits
        self._counts.append(torch.stack([hits, forecast - hits, observed - hits, quiet], 1).cpu())
        self._places.append(place.cpu())
        self._squares += float(((given - truth.float()).square() * seen).sum(dtype=torch.float64))
        if self.filing:
            self._file(given, truth, seen, place)
        for neighbourhood in self.neighbourhoods.values():
            neighbourhood.add(said, truth, seen)

    def _file(self, given: Tensor, truth: Tensor, seen: Tensor, place: Tensor) -> None:
        """Count levels by place, lead time and truth."""
        leads = given.shape[1]
        level = leveled(given)
        places, row = place.unique(return_inverse=True)
        cell = (row.view(-1, 1) * leads + torch.arange(leads, device=given.device)).view(-1, leads, 1, 1)
        last = len(places) * leads * 2 * LEVELS
        index = torch.where(seen, (cell * 2 + truth) * LEVELS + level, last)  # faster than leaving pixels out
        found = torch.bincount(index.flatten(), minlength=last + 1)[:last].cpu()
        for name, histogram in zip(places.tolist(), found.view(len(places), leads, 2, LEVELS)):
            self.histograms[name] = self.histograms[name] + histogram if name in self.histograms else histogram.clone()
        weights = torch.bincount(level.flatten(), weights=(given * seen).flatten().double(), minlength=LEVELS)
        self._given += weights.cpu()

    @property
    def places(self) -> Tensor:
        """(samples,): where each sample comes from."""
        self._some()
        return torch.cat(self._places)

    @property
    def counts(self) -> Counts:
        """(samples, leads) each, at the decision threshold."""
        self._some()
        return Counts(*torch.cat(self._counts).double().unbind(1))

    def _some(self) -> None:
        if not self._counts:
            raise UserError("scores of nothing", "at least one forecast", "give the split at least one window")

    def by_place(self) -> dict[str, float]:
        """IoU of each region-year, all its samples, lead times and pixels pooled."""
        found = {}
        for place in self.places.unique().tolist():
            pooled = Counts(*[part[self.places == place] for part in self.counts]).sum()
            found[self.regions[place] if place < len(self.regions) else str(place)] = float(pooled.iou())
        return found

    def by_lead(self) -> dict[str, list[float]]:
        """Scores of each lead time, everything else pooled (`iou` is then CSI), and FSS by scale in pixels."""
        pooled = self.counts.sum(0)
        found = {name: getattr(pooled, name)().tolist() for name in ("iou", "pod", "far")}
        for scale, neighbourhood in self.neighbourhoods.items():
            found[f"fss_{scale}"] = neighbourhood.by_lead().tolist()
        return found

    def reliability(self, rows: int = 10) -> list[Level]:
        """Mean forecast against the share that was wet, in steps of probability; empty steps are left out."""
        totals = torch.stack(list(self.histograms.values())).sum((0, 1)).double()  # (2, LEVELS)
        parts = [part.view(rows, -1).sum(1) for part in (totals.sum(0), totals[1], self._given)]
        return [
            Level(float(given / pixels), float(rain / pixels), int(pixels))
            for pixels, rain, given in zip(*parts)
            if pixels > 0
        ]

    def metrics(self) -> dict[str, float]:
        """The competition's mean first: IoU pooled per region-year, then averaged."""
        counts, places = self.counts, self.places
        regions = [Counts(*[part[places == place] for part in counts]).sum() for place in places.unique()]
        total = counts.sum()
        pixels = float(torch.stack(total).sum())
        shares = (total.hits + total.misses) / max(pixels, 1), (total.hits + total.false_alarms) / max(pixels, 1)
        found = {
            "iou": mean_iou(Counts(*map(torch.stack, zip(*regions)))),
            "iou_per_sample": mean_iou(counts.sum(1)),
            "csi": float(total.iou()),
            "pod": float(total.pod()),
            "far": float(total.far()),
            "brier": self._squares / max(pixels, 1),
            "wet": float(shares[0]),
            "forecast_wet": float(shares[1]),
            "pixels": pixels,
        }
        if self.filing:
            found["average_precision"] = average_precision(torch.stack(list(self.histograms.values())).sum((0, 1)))
        found |= {f"fss_{scale}": part.overall() for scale, part in self.neighbourhoods.items()}
        return found | ({"unknown": self._unknown / max(pixels, 1)} if self._unknown else {})


def average_precision(levels: Tensor) -> float:
    """Mean precision over the recall, from how often each level of probability, (2, levels), met dry and wet.

    It needs no threshold, so it tells forecasts apart that never dare to say rain; by chance it is the wet share.

    >>> average_precision(torch.tensor([[8, 0, 0], [0, 1, 1]])), average_precision(torch.tensor([[8], [2]]))
    (1.0, 0.2)
    """
    return float(average_precisions(levels))


def average_precisions(levels: Tensor) -> Tensor:
    """The same of many, (..., 2, levels)."""
    dry, rain = levels.double().flip(-1).cumsum(-1).unbind(-2)  # said wet from each level on, the highest first
    gained = torch.diff(rain, prepend=torch.zeros_like(rain[..., :1]))
    precision = rain / (dry + rain).clamp(min=1)
    return (precision * gained).sum(-1) / rain[..., -1].clamp(min=1)


def _share(part: Tensor, whole: Tensor, empty: Tensor) -> Tensor:
    return torch.where(whole > 0, part / whole.clamp(min=1), empty)
