"""Masks of whole tasks: counts, nesting, when they change, what they refuse."""

from __future__ import annotations

import copy
import itertools
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fewer.core.engines.base import Engine, Training
from fewer.core.engines.cohort import Cohort
from fewer.core.engines.loop import fit
from fewer.core.engines.plain import Plain
from fewer.core.errors import UserError
from fewer.core.mask import Mask, dense, density, kept, prunable, total
from fewer.core.seed import Stream
from fewer.pruning.criteria import CRITERIA
from fewer.pruning.criteria.snip import snip
from fewer.pruning.keep import SCOPES, keep
from fewer.pruning.pruning import Pruning, layer_keeps, mask_for, prune_, samples
from fewer.pruning.schedules.gradual import events_for
from tests.toys import Blobs, Control, Fit, Patches, Tied, Untrained, doubled

TRAINING = Training(steps=20, batch=10, precision="float64")


def within(inner: Mask, outer: Mask) -> bool:
    return all(bool((outer[net][key] | ~m).all()) for net, by in inner.items() for key, m in by.items())


class Watched:
    """An event that notes the mask before every step."""

    def __init__(self) -> None:
        self.masks: list[Mask] = []

    def next(self, step: int) -> int | None:
        return step

    def act(self, engine: Engine) -> None:
        found = engine.state.mask_of(0)
        self.masks.append({net: {key: m.clone() for key, m in by.items()} for net, by in found.items()})


def trained(task: Any, pruning: Pruning, steps: int = 20) -> tuple[Plain, list[Mask]]:
    engine, watch = Plain(task, replace(TRAINING, steps=steps)), Watched()
    if pruning.when != "gradual":
        prune_(engine, pruning)
    fit(engine, events=[*events_for([pruning], steps), watch])
    return engine, [*watch.masks, engine.state.mask_of(0)]


@pytest.mark.parametrize("method", sorted(CRITERIA))
@pytest.mark.parametrize("scope", SCOPES)
def test_every_criterion_and_scope_keeps_exactly_the_stated_share(method: str, scope: str) -> None:
    mask = mask_for(Fit(), doubled(Fit()), Pruning(method, 0.5, scope, samples=20, iterations=3), seed=0)
    assert kept(mask) == round(0.5 * total(mask)) == 63


@pytest.mark.parametrize("method", sorted(CRITERIA))
@pytest.mark.parametrize("make", [Fit, Patches], ids=lambda make: make.__name__)
def test_what_is_pruned_stays_pruned_when_pruning_goes_on(method: str, make: Any) -> None:
    task, modules = make(), doubled(make())
    mask: Mask = dense(modules)
    for sparsity in (0.05, 0.1, 0.15, 0.2, 0.25):  # further, grasp empties the stem, which is refused
        pruning = Pruning(method, sparsity, samples=20, iterations=2)
        found = mask_for(task, modules, pruning, seed=3, before=mask)
        assert within(found, mask), sparsity
        mask = found


@pytest.mark.parametrize("method", ["random", "grasp", "magnitude"])
def test_a_quota_brings_no_pruned_weight_back(method: str) -> None:
    task, modules = Blobs(width=64), doubled(Blobs(width=64))
    before = mask_for(task, modules, Pruning(method, 0.5, samples=20, layer_quota=0.3), seed=1)
    after = mask_for(task, modules, Pruning(method, 0.7, samples=20, layer_quota=0.29), seed=2, before=before)
    assert within(after, before) and kept(after) == round(0.3 * total(after))
    assert all(int(some.sum()) >= 0.29 * some.numel() for some in after["net"].values())


@pytest.mark.parametrize("method", ["magnitude", "grasp", "snip"])
@pytest.mark.parametrize("scope", SCOPES)
def test_masks_nest_while_gradual_pruning_approaches_its_goal(method: str, scope: str) -> None:
    pruning = Pruning(method, 0.6, scope, when="gradual", begin=0.1, end=0.8, every=2, samples=20)
    _, masks = trained(Fit(), pruning)
    shares = [density(mask) if mask else 1.0 for mask in masks]
    assert shares[0] == 1.0 and shares == sorted(shares, reverse=True) and len(set(shares)) >= 6
    assert kept(masks[-1]) == round(0.4 * total(masks[-1]))
    for before, after in itertools.pairwise(masks):
        assert not before or within(after, before)


def test_the_sparsity_of_gradual_pruning_rises_by_the_cubic() -> None:
    pruning = Pruning("magnitude", 0.6, when="gradual", begin=0.25, end=0.5, every=1, samples=20)
    _, masks = trained(Fit(), pruning)
    for index, step in enumerate(range(5, 11), start=1):
        expected = 0.6 * (1 - (1 - index / 6) ** 3)
        assert 1 - density(masks[step]) == pytest.approx(expected, abs=0.005), step


@pytest.mark.parametrize(("begin", "end"), [(0.0, 1.0), (1.0, 1.0), (0.5, 0.5), (0.99, 1.0), (0.0, 0.0)])
def test_gradual_pruning_reaches_its_goal_whenever_it_ends(begin: float, end: float) -> None:
    pruning = Pruning("magnitude", 0.5, when="gradual", begin=begin, end=end, every=3, samples=20)
    _, masks = trained(Fit(), pruning)
    assert kept(masks[-1]) == 63


