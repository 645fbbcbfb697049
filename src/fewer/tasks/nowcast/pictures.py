"""Forecasts as pictures: truth and forecast hour by hour, scores by lead time, and eight hours as a small animation."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewer.core.errors import UserError

__all__ = ["by_hour", "by_lead", "film"]

Field = NDArray[Any]

_DRY, _UNSEEN = (245, 247, 250), (190, 190, 190)
_HIT, _FALSE_ALARM, _MISS = (31, 111, 178), (240, 150, 60), (200, 40, 60)
_COLOURS, _STYLES = 10, ("-", "--", ":", "-.")  # matplotlib's colours begin again after ten, in another style
_A_SECOND = 6  # frames of the animation: an hour in two thirds of a second


def by_hour(
    path: str | Path, probability: Field, raining: Field, valid: Field, *, title: str = "", decision: float = 0.5
) -> None:  # fmt: skip
    """The paper's Figure 1: the truth above, the forecast below, every hour, with the share of rain over each.

    Fields are (leads, height, width) of one window; lead times are 15 minutes apart.
    """
    from matplotlib.figure import Figure

    hours = range(3, len(probability), 4)
    figure = Figure(figsize=(1.6 * len(hours), 3.9), layout="constrained")
    axes = figure.subplots(2, len(hours), squeeze=False)
    for column, lead in enumerate(hours):
        seen = valid[lead] > 0
        for row, rain in enumerate((raining[lead] > 0, probability[lead] >= decision)):
            panel = axes[row, column]
            panel.imshow(_two_colours(rain, seen), interpolation="nearest")
            share = float((rain & seen).sum() / max(int(seen.sum()), 1))
            panel.set_title(f"{(lead + 1) // 4} h: {share:.3f}", fontsize=9)
            panel.set_xticks([])
            panel.set_yticks([])
    axes[0, 0].set_ylabel("truth")
    axes[1, 0].set_ylabel("forecast")
    if title:
        figure.suptitle(title, fontsize=10)
    figure.savefig(path, dpi=110)


def by_lead(path: str | Path, curves: Mapping[str, Sequence[float]], *, label: str = "IoU") -> None:
    """A line a forecast against lead time in hours."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    panel = figure.subplots()
    for number, (name, values) in enumerate(curves.items()):
        style = _STYLES[number // _COLOURS % len(_STYLES)]
        panel.plot([(k + 1) / 4 for k in range(len(values))], values, style, color=f"C{number % _COLOURS}", label=name)
    panel.set(xlabel="hours ahead", ylabel=label, xlim=(0, None), ylim=(0, None))
    panel.grid(alpha=0.3)
    panel.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))  # beside: there may be many
    figure.savefig(path, dpi=120)


def film(probability: Field, raining: Field, valid: Field, *, decision: float = 0.5, side: int = 252) -> bytes:
    """An animated GIF: hits blue, false alarms orange, misses red, grey where no radar looks; a bar of hours."""
    try:
        from PIL import Image
    except ImportError:
        raise UserError("no pillow", "it installed, to draw", "pip install 'fewer[nowcast]'") from None
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
