"""Trained networks that the attack tests share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from fewer.attack.hardening.harden import harden
from fewer.core.engines.nets import NetworkSet
from fewer.systems.vision.task.task import Settings, Vision

from .examples import train


@pytest.fixture(scope="session")
def mlp() -> Vision:
    return Vision(Settings(network="mlp"))


@pytest.fixture(scope="session")
def cnn() -> Vision:
    return Vision(Settings(network="cnn0"))


@pytest.fixture(scope="session")
def fragile_mlp(mlp: Vision) -> NetworkSet:
    return train(mlp, 200)


@pytest.fixture(scope="session")
def fragile_cnn(cnn: Vision) -> NetworkSet:
    return train(cnn, 200, batch=64, rate=5e-3)


@pytest.fixture(scope="session")
def robust_mlp(mlp: Vision) -> NetworkSet:
    return train(harden(mlp, "pgd:0.1,steps=2,ramp=0.5", total=250), 250)


@pytest.fixture(scope="session")
def robust_cnn(cnn: Vision) -> NetworkSet:
    return train(harden(cnn, "fast:0.1,ramp=0.5", total=250), 250, batch=64, rate=5e-3)


@pytest.fixture(scope="session")
def images(cnn: Vision) -> Callable[[int], Any]:
    """The first test images, as one batch."""
    return lambda count: cnn.data("test").take(torch.arange(count))
