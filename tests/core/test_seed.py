"""Randomness as a function: orders are permutations, draws have the right moments and depend on nothing else."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.func import vmap

from fewer.core.seed import Stream, _factors, shuffled, torch_seed
from tests.toys import stream


def order(seed: int, epoch: int, count: int) -> torch.Tensor:
    return shuffled(torch.tensor(seed), epoch * count + torch.arange(count), count)


def test_every_epoch_visits_every_sample_once_for_all_small_counts() -> None:
    for count in range(1, 301):
        for epoch in (0, 7):
            assert torch.equal(order(count, epoch, count).sort().values, torch.arange(count)), (count, epoch)


@pytest.mark.parametrize("count", [997, 10_007, 65_537, 300_007])
def test_large_and_prime_counts_are_permuted_too(count: int) -> None:
    assert torch.equal(order(1, 3, count).sort().values, torch.arange(count))


def test_the_walk_is_long_enough_for_every_count() -> None:
    """A walk of excess + 1 turns always lands inside; the code stops after 17."""
    for count in [*range(1, 6_000), *range(1_000_000, 1_000_300), *(2**k + 1 for k in range(10, 33))]:
        a, b = _factors(count)
        assert 0 <= a * b - count <= 16, count


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**31), st.integers(0, 1000), st.integers(1, 400))
def test_any_seed_and_epoch_gives_a_permutation(seed: int, epoch: int, count: int) -> None:
    assert torch.equal(order(seed, epoch, count).sort().values, torch.arange(count))


def test_orders_differ_by_epoch_and_by_seed() -> None:
    orders = {tuple(order(seed, epoch, 50).tolist()) for seed in range(20) for epoch in range(20)}
    assert len(orders) == 400


def test_two_samples_come_in_either_order_about_equally_often() -> None:
    first = shuffled(torch.arange(2000), torch.zeros(2000, dtype=torch.int64), 2)
    assert 900 < int(first.sum()) < 1100


def test_no_sample_prefers_a_place() -> None:
    """Chi-square of (place, sample) over many seeds: 80 degrees of freedom, so 160 is out of all proportion."""
    seeds, count = 9000, 9
    table = torch.zeros(count, count)
    orders = shuffled(torch.arange(seeds)[:, None], torch.arange(count)[None], count)
    for place in range(count):
        table[place] = torch.bincount(orders[:, place], minlength=count)
    expected = seeds / count
    assert float(((table - expected) ** 2 / expected).sum()) < 160


def test_a_batch_across_two_epochs_takes_the_end_of_one_and_the_start_of_the_next() -> None:
    across = shuffled(torch.tensor(4), torch.arange(8, 14), 10)
    assert torch.equal(across, torch.cat([order(4, 0, 10)[8:], order(4, 1, 10)[:4]]))


def test_uniform_draws_have_the_moments_and_range_of_a_uniform() -> None:
    u = stream(1).uniform("u", (200_000,))
    assert float(u.min()) >= 0 and float(u.max()) < 1
    assert abs(float(u.mean()) - 0.5) < 4 * math.sqrt(1 / 12 / len(u))
    assert abs(float(u.var()) - 1 / 12) < 1e-3
    assert abs(float((u[1:] * u[:-1]).mean()) - 0.25) < 2e-3


def test_normal_draws_have_the_moments_of_a_normal() -> None:
    z = stream(2).normal("z", (200_000,))
    for power, expected, spread in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs(float((z**power).mean()) - expected) < 4 * math.sqrt(spread / len(z)), power
    assert bool(torch.isfinite(z).all())


def test_names_seeds_and_steps_give_unrelated_draws() -> None:
    draws = [
        stream(seed, step).normal(name, (20_000,)) for seed in (0, 1) for step in (0, 1) for name in ("a", "b", "a/b")
    ]
    correlations = torch.corrcoef(torch.stack(draws)) - torch.eye(len(draws))
    assert float(correlations.abs().max()) < 4.5 / math.sqrt(20_000)


def test_uniform_and_normal_of_one_name_are_unrelated() -> None:
    noise = stream(3)
    both = torch.stack([noise.uniform("a", (20_000,)), noise.normal("a", (20_000,))])
    assert abs(float(torch.corrcoef(both)[0, 1])) < 4.5 / math.sqrt(20_000)


def test_asking_twice_gives_the_same_numbers_and_a_shape_is_only_a_shape() -> None:
    assert torch.equal(stream(5).normal("a", (6,)), stream(5).normal("a", (2, 3)).reshape(-1))
    assert stream(5).uniform("a", ()).shape == ()
    assert stream(5).normal("a", (0, 3)).shape == (0, 3)


@pytest.mark.parametrize("kind", ["uniform", "normal"])
def test_a_replica_draws_under_vmap_what_it_draws_alone(kind: str) -> None:
    seeds, step = torch.tensor([0, 3, 2**40]), torch.tensor(9)
    together = vmap(lambda seed: getattr(Stream(seed, step, torch.float64), kind)("a", (4, 2)))(seeds)
    for row, seed in zip(together, seeds):
        assert torch.equal(row, getattr(Stream(seed, step, torch.float64), kind)("a", (4, 2)))


def test_precision_changes_the_rounding_and_not_the_numbers() -> None:
    exact, rounded = stream(8).uniform("a", (100,)), stream(8, dtype=torch.float32).uniform("a", (100,))
    assert torch.equal(exact.float(), rounded)


def test_torch_seeds_differ_by_seed_and_purpose_and_are_legal() -> None:
    seeds = {torch_seed(seed, name) for seed in range(100) for name in ("networks", "step 1")}
    assert len(seeds) == 200 and all(0 <= seed < 2**63 for seed in seeds)
