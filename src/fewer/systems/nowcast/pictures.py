"""Forecasts as pictures: truth and forecast hour by hour, scores by lead time, and eight hours as a small animation."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewer.core.errors import MissingExtra
from fewer.report.figure import png
from fewer.systems.nowcast.task.scores.shares import A_HOUR, remark, wet_shares

__all__ = ["by_hour", "by_lead", "film", "leading"]

Field = NDArray[Any]

_DRY, _UNSEEN = (245, 247, 250), (190, 190, 190)
_HIT, _FALSE_ALARM, _MISS = (31, 111, 178), (240, 150, 60), (200, 40, 60)
_FEW = 8  # lines that can be told apart
_A_SECOND = 6  # frames of the animation: an hour in two thirds of a second


def by_hour(
    probability: Field, raining: Field, valid: Field, *, title: str = "", decision: float = 0.5
) -> bytes:  # fmt: skip
    """The paper's Figure 1 as a PNG: truth above, forecast below, every hour, the share of rain over each, a remark.

    Fields are (leads, height, width) of one window; lead times are 15 minutes apart.
    """
    from matplotlib.figure import Figure

    rains = {"truth": raining > 0, "forecast": probability >= decision}
    shares = {name: wet_shares(rain, valid) for name, rain in rains.items()}
    hours = len(shares["truth"])
    figure = Figure(figsize=(1.6 * hours, 4.1), layout="constrained")
    axes = figure.subplots(2, hours, squeeze=False)
    for row, (name, rain) in zip(axes, rains.items()):
        for hour, panel in enumerate(row):
            lead = A_HOUR * (hour + 1) - 1
            panel.imshow(_two_colours(rain[lead], valid[lead] > 0), interpolation="nearest")
            panel.set_title(f"{hour + 1} h: {shares[name][hour]:.3f}", fontsize=9)
            panel.set_xticks([])
            panel.set_yticks([])
        row[0].set_ylabel(name)
    figure.suptitle(title, fontsize=10)
    figure.supxlabel(remark(shares["forecast"], shares["truth"]), fontsize=9)
    return png(figure)


def by_lead(curves: Mapping[str, Sequence[float]], *, label: str = "IoU") -> bytes:
    """A PNG: a line a forecast against lead time in hours; of many, those that lead at some time stand out."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    panel = figure.subplots()
    first = leading(curves)
    others = [name for name in curves if name not in first]
    for name in [*others, *first]:
        style = {"color": f"C{first.index(name)}", "label": name} if name in first else {"color": "0.8", "zorder": 1}
        panel.plot([(k + 1) / 4 for k in range(len(curves[name]))], curves[name], **style)
    if others:
        panel.plot([], [], color="0.8", label=f"{len(others)} others")
    panel.set(xlabel="hours ahead", ylabel=label, xlim=(0, None), ylim=(0, None))
    panel.grid(alpha=0.3)
    panel.legend(fontsize=9)
    return png(figure, dpi=120)


def leading(curves: Mapping[str, Sequence[float]]) -> list[str]:
    """All names where there are few; else those that are the best at some lead time, in the order given."""
    if len(curves) <= _FEW:
        return list(curves)
    best = {max(curves, key=lambda name: curves[name][lead]) for lead in range(min(map(len, curves.values())))}
    return [name for name in curves if name in best]


def film(probability: Field, raining: Field, valid: Field, *, decision: float = 0.5, side: int = 252) -> bytes:
    """An animated GIF: hits blue, false alarms orange, misses red, grey where no radar looks; a bar of hours."""
    try:
        from PIL import Image
    except ImportError:
        raise MissingExtra("no pillow", "it installed, to draw", "pip install 'fewer[nowcast]'") from None
    palette = np.array([_DRY, _UNSEEN, _HIT, _FALSE_ALARM, _MISS], np.uint8)
    scale = max(side // probability.shape[-1], 1)
    frames = []
    for lead in range(len(probability)):
        said, fell, seen = probability[lead] >= decision, raining[lead] > 0, valid[lead] > 0
        kind = np.where(said & fell, 2, np.where(said, 3, np.where(fell, 4, 0)))
        kind = np.where(seen, kind, 1).repeat(scale, 0).repeat(scale, 1).astype(np.uint8)
        bar = np.zeros((6, kind.shape[1]), np.uint8)
        bar[1:, : round(kind.shape[1] * (lead + 1) / len(probability))] = 2
        picture = Image.fromarray(np.concatenate([kind, bar]))
        picture.putpalette(palette.tobytes())
        frames.append(picture)
    memory = io.BytesIO()
    frames[0].save(
        memory, "GIF", save_all=True, append_images=frames[1:], duration=1000 // _A_SECOND, loop=0, optimize=False
    )
    return memory.getvalue()


def _two_colours(rain: Field, seen: Field) -> NDArray[np.uint8]:
    colours = np.where(rain[..., None], np.array(_HIT, np.uint8), np.array(_DRY, np.uint8))
    return np.where(seen[..., None], colours, np.array(_UNSEEN, np.uint8))
