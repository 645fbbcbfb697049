"""The vision chapter of a report: images and their adversarial twins."""

from __future__ import annotations

import numpy as np
import torch

from fewer.attack.threat import parse
from fewer.core.engines.nets import NetworkSet
from fewer.core.seed import Stream
from fewer.report.page import words
from fewer.report.png import data_address, png
from fewer.run.load import Trained

__all__ = ["digits"]

_SHOWN = 8


def digits(run: Trained, attack: str) -> str:
    """Test images and their adversarial twins, with what the network says of each."""
    task, batch = run.task, run.task.data("test").take(torch.arange(_SHOWN))
    nets = NetworkSet(run.modules, training=False)
    noise = Stream(torch.tensor(0), torch.tensor(0))
    attacked = parse(attack)[0].on(task)(nets, batch, noise)
    shown = []
    for name, images in (("clean", batch), ("attacked", attacked)):
        with torch.no_grad():
            answers = task.predict(nets, task.inputs(images), noise).argmax(-1)
        row = [
            _image(pixels.numpy(), f"{name}: {int(answer)}", wrong=bool(answer != label))
            for pixels, label, answer in zip(task.inputs(images), batch.label, answers)
        ]
        shown.append(f'<div class="digits">{"".join(row)}</div>')
    caption = f"Test images, and below them their twins under {attack}; under each what the network says."
    return words(caption) + "".join(shown)


def _image(pixels: np.ndarray[tuple[int, ...], np.dtype[np.float32]], caption: str, *, wrong: bool) -> str:
    levels = np.round(np.clip(pixels, 0, 1) * 255).astype(np.uint8)
    picture = levels[0] if levels.shape[0] == 1 else levels.transpose(1, 2, 0)
    text, kind = (f"{caption}, wrong", ' class="wrong"') if wrong else (caption, "")
    return (
        f'<figure{kind}><img class="pixels" alt="{text}" src="{data_address(png(picture))}">'
        f"<figcaption>{text}</figcaption></figure>"
    )
