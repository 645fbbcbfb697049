"""Many episodes together: Gymnasium's numbers to the bit, and the same whatever runs beside them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fewer.core.errors import UserError
from fewer.systems.control.task.worlds.environments import ENVIRONMENTS, Environment, environment
from fewer.systems.control.task.worlds.rollout import Many, episode_seed
from fewer.systems.control.task.worlds.simulator import make


def actions(many: Many, step: int, seed: int = 0) -> np.ndarray:
    """Pushes that topple a hopper within tens of steps, different for each episode."""
    draw = np.random.default_rng([seed, step])
    return draw.uniform(-1, 1, (len(many), many.environment.actions)).astype(np.float32)


@pytest.mark.parametrize("name", sorted(ENVIRONMENTS))
def test_an_episode_has_gymnasiums_numbers_to_the_bit(name: str) -> None:
    world = make(ENVIRONMENTS[name].gymnasium)
    many = Many(name, [3, 1], seed=5, workers=1)
    seen = many.reset()
    theirs, _ = world.reset(seed=episode_seed(5, 3))
    assert np.array_equal(seen[0], theirs.astype(np.float32))
    for number in range(120):
        given = actions(many, number)
        step = many.step(given)
        theirs, reward, ended, _, _ = world.step(given[0])
        assert np.array_equal(step.observation[0], theirs.astype(np.float32))
        assert step.reward[0] == reward and step.terminal[0] == ended
        if ended:
            break
    assert ended == (name != "halfcheetah"), "a hopper and a walker fall when pushed at random"


def returns(many: Many, steps: int) -> np.ndarray:
    many.reset()
    return np.array([many.step(actions(many, number)).reward for number in range(steps)])


def test_neither_the_number_of_threads_nor_the_company_changes_an_episode() -> None:
    alone = returns(Many("hopper", 12, seed=1, workers=1), 60)
    assert np.array_equal(alone, returns(Many("hopper", 12, seed=1, workers=3), 60))
    many = Many("hopper", list(range(12)) + [4, 7], seed=1, workers=2)
    many.reset()
    for number in range(60):
        given = actions(Many("hopper", 12), number)
        reward = many.step(np.concatenate([given, given[[4, 7]]])).reward
        assert np.array_equal(reward[:12], alone[number]) and np.array_equal(reward[12:], alone[number, [4, 7]])


def test_another_seed_is_another_episode_and_reset_repeats() -> None:
    first = Many("walker2d", 2, seed=0)
    assert np.array_equal(first.reset(), first.reset())
    assert not np.array_equal(first.reset(), Many("walker2d", 2, seed=1).reset())
    assert not np.array_equal(first.reset()[0], first.reset()[1])


def test_an_episode_that_is_over_stands_still_and_costs_nothing() -> None:
    many = Many("hopper", 2, seed=0, workers=1)
    many.reset()
    stepped = []
    inner = many._simulator.advance
    many._simulator.advance = lambda rows, given: (stepped.append(len(rows)), inner(rows, given))[1]  # type: ignore
    fell = None
    for number in range(400):
        given = actions(many, number)
        given[1] = 0
        step = many.step(given)
        if fell is not None:
            assert step.reward[0] == 0 and not step.terminal[0] and np.array_equal(step.observation[0], fell)
        if step.terminal[0]:
            fell = step.observation[0]
        if not step.running.any():
            break
    assert fell is not None and sorted(set(stepped)) == [1, 2]
    after = many.step(given)
    assert not after.running.any() and len(stepped) == number + 1


def test_the_clock_ends_an_episode_without_a_terminal() -> None:
    short = Environment(**{**vars(ENVIRONMENTS["halfcheetah"]), "steps": 5})
    many = Many(short, 3)
    many.reset()
    steps = [many.step(actions(many, number)) for number in range(5)]
    assert not any(step.timeout.any() for step in steps[:4])
    assert steps[4].timeout.all() and not steps[4].terminal.any() and not steps[4].running.any()


def test_a_policy_that_diverged_fails_alone_and_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    many, healthy = Many("halfcheetah", 2), Many("halfcheetah", 2)
    many.reset(), healthy.reset()
    for number in range(20):
        given = actions(many, number)
        broken = given.copy()
        broken[0] = np.nan if number % 2 else np.inf
        ours, theirs = many.step(broken), healthy.step(given)
        assert np.isfinite(ours.observation).all() and ours.reward[1] == theirs.reward[1]
    assert list(tmp_path.iterdir()) == []


def test_any_gymnasium_id_with_boxes_serves() -> None:
    many = Many("Pendulum-v1", 5, seed=2, workers=1)
    found = many.environment
    assert (found.observations, found.actions, found.low, found.high, found.steps) == (3, 1, (-2.0,), (2.0,), 200)
    world = make("Pendulum-v1")
    seen, (theirs, _) = many.reset(), world.reset(seed=episode_seed(2, 4))
    assert np.allclose(seen[4], theirs)
    for number in range(200):
        step = many.step(2 * actions(many, number))
        assert step.running.all() == (number < 199)
        assert step.reward[4] == world.step(2 * actions(many, number)[4])[1]
    assert step.timeout.all()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("hoper", "expected halfcheetah, hopper, walker2d or a Gymnasium id; did you mean 'hopper'?"),
        ("CartPole-v1", "expected vectors of numbers to see and to do"),
    ],
)
def test_an_unknown_world_or_one_without_boxes_is_one_line(name: str, words: str) -> None:
    with pytest.raises(UserError, match="expected") as caught:
        environment(name)
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_wrong_actions_and_counts_are_refused() -> None:
    many = Many("hopper", 2)
    many.reset()
    with pytest.raises(UserError, match=r"actions of shape \(3, 3\); expected \(2, 3\)"):
        many.step(np.zeros((3, 3)))
    with pytest.raises(UserError, match="at least one episode"):
        Many("hopper", 0)


def test_scores_are_0_for_random_and_100_for_the_expert() -> None:
    hopper = environment("Hopper-v5")
    assert hopper is ENVIRONMENTS["hopper"]
    assert hopper.score(-20.272305) == 0 and abs(hopper.score(3234.3) - 100) < 1e-9
    assert abs(ENVIRONMENTS["halfcheetah"].score(11415.2) - 94.2) < 0.05  # the field notes' figure
    with pytest.raises(UserError, match="reference returns"):
        environment("Pendulum-v1").score(0)
