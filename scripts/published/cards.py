"""docs/models.md: a card for every pack that comes with the package, from what the pack says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import fewer
from fewer.core.count import Count
from fewer.core.registry import system_of
from fewer.packs.show import count
from fewer.report.certainty.units import wilson
from fewer.report.description import shown
from fewer.zoo import names, path

from .records import markdown

__all__ = ["page"]

HEAD = """# Model cards

Packs that come with the package: `fewer serve` opens all of them, `fewer.open_pack(NAME)` one. Every figure was
measured on the test split of the data named, by the training itself, one seed; brackets are 95 % intervals over test
images (Wilson's). They are examples to try the tools on, MIT licensed like the rest."""
MOST = 3  # figures in the sentence above a card
DATA = {
    "vision": "handwritten digits, MNIST (LeCun, Cortes, Burges); the embedded ones are 12,000 of them, see below; the "
    "hardened packs saw all 60,000 training images",
    "cellfree": "simulated: 100 access points, log-distance path loss with correlated shadowing",
    "control": "logs of own experts in Gymnasium's MuJoCo environments; nothing of D4RL",
    "nowcast": "generated weather: satellite bands and rain fields drawn by this package, no real images",
}
PHOTOGRAPHS = (
    "photographs of 32 x 32 pixels in ten classes, CIFAR-10 (Krizhevsky 2009) at JPEG quality 75: all 50,000 training "
    "images; the pack was judged on all 10,000 test images, without torch"
)
LIMITS = {
    "vision": "Centred grey digits of 28 x 28 pixels; anything else gets an answer too, and no warning. Robust means "
    "against changes of at most the budget named, per pixel.",
    "cellfree": "One deployment: the map and the access points it was trained on.",
    "control": "The simulated robot it was trained on. A policy that falls in one roll-out of ten has a good median "
    "and a poor mean: read both.",
    "nowcast": "Shows how a forecaster is packed and served. It has never seen a real cloud.",
}
OF_PHOTOGRAPHS = (
    "One of ten classes is named whatever the picture shows. One seed. Accuracy under attack is for changes of at most "
    "8/255 per pixel and the attacks named; stronger ones may find more."
)
DIGITS = """## Data card: the embedded digits
The package holds a part of MNIST so that it runs and tests without a download (`fewer tasks vision`, setting
`data=digits`); `scripts/embed_digits.py` says how they were drawn, stratified by class. Use them to try things; for
numbers to publish take all of MNIST (`fewer data vision`)."""


def page() -> str:
    """All cards."""
    columns = ["pack", "job", "weights left", "file", "first figure"]
    rows = [[f"[{name}](#{name})", *_line(name)] for name in names()]
    return "\n\n".join([HEAD, markdown(columns, rows), *(card(name) for name in names()), DIGITS]) + "\n"


def _line(name: str) -> list[str]:
    """A pack in the list above the cards."""
    held = fewer.open_pack(name)
    task, counted = str(held.settings["task"]), count(held)
    figures = _figures(task, held.settings)
    left = f"{counted.kept:,} of {counted.weights:,}" if counted.kept < counted.weights else f"all {counted.kept:,}"
    first = f"{figures[0][0].partition(' (')[0]} {figures[0][1]}" if figures else ""
    return [task, left, f"{path(name).stat().st_size / 1000:,.1f} kB", first]


def card(name: str) -> str:
    """One pack."""
    held = fewer.open_pack(name)
    told = held.settings
    task, counted = str(told["task"]), count(held)
    size, figures = path(name).stat().st_size, _figures(task, told)
    rows = [
        ["job", system_of(task).line],
        *(figures or [["figures", "none were kept with this pack"]]),
        ["weights kept, biases and norms counted", str(counted) if counted.prunable else f"{counted.weights:,}, all"],
        ["file", f"{size / 1000:,.1f} kB"],
        ["made by", _recipe(told)],
        ["data", PHOTOGRAPHS if "pixels" in told else DATA[task]],
        ["limits", OF_PHOTOGRAPHS if "pixels" in told else LIMITS[task]],
    ]  # fmt: skip
    return f"## {name}\n\n{_sentence(counted, size, figures)}\n\n{markdown(['what', 'figure'], rows)}"


def _sentence(counted: Count, size: int, figures: list[list[str]]) -> str:
    """What is remarkable, above the card."""
    removed = 100 * (1 - counted.density)
    less = f"{removed:.0f} % fewer weights" if removed >= 1 else f"All {counted.weights:,} weights"
    told = [f"{what.partition(' (')[0]} {value.partition(' [')[0]}" for what, value in figures[:MOST]]
    return f"**{'; '.join([f'{less} in a file of {size / 1000:,.1f} kB', *told])}.**"


def _recipe(told: Mapping[str, Any]) -> str:
    words = [*told.get("settings", [])]
    if prune := told.get("prune"):
        words.append(f"{prune['sparsity']:.0%} removed by {prune['method']}, {prune['when']}")
    if hardened := told.get("hardened") or told.get("harden"):
        words.append(f"hardened by {hardened}")
    if "units" in told:  # an expert, not trained by a task
        words.append(
            f"expert of {told['units']} units for {told['environment']}, cloned from {told['trained on']:,} steps"
        )
    return "; ".join(f"`{word}`" if "=" in word else word for word in words) or "defaults"


def _figures(task: str, told: Mapping[str, Any]) -> list[list[str]]:
    """Those that the system describes, each with what it counts; of shares of images with their interval."""
    rows, found = [], told.get("metrics") or {}
    for name, metric in system_of(task).metrics.items():
        if name not in found:
            continue
        value, images = shown(found[name], metric.share), metric.cases or int(found.get("test_images", 0))
        if metric.share and images:
            low, high = wilson(round(found[name] * images), images)
            value += f" [{100 * low:.1f}, {100 * high:.1f}] on {images:,} images"
        rows.append([f"{metric.label} ({metric.meaning})" if metric.meaning else metric.label, value])
    return rows
