"""The same attacks on a GPU: same answers, and inside a captured graph."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from fewer.attack.attacks.pgd import pgd
from fewer.attack.audit import Audit, robust
from fewer.attack.hardening.harden import harden
from fewer.core.data import convert
from fewer.core.engines.base import Training
from fewer.core.engines.cohort import Cohort
from fewer.core.engines.nets import NetworkSet
from fewer.core.engines.plain import Plain
from fewer.systems.vision.task.task import Vision

from .examples import Regression, stream

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU"),
]


def placed(nets: NetworkSet, device: str) -> NetworkSet:
    modules = {name: copy.deepcopy(module).to(device, torch.float64) for name, module in nets.modules.items()}
    return replace(nets, modules=modules)


def test_pgd_finds_the_same_images_on_both_devices(
    mlp: Vision, fragile_mlp: NetworkSet, images: Callable[[int], Any]
) -> None:
    found = []
    for device in ("cpu", "cuda"):
        batch, noise = convert(images(32), torch.device(device), torch.float64), stream(1, dtype=torch.float64)
        noise = replace(noise, seed=noise.seed.to(device), step=noise.step.to(device))
        found.append(pgd(mlp, 0.2, steps=5)(placed(fragile_mlp, device), batch, noise).pixels.cpu())
    # a gradient that is zero but for rounding may point the other way
    assert ((found[0] - found[1]).abs() > 1e-9).float().mean() < 1e-3


@pytest.mark.parametrize("attack", ["pgd:0.1,steps=5", "apgd:0.1,steps=5", "fab-t:0.1,steps=4", "square:0.1,queries=9"])
def test_an_audit_gives_the_same_answer_on_both_devices(attack: str, cnn: Vision, robust_cnn: NetworkSet) -> None:
    on = [robust(cnn, placed(robust_cnn, device), attack, Audit(limit=60)).survived for device in ("cpu", "cuda")]
    assert (on[0] != on[1]).sum() <= 1


@pytest.mark.parametrize("recipe", ["pgd:0.2,steps=2", "fgsm:0.2,mix=0.5", "fast:0.2", "free:0.2,steps=2"])
def test_hardening_in_a_captured_graph_equals_the_reference_engine(recipe: str) -> None:
    task = harden(Regression(), recipe, total=30)
    training = Training(30, 16, device="cuda", precision="float64")
    alone, together = Plain(task, training, 1), Cohort(task, training, [0, 1])
    for engine in (alone, together):
        engine.advance(12)
    difference = alone.state.networks["net"].weights[0] - together.state.networks["net"].weights[1]
    assert difference.abs().max() < 1e-7
