"""Trained networks that the attack tests share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from fewer.attack.harden import harden
from fewer.core.nets import NetworkSet
from fewer.tasks.vision.task import Settings, Vision

from .examples import train


@pytest.fixture(scope="session")
def mlp() -> Vision:
    return Vision(Settings(network="mlp"))


@pytest.fixture(scope="session")
def cnn() -> Vision:
    return Vision(Settings(network="cnn0"))


@pytest.fixture(scope="session")
def fragile_mlp(mlp: Vision) -> NetworkSet:
    return train(mlp, 250)


@pytest.fixture(scope="session")
def fragile_cnn(cnn: Vision) -> NetworkSet:
    return train(cnn, 250)


@pytest.fixture(scope="session")
def robust_cnn(cnn: Vision) -> NetworkSet:
    return train(harden(cnn, "fast:0.2,ramp=0.7", total=500), 500)


@pytest.fixture(scope="session")
def images(cnn: Vision) -> Callable[[int], Any]:
    """The first test images, as one batch."""
    return lambda count: cnn.data("test").take(torch.arange(count))
