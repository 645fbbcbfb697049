"""A cohort whose losses are compiled: recorded forward and backward together, then handed to torch.compile."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch.nn import functional

from fewer.attack.hardening.harden import harden
from fewer.core.engines import cohort
from fewer.core.engines.aligned import aligned_linear
from fewer.core.engines.base import Training
from fewer.core.engines.cohort import Cohort
from fewer.core.engines.instead import Instead
from fewer.core.engines.optimizer import Optimizer
from fewer.pruning.pruning import Pruning, prune_
from fewer.systems.vision.task.task import Settings, Vision
from tests.toys import Control


class Compiled(Cohort):
    """As on CUDA with compile, wherever it runs."""

    compiles = True


def test_compiled_losses_train_as_the_others_do(monkeypatch: pytest.MonkeyPatch) -> None:
    # the backend that runs the recorded operations one by one: what is recorded is the question, not the kernels
    monkeypatch.setattr(cohort, "BACKEND", "eager")
    engines = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of torch's own, while it traces
        for kind in (Cohort, Compiled):
            engine = kind(Control(), Training(steps=6, batch=16, precision="float64"), [0, 1, 2])
            engine.advance(6)
            engines.append(engine)
    plain, compiled = engines
    assert {kind for kind, *_ in compiled.programs} == {"gradients", "update"} and not plain.programs
    torch.testing.assert_close(compiled.losses, plain.losses)
    for name, network in plain.state.networks.items():
        torch.testing.assert_close(compiled.state.networks[name].weights, network.weights, rtol=0, atol=1e-12)


@pytest.mark.parametrize("seeds", [[0, 1], [0]])
def test_a_compiled_hardened_network_with_convolutions_trains_as_the_others_do(
    monkeypatch: pytest.MonkeyPatch, seeds: list[int]
) -> None:
    monkeypatch.setattr(cohort, "BACKEND", "eager")
    task = harden(Vision(Settings(network="cnn0")), "pgd:0.3,steps=2", total=2)
    weights = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        for kind in (Cohort, Compiled):
            engine = kind(task, Training(steps=2, batch=8, precision="float64"), seeds)
            engine.advance(2)
            weights.append(engine.state.networks["net"].weights)
    torch.testing.assert_close(weights[1], weights[0], rtol=0, atol=1e-12)


def test_nothing_is_compiled_on_a_cpu() -> None:
    engine = Cohort(Control(), Training(steps=1, batch=16, compile=True), [0, 1])
    engine.advance(1)
    assert not engine.programs


def test_a_padded_linear_layer_is_the_same_layer_and_has_the_same_slopes() -> None:
    torch.manual_seed(0)
    for inputs, outputs in ((23, 750), (750, 30), (16, 20), (7, 3)):
        layer, pixels = torch.nn.Linear(inputs, outputs).double(), torch.randn(5, inputs, dtype=torch.float64)
        pixels.requires_grad_(True)

        with Instead(functional.linear, aligned_linear):
            padded = layer(pixels)
        found = [
            (answer, *torch.autograd.grad(answer.square().sum(), [pixels, *layer.parameters()]))
            for answer in (padded, layer(pixels))
        ]
        torch.testing.assert_close(found[0], found[1], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_a_compiled_update_keeps_pruned_weights_at_zero(monkeypatch: pytest.MonkeyPatch, decay: float) -> None:
    monkeypatch.setattr(cohort, "BACKEND", "eager")
    training = Training(4, 16, Optimizer("adamw", weight_decay=decay, clip=1.0), precision="float64")
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        for kind in (Cohort, Compiled):
            engine = kind(Control(), training, [0, 1])
            for replica in range(2):
                prune_(engine, Pruning("random", 0.5, "layer"), replica)
            engine.advance(4)
            found.append(engine)
    for name, network in found[0].state.networks.items():
        compiled = found[1].state.networks[name]
        torch.testing.assert_close(compiled.weights, network.weights, rtol=0, atol=1e-12)
        if compiled.mask is not None:
            assert not compiled.weights[compiled.mask == 0].any()
