"""Exactly k weights, whatever the scores, the shapes and the scope."""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fewer.core.errors import UserError
from fewer.core.mask import density, kept, total
from fewer.pruning.keep import SCOPES, keep

Shapes = list[tuple[int, ...]]
shapes = st.lists(st.lists(st.integers(1, 6), min_size=2, max_size=4).map(tuple), min_size=1, max_size=5)
# few different values, so that ties are the rule
values = st.sampled_from(["ties", "equal", "zero", "distinct", "negative", "huge"])


def scores_of(sizes: Shapes, kind: str, seed: int, nets: int = 1) -> dict[str, dict[str, Tensor]]:
    generator = torch.Generator().manual_seed(seed)

    def one(shape: tuple[int, ...]) -> Tensor:
        drawn = torch.randn(shape, generator=generator, dtype=torch.float64)
        return {
            "ties": drawn.mul(2).round(), "equal": torch.ones(shape), "zero": torch.zeros(shape), "distinct": drawn,
            "negative": -drawn.abs(), "huge": drawn * 1e30,
        }[kind]  # fmt: skip

    return {f"net{n}": {f"layer{i}.weight": one(shape) for i, shape in enumerate(sizes)} for n in range(nets)}


def budget(sparsity: float, count: int) -> int:
    return round((1 - Fraction(sparsity).limit_denominator(10**9)) * count)


@settings(max_examples=150, deadline=None)
@given(shapes, values, st.floats(0, 0.999), st.sampled_from(SCOPES), st.integers(0, 5), st.integers(1, 3))
def test_exactly_k_are_kept_whatever_the_ties_shapes_and_scope(
    sizes: Shapes, kind: str, sparsity: float, scope: str, seed: int, nets: int
) -> None:
    scores = scores_of(sizes, kind, seed, nets)
    mask = keep(scores, sparsity, scope)
    assert {net: {key: m.shape for key, m in by.items()} for net, by in mask.items()} == {
        net: {key: s.shape for key, s in by.items()} for net, by in scores.items()
    }
    if scope == "global":
        assert kept(mask) == budget(sparsity, total(mask))
    else:
        for net in mask:
            assert kept({net: mask[net]}) == budget(sparsity, total({net: mask[net]}))


@settings(max_examples=60, deadline=None)
@given(shapes, st.floats(0, 0.999), st.sampled_from(["global", "network"]), st.integers(0, 99))
def test_no_weight_that_is_dropped_scores_higher_than_one_that_is_kept(
    sizes: Shapes, sparsity: float, scope: str, seed: int
) -> None:
    scores = scores_of(sizes, "distinct", seed)
    mask = keep(scores, sparsity, scope)
    flat = torch.cat([s.reshape(-1) for s in scores["net0"].values()])
    chosen = torch.cat([m.reshape(-1) for m in mask["net0"].values()])
    if bool(chosen.any()) and not bool(chosen.all()):
        assert flat[chosen].min() >= flat[~chosen].max()


@settings(max_examples=60, deadline=None)
@given(shapes, values, st.floats(0, 0.999), st.floats(0, 0.999), st.sampled_from(["global", "network", "layer"]))
def test_of_the_same_scores_a_sparser_mask_lies_within_a_denser_one(
    sizes: Shapes, kind: str, one: float, other: float, scope: str
) -> None:
    scores = scores_of(sizes, kind, 1)
    low, high = (keep(scores, sparsity, scope) for sparsity in sorted((one, other)))
    assume_layers_shrink = all(
        int(high["net0"][key].sum()) <= int(low["net0"][key].sum()) for key in high["net0"]
    )  # remainders may move one weight between layers of equal density
    for key, mask in high["net0"].items():
        if scope != "layer" or assume_layers_shrink:
            assert bool((low["net0"][key] | ~mask).all()), key


