"""Per task, the picture its users think in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from fewer.core.engines.evaluate import predictor
from fewer.core.engines.nets import NetworkSet
from fewer.core.seed import Stream
from fewer.report.page import abreast, words
from fewer.report.png import data_address, png
from fewer.run.job import Trained

__all__ = ["PICTURES", "acting", "digits", "rained", "served"]

_SHOWN, _PHONES, _WINDOWS = 8, 2, 24
_TABLE = 96  # training windows from which cloud tops are read as rain
_SOON = 16  # lead times: rain of the first four hours, which can be forecast, chooses the window
_LOOKED_AT, _TOGETHER = 200, 3  # phones that several access points serve say more


def digits(run: Trained, attack: str) -> str:
    """Test images and their adversarial twins, with what the network says of each."""
    from fewer.attack.threat import parse

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


def served(run: Trained, attack: str) -> str:
    """Two phones on the map: the cluster of their master, who the network lets serve them and who should."""
    from fewer.systems.cellfree.maps import LEGEND, map_of
    from fewer.systems.cellfree.task.selectors.trained import Predicting
    from fewer.systems.cellfree.task.task import CellFree

    task = run.task
    assert isinstance(task, CellFree)
    phones = task.world.survey(_LOOKED_AT, part="test")
    shared = [int(n) for n in np.argsort(phones.serving < _TOGETHER, kind="stable")[:_PHONES]]
    selector = Predicting(task, predictor(task, run.modules))
    maps = [
        f"<figure>{map_of(task.world, phones.phones[n], selector.select(int(phones.master[n]), phones.rsrp_db[n]))}"
        "</figure>"
        for n in shared
    ]
    caption = (
        f"The first phones of the test split that at least {_TOGETHER} access points should serve. Lines lead to those "
        f"that the network chose from {task.settings.measured} reports; the darker the ground, the better the master "
        "is heard there."
    )
    return words(caption) + LEGEND + abreast(*maps)


def acting(run: Trained, attack: str) -> str:
    """The policy at work in its world, as an animated picture."""
    from fewer.systems.control.picture import WHY_NOT, film
    from fewer.systems.control.task.task import Control

    task = run.task
    assert isinstance(task, Control)
    if task.world is None:
        return words("Learnt from logs alone: there is no world to show the policy in.")
    predict, question = predictor(task, run.modules, run.job.seeds[0]), task.data("test").take(torch.tensor([0]))
    actions = task.world.actions  # of a prediction with two policies side by side, those of the first

    def policy(observation: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> Any:
        return predict(question._replace(observation=torch.from_numpy(observation)))[:, :actions].cpu().numpy()

    picture = film(policy, task.world)
    if picture is None:
        return words(WHY_NOT)
    caption = f"The policy at work in {task.world.gymnasium}, at its own pace."
    address = data_address(picture)
    return f'<figure><img width="320" alt="{caption}" src="{address}"><figcaption>{caption}</figcaption></figure>'


def rained(run: Trained, attack: str) -> str:
    """A test window with much rain soon: truth and forecast hour by hour, the score by lead time, and a film."""
    from fewer.systems.nowcast.pictures import by_hour, by_lead, film
    from fewer.systems.nowcast.task.baselines.persistence import SatellitePersistence
    from fewer.systems.nowcast.task.scores.scores import Scores, wet
    from fewer.systems.nowcast.task.scores.shares import remark, wet_shares
    from fewer.systems.nowcast.task.task import Nowcast

    task = run.task
    assert isinstance(task, Nowcast)
    # the competition's own test windows have no truth
    data = task.data("validation" if task.settings.data else "test")
    batch = data.take(torch.arange(min(_WINDOWS, len(data))))
    rain = task.settings.rain_mm_per_hour
    probability = predictor(task, run.modules)(batch)
    unlearnt = SatellitePersistence(task.data("train"), rain_mm_per_hour=rain, limit=_TABLE)
    curves = {}
    for name, forecast in (
        ("the network", probability),
        ("as the last image shows it, for all hours", unlearnt(batch)),
    ):
        scores = Scores(rain_mm_per_hour=rain)
        scores.add(forecast, batch.rate, batch.valid, batch.place)
        curves[name] = scores.by_lead()["iou"]
    raining = wet(batch.rate, rain) & (batch.valid > 0)
    one = int(raining[:, :_SOON].sum((1, 2, 3)).argmax())
    fields = [part[one].cpu().numpy() for part in (probability, raining, batch.valid)]
    said, fell = (wet_shares(rain, fields[2]) for rain in (fields[0] >= 0.5, fields[1]))
    captions = (
        f"Truth and forecast at every hour, with the share of rain. {remark(said, fell)}",
        f"IoU against lead time, {len(batch.place)} windows: the network, and what needs no learning.",
        "Eight hours: hits are blue, false alarms orange, misses red; grey is out of the radars' sight.",
    )
    return "".join(
        f'<figure><img class="plate" alt="{caption}" src="{data_address(picture)}">'
        f"<figcaption>{caption}</figcaption></figure>"
        for caption, picture in zip(captions, [by_hour(*fields), by_lead(curves), film(*fields)])
    )


PICTURES: dict[str, Callable[[Trained, str], str]] = {
    "vision": digits,
    "cellfree": served,
    "control": acting,
    "nowcast": rained,
}