@pytest.mark.parametrize("when", ["set", "rigl"])
def test_drop_and_grow_swaps_weights_and_keeps_every_layers_count(when: str) -> None:
    engine, masks = trained(Control(), Pruning("random", 0.5, "erk", when=when, every=3, end=0.9, samples=20))
    counts = [{key: int(m.sum()) for key, m in mask["critic"].items()} for mask in masks]
    assert all(count == counts[0] for count in counts)
    assert not within(masks[-1], masks[0])
    for name in ("critic2", "critic_target", "critic2_target"):
        for key, m in masks[-1]["critic"].items():
            assert torch.equal(m, masks[-1][name][key])
            assert not bool(engine.state.weights_of(0)[name][key][~m].any())


def test_rigl_grows_where_the_gradient_is_largest_and_drops_the_smallest() -> None:
    """One swap by hand: the dropped are the smallest kept, the grown have the largest gradients among the pruned."""
    from fewer.pruning.schedules.gradual import _swap

    mask = torch.tensor([True, True, True, False, False, False])
    size = torch.tensor([0.1, 3.0, 2.0, 0.0, 0.0, 0.0])
    wish = torch.tensor([9.0, 9.0, 9.0, 1.0, 5.0, 2.0])
    assert _swap(mask, size, wish, 0.4).tolist() == [False, True, True, False, True, False]
    assert _swap(mask, size, wish, 0.1).tolist() == mask.tolist()


@pytest.mark.parametrize(("when", "by_gradient"), [("rigl", True), ("set", False)])
def test_rigl_grows_the_weights_with_the_largest_gradients_of_the_loss_and_set_does_not(
    when: str, by_gradient: bool
) -> None:
    task = Fit()
    pruning = Pruning("random", 0.5, "layer", when=when, every=5, end=0.9, samples=len(task.samples))  # all there are
    engine = Plain(task, TRAINING)
    prune_(engine, pruning)
    engine.advance(5)
    before, net = engine.state.mask_of(0)["net"], engine.state.modules_of(0)["net"]
    error = (net(task.samples.samples.x) - task.samples.samples.y).square().sum(1).mean()
    slopes = dict(zip(before, torch.autograd.grad(error, [net.get_parameter(key) for key in before])))
    events_for([pruning], TRAINING.steps)[0].act(engine)
    largest, grown = {}, {}
    for key, after in engine.state.mask_of(0)["net"].items():
        new, pruned = after & ~before[key], ~before[key]
        best = torch.where(pruned, slopes[key].abs(), -1.0).flatten().topk(int(new.sum())).indices
        largest[key], grown[key] = set(best.tolist()), set(new.flatten().nonzero()[:, 0].tolist())
    assert sum(map(len, grown.values())) > 10
    assert (largest == grown) is by_gradient


def test_replicas_of_a_cohort_are_pruned_as_they_would_be_alone() -> None:
    pruning = Pruning("snip", 0.6, samples=20)
    cohort = Cohort(Patches(), TRAINING, (5, 2))
    for replica in range(2):
        prune_(cohort, pruning, replica)
    alone = Plain(Patches(), TRAINING, 2)
    prune_(alone, pruning)
    for key, mask in alone.state.mask_of(0)["net"].items():
        assert torch.equal(mask, cohort.state.mask_of(1)["net"][key])
    assert not torch.equal(cohort.state.networks["net"].mask[0], cohort.state.networks["net"].mask[1])  # type: ignore[index]


def test_a_cohort_of_dense_gradual_and_growing_replicas_trains_each_as_it_would_alone() -> None:
    common = {"begin": 0.1, "end": 0.7, "every": 4, "samples": 20}
    prunings = [
        None,
        Pruning("magnitude", 0.6, when="gradual", **common),
        Pruning("random", 0.6, when="rigl", **common),
        Pruning("snip", 0.6, samples=20),
        Pruning("magnitude", 0.3, when="gradual", **common),
    ]
    cohort = Cohort(Fit(), TRAINING, (5, 2, 3, 4, 6))
    for replica, pruning in enumerate(prunings):
        if pruning is not None and pruning.when != "gradual":
            prune_(cohort, pruning, replica)
    fit(cohort, events=events_for(prunings, TRAINING.steps))
    for replica, (pruning, seed) in enumerate(zip(prunings, cohort.state.seeds)):
        alone = Plain(Fit(), TRAINING, seed)
        if pruning is not None and pruning.when != "gradual":
            prune_(alone, pruning)
        fit(alone, events=events_for([pruning], TRAINING.steps))
        ours, theirs = cohort.state.networks["net"].weights[replica], alone.state.networks["net"].weights[0]
        assert torch.allclose(ours, theirs, atol=1e-10), pruning
        assert bool((theirs == 0).any()) == (pruning is not None)