@settings(max_examples=60, deadline=None)
@given(shapes, st.floats(0, 0.99))
def test_layers_of_equal_density_differ_by_less_than_a_weight(sizes: Shapes, sparsity: float) -> None:
    mask = keep(scores_of(sizes, "ties", 0), sparsity, "layer")["net0"]
    density = sum(int(m.sum()) for m in mask.values()) / sum(m.numel() for m in mask.values())
    for m in mask.values():
        assert abs(int(m.sum()) - density * m.numel()) < 1


def test_erdos_renyi_kernel_densities_by_hand() -> None:
    """Sums over products: 8/15, 12/32 and 11/24, of 71 weights; 30 % kept is 21 = 8 s + 12 s + 11 s."""
    scores = scores_of([(3, 5), (4, 8), (3, 8)], "distinct", 0)
    counts = [int(m.sum()) for m in keep(scores, 0.7, "erk")["net0"].values()]
    exact = [21 * part / 31 for part in (8, 12, 11)]  # 5.42, 8.13, 7.45: the remainder goes to the last
    assert counts == [5, 8, 8] and exact == pytest.approx([5.42, 8.13, 7.45], abs=0.01)


def test_erdos_renyi_kernel_fills_small_layers_and_shares_the_rest() -> None:
    """A 1 x 2 layer would get more than it has: it is kept whole, and the others share what is left."""
    scores = scores_of([(1, 2), (10, 10), (20, 20)], "distinct", 0)
    counts = [int(m.sum()) for m in keep(scores, 0.5, "erk")["net0"].values()]
    assert counts == [2, 83, 166]  # 251 = 2 + 249 * (20/60, 40/60)


def test_the_first_of_equals_wins() -> None:
    mask = keep({"a": {"w": torch.zeros(2, 3)}}, 0.5, "network")["a"]["w"]
    assert mask.tolist() == [[True, True, True], [False, False, False]]


def test_sparsity_means_what_it_prints() -> None:
    """0.1 is not a tenth in binary; 90 of 100 is what a reader expects."""
    for sparsity in (0.1, 0.2, 0.3, 0.7, 0.9, 0.95, 0.99):
        mask = keep({"a": {"w": torch.rand(10, 100)}}, sparsity)
        assert kept(mask) == round(1000 - 1000 * sparsity) and density(mask) == pytest.approx(1 - sparsity)


def test_reserved_weights_are_kept_first_within_the_count() -> None:
    scores, reserved = {"a": {"w": torch.arange(12.0).view(3, 4)}}, torch.zeros(3, 4, dtype=torch.bool)
    reserved[0, :2] = True
    mask = keep(scores, 0.75, reserved={"a": {"w": reserved}})["a"]["w"]
    assert mask.tolist() == [[True, True, False, False], [False] * 4, [False, False, False, True]]


def test_more_reserved_weights_than_may_be_kept_are_refused() -> None:
    scores, reserved = {"a": {"w": torch.rand(3, 4)}}, torch.ones(3, 4, dtype=torch.bool)
    with pytest.raises(UserError, match="quota"):
        keep(scores, 0.5, reserved={"a": {"w": reserved}})


@pytest.mark.parametrize("scope", SCOPES)
def test_a_network_without_weights_to_prune_is_left_alone(scope: str) -> None:
    mask = keep({"empty": {}, "a": {"w": torch.rand(3, 4)}}, 0.5, scope)
    assert mask["empty"] == {} and kept(mask) == 6


@pytest.mark.parametrize("sparsity", [-0.1, 1.0, 1.5, float("nan"), float("inf")])
def test_a_sparsity_out_of_range_is_refused(sparsity: float) -> None:
    with pytest.raises(UserError, match="sparsity"):
        keep({"a": {"w": torch.rand(2, 2)}}, sparsity)


def test_scores_that_are_not_finite_and_unknown_scopes_are_refused() -> None:
    with pytest.raises(UserError, match=r"a\.w that are not finite"):
        keep({"a": {"w": torch.tensor([[1.0, torch.nan]])}}, 0.5)
    with pytest.raises(UserError, match="scope"):
        keep({"a": {"w": torch.rand(2, 2)}}, 0.5, "everything")
