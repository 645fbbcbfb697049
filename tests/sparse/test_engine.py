"""The sparse engine against the plain one, and BCQ's networks against themselves with masks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from fewer.core.engines.base import Engine, Training
from fewer.core.engines.cohort import Cohort
from fewer.core.engines.loop import Loop, fit
from fewer.core.engines.optimizer import Optimizer
from fewer.core.engines.plain import Plain
from fewer.core.errors import UserError
from fewer.core.files.run_folder import Folder
from fewer.core.task import Task
from fewer.pruning.pruning import Pruning, prune_
from fewer.pruning.schedules.gradual import events_for
from fewer.sparse.engine import Sparse, selected, sparse_engine, worthwhile
from fewer.sparse.linear import SparseLinear
from fewer.systems.control.bench.sparse_training import engines
from fewer.systems.control.task.settings import Settings as ControlSettings
from tests.toys import BiasFree, Blobs, Control, Convolved, Fit, Patches, Tied

Make = Callable[[], Task[Any]]
TRAINING = Training(steps=100, batch=10, precision="float64", optimizer=Optimizer("adam", 3e-3, weight_decay=1e-3))


def pruned(make: Make, sparsity: float = 0.4, training: Training = TRAINING) -> Plain:
    engine = Plain(make(), training, 5)
    prune_(engine, Pruning("magnitude", sparsity, samples=10, scope="layer"))
    return engine


def furthest(one: Engine, other: Engine) -> float:
    """The largest distance of any weight or buffer, both as the dense networks have them."""
    first, second = one.state.weights_of(0), other.state.weights_of(0)
    assert first.keys() == second.keys()
    distances = [(first[net][key] - second[net][key]).abs().max() for net in first for key in first[net]]
    return float(torch.stack([distance.double() for distance in distances]).max())


@pytest.mark.parametrize("make", [Fit, Blobs, Control, Patches, BiasFree, Convolved, Tied])
def test_the_sparse_engine_ends_where_the_plain_one_ends(make: Make) -> None:
    plain, sparse = pruned(make), sparse_engine(pruned(make))
    layers = [m for n in sparse.state.networks.values() for m in n.module.modules() if isinstance(m, SparseLinear)]
    assert layers and sparse.state.networks.keys() == plain.state.networks.keys()
    start = plain.state.weights_of(0)
    before = {(net, key): tensor.clone() for net in start for key, tensor in start[net].items()}
    plain.advance(100)
    sparse.advance(100)
    assert any((plain.state.weights_of(0)[net][key] != tensor).any() for (net, key), tensor in before.items())
    assert furthest(plain, sparse) < 1e-7
    for net, masks in plain.state.mask_of(0).items():
        for key, mask in masks.items():
            assert torch.equal(sparse.state.mask_of(0)[net][key], mask)


def test_weights_gradients_and_moments_exist_for_kept_weights_alone() -> None:
    plain, sparse = pruned(Fit), sparse_engine(pruned(Fit))
    kept = sum(int(mask.sum()) for mask in plain.state.mask_of(0)["net"].values())
    biases = 12 + 6 + 1
    assert sparse.state.networks["net"].weights.shape == (1, kept + biases)
    assert all(t.shape == (1, kept + biases) for t in sparse.state.moments[0]["net"].values())


@pytest.mark.parametrize(
    "pruning",
    [
        Pruning("magnitude", 0.5, when="gradual", scope="layer", samples=10, every=10),
        Pruning("random", 0.5, when="set", scope="layer", samples=10, every=10),
    ],
    ids=["gradual", "set"],
)
def test_masks_that_change_during_training_change_alike(pruning: Pruning) -> None:
    engines = []
    for wrap in (lambda engine: engine, sparse_engine):
        engine = Plain(Control(), TRAINING, 5)
        if pruning.when == "set":
            prune_(engine, pruning)
        engine = wrap(engine)
        fit(engine, events=events_for([pruning], TRAINING.steps), loop=Loop(log_every=20))
        engines.append(engine)
    assert isinstance(engines[1], Sparse)
    assert furthest(*engines) < 1e-7
    for net, masks in engines[0].state.mask_of(0).items():
        for key, mask in masks.items():
            assert torch.equal(engines[1].state.mask_of(0)[net][key], mask)


def test_a_killed_sparse_run_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    whole = sparse_engine(pruned(Control))
    whole.advance(100)
    killed = sparse_engine(pruned(Control))
    killed.advance(37)
    folder = Folder(tmp_path)
    folder.write_tensors("state.safetensors", dict(killed.state.named()))
    again = sparse_engine(Plain(Control(), TRAINING, 5))
    fit(again, folder)
    assert furthest(whole, again) == 0.0
    assert again.state.networks["actor"].weights.shape == whole.state.networks["actor"].weights.shape


def test_modules_of_a_sparse_state_are_dense_and_predict_the_same() -> None:
    sparse = sparse_engine(pruned(Fit))
    sparse.advance(3)
    module = sparse.state.modules_of(0)["net"]
    assert not any(isinstance(part, SparseLinear) for part in module.modules())
    x = torch.randn(9, 4, dtype=torch.float64)
    torch.testing.assert_close(module(x), sparse.modules["net"](x))


def test_the_sparse_engine_is_worthwhile_for_large_pruned_layers_only() -> None:
    class Wide(Fit):
        def networks(self) -> dict[str, nn.Module]:
            return {"net": nn.Sequential(nn.Linear(4, 80), nn.ReLU(), nn.Linear(80, 80), nn.ReLU(), nn.Linear(80, 1))}

    assert worthwhile(pruned(Wide, 0.7))
    assert not worthwhile(pruned(Wide, 0.1))
    assert not worthwhile(pruned(Fit))
    assert not worthwhile(Plain(Wide(), TRAINING, 0))


def test_engines_that_cannot_be_sparse_are_refused() -> None:
    with pytest.raises(UserError, match="Cohort"):
        sparse_engine(Cohort(Fit(), TRAINING, [0, 1]))


SMALLER = ControlSettings(environment="halfcheetah", hidden=(200, 150), autoencoder_hidden=(300, 300))


def test_bcq_with_kept_weights_equals_bcq_with_masks_after_100_updates() -> None:
    sparse, masked = engines(SMALLER, Training(steps=100, batch=5, precision="float64"))
    start = {net: {key: t.clone() for key, t in by_name.items()} for net, by_name in masked.state.weights_of(0).items()}
    sparse.advance(100)
    masked.advance(100)
    assert isinstance(sparse, Sparse) and sparse.repeater is not None and sparse.repeater.trusted
    assert all(
        not torch.equal(masked.state.weights_of(0)[net]["body.0.weight"], start[net]["body.0.weight"]) for net in start
    )
    assert furthest(sparse, masked) < 1e-7


def test_bcq_gradients_of_one_step_agree_in_float32() -> None:
    sparse, masked = engines(SMALLER, Training(steps=100, batch=100))
    assert isinstance(sparse, Sparse) and isinstance(masked, Plain)
    batch = masked._sample()
    for objective in masked.objectives:
        ours, theirs = (engine.gradients(objective, batch)[1] for engine in (sparse, masked))
        for name in objective.trains:
            expected = theirs[name][:, selected(sparse.modules[name])]
            assert expected.shape == ours[name].shape and float(expected.norm()) > 0
            assert float((ours[name] - expected).norm() / expected.norm()) < 1e-5