def test_scores_of_all_networks_are_computed_before_any_is_masked() -> None:
    """With the critic masked first, the actor's score would be that of a masked critic."""
    task, modules, pruning = Control(), doubled(Control()), Pruning("snip", 0.8, samples=20)
    before = copy.deepcopy(modules)
    found = mask_for(task, modules, pruning, seed=0)
    like = torch.zeros(0, dtype=torch.float64)
    batches = samples(task, 0, count=20, of=1, like=like)
    noise = Stream(torch.tensor(0), torch.tensor(-1), torch.float64)
    together = keep(snip(task, before, batches, noise), 0.8)["actor"]
    with torch.no_grad():
        for key, kept_weights in found["critic"].items():
            before["critic"].get_parameter(key).mul_(kept_weights)
    in_turn = keep(snip(task, before, batches, noise), 0.8)["actor"]
    assert all(torch.equal(found["actor"][key], together[key]) for key in together)
    assert any(not torch.equal(in_turn[key], together[key]) for key in together), "this could not have told them apart"


def test_networks_that_nobody_trains_are_not_pruned_and_neither_are_their_copies() -> None:
    mask = mask_for(Untrained(), doubled(Untrained()), Pruning("snip", 0.5, samples=20), seed=0)
    assert set(mask) == {"net"}


@pytest.mark.parametrize("when", ["start", "gradual", "set", "rigl"])
def test_a_network_that_nobody_trains_and_its_copy_stay_whole_however_the_others_are_pruned(when: str) -> None:
    _, masks = trained(Untrained(), Pruning("magnitude", 0.5, when=when, every=3, end=0.9, samples=20))
    assert set(masks[-1]) == {"net"}


def test_only_matrices_and_kernels_are_pruned() -> None:
    class Everything(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.convolution = nn.Linear(2, 3), nn.Conv1d(1, 2, 3)
            self.layer_norm, self.batch_norm = nn.LayerNorm((4, 5)), nn.BatchNorm1d(3)
            self.embedding, self.slope = nn.Embedding(4, 2), nn.PReLU(3)
            self.attention = nn.MultiheadAttention(4, 2)

    expected = ["linear.weight", "convolution.weight", "attention.in_proj_weight", "attention.out_proj.weight",
                "embedding.weight"]  # fmt: skip
    assert sorted(prunable(Everything())) == sorted(expected)


def test_a_weight_that_layers_share_is_pruned_once() -> None:
    assert prunable(Tied().networks()["net"]) == ["0.weight", "4.weight", "6.weight"]
    head, table = nn.Linear(3, 5), nn.Embedding(5, 3)
    table.weight = head.weight
    assert prunable(nn.ModuleList([head, table, nn.Linear(2, 2)])) == ["0.weight", "2.weight"]


def test_layer_keeps_counts_layers_with_and_without_a_mask() -> None:
    modules = doubled(Blobs())
    mask: dict[str, dict[str, Tensor]] = {"net": {"0.weight": torch.zeros(8, 4, dtype=torch.bool)}}
    assert layer_keeps(modules, mask) == {"net.0.weight": (0, 32), "net.2.weight": (24, 24)}


@pytest.mark.parametrize(
    "options",
    [
        {"method": "snipp"}, {"sparsity": 1.5}, {"sparsity": float("nan")}, {"scope": "all"}, {"when": "later"},
        {"begin": 0.7, "end": 0.2}, {"begin": float("nan")}, {"layer_quota": 0.5, "sparsity": 0.9}, {"samples": 0},
        {"iterations": -1}, {"every": -1}, {"input_quota": -2}, {"swap": 1.5}, {"swap": float("nan")}, {"swap": -0.1},
    ],
)  # fmt: skip
def test_settings_that_cannot_work_are_refused_at_construction(options: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="expected"):
        Pruning(**options)


def test_scoring_on_more_samples_than_there_are_is_refused() -> None:
    with pytest.raises(UserError, match="60 training samples"):
        mask_for(Fit(), doubled(Fit()), Pruning("snip", 0.5, samples=61), seed=0)


@pytest.mark.parametrize("method", ["magnitude", "lamp", "synflow", "random"])
def test_criteria_that_look_at_no_data_prune_alike_however_many_samples_there_are(method: str) -> None:
    masks = [mask_for(Fit(), doubled(Fit()), Pruning(method, 0.5, samples=n, iterations=2), seed=0) for n in (1, 61)]
    assert all(torch.equal(masks[0]["net"][key], masks[1]["net"][key]) for key in masks[0]["net"])


def test_pruning_less_than_is_pruned_already_is_refused() -> None:
    task, modules = Fit(), doubled(Fit())
    before = mask_for(task, modules, Pruning("magnitude", 0.6, samples=20), seed=0)
    with pytest.raises(UserError, match=r"sparsity 0\.5 where 0\.6032 is pruned already"):
        mask_for(task, modules, Pruning("magnitude", 0.5, samples=20), seed=0, before=before)


def test_settings_say_what_they_are_close_to() -> None:
    with pytest.raises(UserError, match="did you mean 'snip'"):
        Pruning("snipp")
