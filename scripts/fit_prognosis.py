"""Fit the small network of the radar extrapolation (systems/nowcast/task/baselines/prognosis.npz) to radar events.

python scripts/fit_prognosis.py fmi_20160928.npz knmi_20100826.npz mch_20160711.npz --out prognosis.npz

Each event (npz as `fewer data nowcast` reads it) is seen at several scales of space, time and rate, so that the pace of
an event has to be read off its images. What is drawn depends on nothing but the events; minutes on one core.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from fewer.systems.nowcast.task.baselines.extrapolation import paths, sight
from fewer.systems.nowcast.task.baselines.pace import Pace
from fewer.systems.nowcast.task.baselines.prognosis import FITTED_MINUTES, THRESHOLDS, left_over, of_lead
from fewer.systems.nowcast.task.files.own.images import coarser
from fewer.systems.nowcast.task.files.radar import read

Floats = NDArray[np.floating]
KM, MINUTES = 2.0, 15.0  # of a pixel and between two images, as they are pretended to be
PIXELS = 4000  # drawn of every lead time
LEADS = (1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 30, 36, 48)  # images ahead
# pixels joined and images between two that are seen; light rain is to look like heavy rain further off
VIEWS = ((2, 3), (2, 3), (2, 2), (2, 4), (3, 3), (3, 4), (2, 3), (3, 2))
SCALES = (1.0, 0.5, 2.0, 1.0, 0.3, 3.0)  # times the rate, from one start to the next
HIDDEN, BATCH, NOISE = (24, 16), 2048, 0.02


def samples(path: Path) -> tuple[Tensor, Tensor]:
    """(samples, inputs) of the network, and whether each threshold was exceeded."""
    event, chance = read(str(path)), np.random.default_rng(1)
    every = 10 if len(event.rates) > 60 else 4
    inputs, truth = [], []
    for number, (factor, lag) in enumerate(VIEWS):
        rates = coarser(event.rates, factor)
        pretended = MINUTES / lag  # minutes between two images
        for turn, now in enumerate(range(2 * lag + number % every, len(rates) - 2, every), number):
            scale = np.float32(SCALES[turn % len(SCALES)])
            for x, y in _seen(rates * scale, now, lag, pretended, chance):
                inputs.append(x), truth.append(y)
    raining = np.concatenate(truth)[:, None] >= np.array(THRESHOLDS, np.float32)
    return torch.from_numpy(np.concatenate(inputs)), torch.from_numpy(raining.astype(np.float32))


def _seen(
    rates: Floats, now: int, lag: int, minutes: float, chance: np.random.Generator
) -> Iterator[tuple[Floats, Floats]]:
    """What the network is told of drawn pixels, from where their air was, and what fell there."""
    air = sight(rates[[now - 2 * lag, now - lag, now]], [0.0, MINUTES, 2 * MINUTES], KM)
    ahead = [k for k in LEADS if now + k < len(rates) and k * minutes <= FITTED_MINUTES[1]]
    for k, travelled in zip(ahead, paths(air.moving, [k * minutes for k in ahead])):
        truth = rates[now + k].ravel()
        known = np.flatnonzero(np.isfinite(truth))
        if len(known) >= PIXELS:
            pick = chance.choice(known, PIXELS, replace=False)
            yield _inputs(_read(air.around, travelled, pick), k * minutes, air.pace), truth[pick].astype(np.float32)


def _read(around: Floats, travelled: Floats, pick: NDArray[np.int64]) -> Floats:
    """Linear between pixels, the edge for what lies beyond it, and how far beyond in km."""
    height, width = around.shape[1:]
    table = np.ascontiguousarray(around.reshape(len(around), -1).T)
    row, column = pick // width - travelled[0].ravel()[pick], pick % width - travelled[1].ravel()[pick]
    inside = np.clip(row, 0, height - 1), np.clip(column, 0, width - 1)
    beyond = np.hypot(row - inside[0], column - inside[1])
    first = np.minimum(inside[0].astype(int), height - 2), np.minimum(inside[1].astype(int), width - 2)
    down, right = (inside[0] - first[0])[:, None], (inside[1] - first[1])[:, None]
    at = first[0] * width + first[1]
    upper = table[at] * (1 - right) + table[at + 1] * right
    lower = table[at + width] * (1 - right) + table[at + width + 1] * right
    return np.concatenate([upper * (1 - down) + lower * down, beyond[:, None] * KM], 1)


def _inputs(read: Floats, lead: float, pace: Pace) -> Floats:
    """As `prognosis.exceedance` puts them together."""
    around, beyond = read[:, :-1], np.log1p(read[:, -1:] / 10)
    weights = left_over(lead, pace)
    left = around[:, : len(weights)] @ weights[:, None]
    same = np.broadcast_to(of_lead(lead, pace), (len(read), len(of_lead(lead, pace))))
    return np.nan_to_num(np.concatenate([around, left, beyond, same], 1)).astype(np.float32)


class Exceedance(nn.Module):
    """Logits of exceeding each threshold, each a positive step below the one before."""

    def __init__(self, mean: Tensor, deviation: Tensor) -> None:
        super().__init__()
        self.mean, self.deviation = mean, deviation
        sizes = [len(mean), *HIDDEN, len(THRESHOLDS)]
        self.layers = nn.ModuleList(nn.Linear(i, o) for i, o in itertools.pairwise(sizes))

    def forward(self, x: Tensor) -> Tensor:
        """(samples, inputs) to (samples, thresholds)."""
        x = (x - self.mean) / self.deviation
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        x = self.layers[-1](x)
        return torch.cat([x[:, :1], x[:, :1] - torch.cumsum(functional.softplus(x[:, 1:]), 1)], 1)


def fitted(events: list[tuple[Tensor, Tensor]], steps: int, *, lr: float = 3e-3, decay: float = 1e-2) -> Exceedance:
    """By AdamW, as many samples of every event in each step, the rate warmed up and falling by a cosine."""
    some = torch.cat([x[::7] for x, _ in events])
    torch.manual_seed(0)
    net, chance = Exceedance(some.mean(0), some.std(0) + 1e-3), torch.Generator().manual_seed(0)
    optimizer = torch.optim.AdamW(net.parameters(), lr, weight_decay=decay)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = lr * min(1, (step + 1) / 100) * 0.5 * (1 + math.cos(math.pi * step / steps)) + 1e-6
        inputs, truth = [], []
        for x, y in events:
            pick = torch.randint(len(x), (BATCH,), generator=chance)
            inputs.append(x[pick] + NOISE * net.deviation * torch.randn(BATCH, x.shape[1], generator=chance))
            truth.append(y[pick])
        loss = functional.binary_cross_entropy_with_logits(net(torch.cat(inputs)), torch.cat(truth))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return net


def main() -> int:
    """Write what `prognosis.weights` reads."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("events", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=3000)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    net = fitted([samples(path) for path in arguments.events], arguments.steps)
    parts = {"mean": net.mean, "deviation": net.deviation}
    for place, layer in enumerate(net.layers):
        parts |= {f"weight{place}": layer.weight.detach(), f"bias{place}": layer.bias.detach()}
    events = np.array([path.stem for path in arguments.events])
    np.savez(arguments.out, events=events, **{name: tensor.numpy() for name, tensor in parts.items()})
    return 0


if __name__ == "__main__":
    sys.exit(main())
