"""A cohort whose losses are compiled: recorded forward and backward together, then handed to torch.compile."""

from __future__ import annotations

import warnings

import pytest
import torch

from fewer.core import cohort
from fewer.core.cohort import Cohort
from fewer.core.engine import Training
from toys import Control


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
    assert len(compiled.programs) == len(compiled.objectives) and not plain.programs
    torch.testing.assert_close(compiled.losses, plain.losses)
    for name, network in plain.state.networks.items():
        torch.testing.assert_close(compiled.state.networks[name].weights, network.weights, rtol=0, atol=1e-12)


def test_nothing_is_compiled_on_a_cpu() -> None:
    engine = Cohort(Control(), Training(steps=1, batch=16, compile=True), [0, 1])
    engine.advance(1)
    assert not engine.programs
