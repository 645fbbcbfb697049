"""Signs that a hardening went wrong although its numbers look good, said when the training ends."""

from __future__ import annotations

import torch

from fewer.attack.audit import Audit, robust
from fewer.attack.hardening.detectors import overfitting, plateau
from fewer.attack.hardening.recipe import parse_harden
from fewer.core.abilities import Classifier
from fewer.core.data import convert, place_constants_
from fewer.core.engines.nets import NetworkSet
from fewer.core.files.run_folder import Folder
from fewer.core.seed import Stream
from fewer.run.load import Trained

__all__ = ["signs"]

_IMAGES = 200


def signs(run: Trained) -> list[str]:
    """Sentences about a hardened classifier; none if nothing is wrong, or if it was not hardened."""
    task = run.task
    if run.job.harden is None or not isinstance(task, Classifier):
        return []
    data = task.data("test")
    batch = data.take(torch.arange(min(_IMAGES, len(data))))
    nets = NetworkSet(run.modules, training=False)
    like = next(next(iter(run.modules.values())).parameters())
    place_constants_(task, like.device, like.dtype)
    batch = convert(batch, like.device, like.dtype)
    with torch.no_grad():
        scores = task.logits(nets, task.inputs(batch), Stream(torch.tensor(0), torch.tensor(0), like.dtype))
    stood = plateau(_losses(run), scores.shape[1], scores)
    recipe = parse_harden(run.job.harden)
    attacks = f"fgsm:{recipe.budget:g},norm={recipe.norm:g}+pgd:{recipe.budget:g},steps=20,norm={recipe.norm:g}"
    report = robust(task, nets, attacks, Audit(limit=_IMAGES))
    under = [line.standing if line.alone is None else line.alone for line in report.lines]
    return [sentence for sentence in (stood, overfitting(*under)) if sentence is not None]


def _losses(run: Trained) -> list[float]:
    """One number a step: each line of the log is the mean of the steps since the one before."""
    losses: list[float] = []
    for line in Folder(run.path).lines():
        value = next((value for name, value in line.items() if name.startswith("loss/")), None)
        if isinstance(value, float):
            losses += [value] * (line["step"] - len(losses))
    return losses
