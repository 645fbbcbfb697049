"""Weights on no path make room for others, within the same count."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from fewer.core.engines.base import Training
from fewer.core.engines.loop import fit
from fewer.core.engines.plain import Plain
from fewer.core.errors import UserError
from fewer.core.mask import Mask, density, kept, total
from fewer.pruning.paths.lint import on_paths
from fewer.pruning.pruning import Pruning, mask_for
from fewer.pruning.schedules.gradual import events_for
from fewer.systems.vision.task.task import Settings, Vision
from tests.pruning.test_pruning import Watched, within
from tests.toys import Blobs, doubled

TASK = Blobs(width=64)


def by_hand(weights: list[Tensor]) -> list[Tensor]:
    """Of a chain of matrices: the kept weights whose input some input feeds and whose output some output reads."""
    fed, read = [torch.ones(weights[0].shape[1], dtype=torch.bool)], [torch.ones(len(weights[-1]), dtype=torch.bool)]
    for some in weights:
        fed.append((some & fed[-1]).any(1))
    for some in reversed(weights):
        read.insert(0, (some & read[0][:, None]).any(0))
    return [some & ~(fed[i] & read[i + 1][:, None]) for i, some in enumerate(weights)]


def idle_count(mask: Mask) -> int:
    useful = on_paths(doubled(TASK)["net"], mask["net"], (torch.zeros(1, 4),))
    return sum(int((some & ~useful[key]).sum()) for key, some in mask["net"].items())


@pytest.mark.parametrize("seed", range(5))
def test_idle_weights_are_those_that_a_walk_from_both_ends_does_not_meet(seed: int) -> None:
    lot = torch.Generator().manual_seed(seed)
    net = nn.Sequential(nn.Linear(9, 12), nn.ReLU(), nn.Linear(12, 12), nn.Tanh(), nn.Linear(12, 4))
    mask = {f"{i}.weight": torch.rand(net[i].weight.shape, generator=lot) < 0.12 for i in (0, 2, 4)}  # type: ignore[union-attr]
    found = {key: mask[key] & ~some for key, some in on_paths(net, mask, (torch.rand(1, 9),)).items()}
    expected = by_hand(list(mask.values()))
    assert sum(int(some.sum()) for some in expected) > 3
    assert all(torch.equal(found[key], some) for key, some in zip(mask, expected))


@pytest.mark.parametrize(
    ("method", "scope"), [("magnitude", "layer"), ("magnitude", "erk"), ("snip", "global"), ("snip", "layer")]
)
def test_a_connected_mask_keeps_the_same_count_and_no_weight_for_nothing(method: str, scope: str) -> None:
    modules = doubled(TASK)
    plain = Pruning(method, 0.8, scope, samples=40)
    loose = mask_for(TASK, modules, plain, seed=0)
    tight = mask_for(TASK, modules, replace(plain, connected=True), seed=0)
    assert idle_count(loose) > 5
    assert idle_count(tight) == 0
    assert kept(tight) == kept(loose) == round(0.2 * total(loose))


def test_a_gradual_schedule_ends_connected_and_its_masks_nest() -> None:
    engine, watch = Plain(TASK, Training(steps=40, batch=20, precision="float64")), Watched()
    pruning = Pruning("magnitude", 0.9, "layer", when="gradual", every=1, samples=20, connected=True)
    fit(engine, events=[*events_for([pruning], 40), watch])
    masks = [mask for mask in [*watch.masks, engine.state.mask_of(0)] if mask]
    assert len(masks) > 20 and all(within(after, before) for before, after in itertools.pairwise(masks))
    assert idle_count(masks[-1]) == 0
    assert 0.07 < density(masks[-1]) <= 0.1 + 1e-3


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("method", ["magnitude", "random", "snip"])
@pytest.mark.parametrize("scope", ["network", "layer"])
def test_a_quota_and_a_path_are_kept_together_with_the_count(method: str, scope: str, seed: int) -> None:
    pruning = Pruning(method, 0.85, scope, samples=20, layer_quota=0.1, connected=True)
    mask = mask_for(TASK, doubled(TASK), pruning, seed=seed)
    assert kept(mask) == round(0.15 * total(mask))
    assert idle_count(mask) == 0
    assert all(int(some.sum()) >= 0.1 * some.numel() for some in mask["net"].values())


def test_a_barred_weight_comes_back_when_it_has_found_a_path() -> None:
    task = Vision(Settings(network="mlp", classes="3,7"))
    for seed in range(2):
        pruning = Pruning("snip", 0.97, "layer", samples=50, connected=True)
        mask = mask_for(task, doubled(task), pruning, seed=seed)
        assert kept(mask) == round(0.03 * total(mask))


def test_a_layer_without_weights_is_told_as_it_is_without_paths() -> None:
    said = []
    for connected in (False, True):
        with pytest.raises(UserError) as caught:  # first weights of the wide layer are all above the others
            mask_for(TASK, doubled(TASK), Pruning("magnitude", 0.8, "global", connected=connected), seed=0)
        said.append(str(caught.value))
    assert said[0] == said[1] and "none of the 192 weights" in said[0]


class Crowd(Blobs):
    """Many rare classes: by their scores alone, single outputs lose all of their weights."""

    def networks(self) -> dict[str, nn.Module]:
        return {"net": nn.Sequential(nn.Linear(4, 12), nn.ReLU(), nn.Linear(12, 9), nn.ReLU(), nn.Linear(9, 20))}


@pytest.mark.parametrize("scope", ["network", "layer"])
@pytest.mark.parametrize("seed", range(4))
def test_an_output_that_scores_would_cut_off_gets_a_path_within_the_same_count(scope: str, seed: int) -> None:
    task = Crowd()
    torch.manual_seed(seed)
    modules = {name: module.double() for name, module in task.networks().items()}
    pruning = Pruning("random", 0.85, scope, samples=20)
    with pytest.raises(UserError, match="of 20 outputs of net that no input reaches"):
        mask_for(task, modules, pruning, seed=seed)
    mask = mask_for(task, modules, replace(pruning, connected=True), seed=seed)
    assert kept(mask) == round(0.15 * total(mask))
    assert all(not bool(some.any()) for some in by_hand(list(mask["net"].values())))
    assert bool(mask["net"]["4.weight"].any(1).all())  # each of which, as none is idle, leads back to an input


def test_a_network_with_fewer_weights_than_outputs_is_refused_with_paths_too() -> None:
    task = Crowd()
    modules = {name: module.double() for name, module in task.networks().items()}
    with pytest.raises(UserError, match="outputs of net that no input reaches"):
        mask_for(task, modules, Pruning("magnitude", 0.95, "layer", samples=20, connected=True), seed=0)


@pytest.mark.parametrize("when", ["set", "rigl", "rounds"])
def test_connected_is_refused_where_masks_are_not_chosen_by_it(when: str) -> None:
    with pytest.raises(UserError, match="start or gradual"):
        Pruning("magnitude", 0.9, when=when, connected=True)
