"""How likely rain of each strength is, from what surrounded a parcel of air and how far ahead it is asked for.

A small network, the same for every pixel and lead time, was fitted once to radar events: at short leads it trusts the
pixel, later ever larger surroundings, sooner where rain has just changed a lot, and it knows growth and decay by what
the last images did. It is told what is left of the image by then, at the pace of this event (`pace`). Its answers are
exceedance probabilities at seven rates, falling by construction.
"""

from __future__ import annotations

import functools
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fewer.systems.nowcast.task.baselines.motion import Field
from fewer.systems.nowcast.task.baselines.pace import Pace

__all__ = ["FITTED_MINUTES", "THRESHOLDS", "Weights", "exceedance", "fitted_on", "left_over", "of_lead", "weights"]

_TOLD = (2, 4)  # bands whose memory the network is told: showers and fronts
THRESHOLDS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)  # mm/h
FITTED_MINUTES = (5.0, 180.0)  # lead times of the fit; beyond them the nearest counts


class Weights(NamedTuple):
    """Of the network, with the scale of its inputs folded into the first layer."""

    layers: tuple[tuple[Field, Field], ...]


@functools.cache
def weights() -> Weights:
    """Those that are shipped."""
    with (files(__package__) / "prognosis.npz").open("rb") as file, np.load(file, allow_pickle=False) as held:
        return folded(dict(held))


@functools.cache
def fitted_on() -> tuple[str, ...]:
    """Names of the events that the shipped weights were fitted to."""
    with (files(__package__) / "prognosis.npz").open("rb") as file, np.load(file, allow_pickle=False) as held:
        return tuple(map(str, held["events"]))


def folded(held: dict[str, NDArray[Any]]) -> Weights:
    """From what the fit wrote: mean, deviation, weight0, bias0, ..."""
    layers = []
    count = sum(name.startswith("weight") for name in held)
    for k in range(count):
        weight, bias = held[f"weight{k}"].astype(np.float32), held[f"bias{k}"].astype(np.float32)
        if k == 0:
            weight = weight / held["deviation"]
            bias = bias - weight @ held["mean"]
        layers.append((np.ascontiguousarray(weight.T, np.float32), bias.astype(np.float32)))
    return Weights(tuple(layers))


def of_lead(minutes: float, pace: Pace) -> Field:
    """Inputs that are the same for every pixel."""
    lead = float(np.clip(minutes, *FITTED_MINUTES))
    left = pace.remembered(lead)[list(_TOLD)]
    found: Field = np.concatenate([[np.log(lead / 15), lead / 60], left]).astype(np.float32)
    return found


def left_over(minutes: float, pace: Pace) -> Field:
    """Weights of the first channels of the surroundings: what is left of the image by then, band by band."""
    return pace.weights(float(np.clip(minutes, *FITTED_MINUTES)))


def exceedance(
    surroundings: Field, beyond_km: Field, minutes: float, pace: Pace, fitted: Weights | None = None
) -> Field:
    """(THRESHOLDS, pixels): the probability of at least each rate, from (pixels, CHANNELS) read where the air is now.

    `beyond_km` says how far outside the map a pixel's air was; the edge stands for it, and counts ever less.
    """
    (first, bias), *rest = (fitted or weights()).layers
    channels = surroundings.shape[1]
    # what is left of the image is a sum of channels, and what is the same for all pixels joins the bias
    left = left_over(minutes, pace)
    mixed = first[:channels].copy()
    mixed[: len(left)] += left[:, None] * first[channels]
    x = surroundings @ mixed + np.log1p(beyond_km / 10)[:, None] * first[channels + 1]
    x += of_lead(minutes, pace) @ first[channels + 2 :] + bias
    for weight, shift in rest:
        np.maximum(x, 0, out=x)
        x = x @ weight + shift
    x = np.ascontiguousarray(x.T)
    # each threshold lies a positive step below the one before: softplus(x) = max(x, 0) + log(1 + exp(-|x|))
    fall = np.maximum(x[1:], 0) + np.log(1 + np.exp(-np.abs(x[1:])))
    for k, step in enumerate(fall):
        np.subtract(x[k], step, out=x[k + 1])
    found: Field = 1 / (1 + np.exp(-np.clip(x, -30, 30)))
    return found
