"""The control task: the contract on every algorithm, settings, bad logs, units, packs, votes, masks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fewer.core.engines.base import Training
from fewer.core.engines.evaluate import evaluate, predictor
from fewer.core.engines.optimizer import Optimizer
from fewer.core.engines.plain import Plain
from fewer.core.engines.state import fresh_modules
from fewer.core.errors import UserError
from fewer.core.mask import dense
from fewer.core.seed import Stream
from fewer.custom.contract import check
from fewer.packs import pack
from fewer.pruning.paths import lint
from fewer.pruning.pruning import Pruning, mask_for, prune_
from fewer.run.job import Job
from fewer.run.load import Trained
from fewer.run.options import job_of
from fewer.run.packing import pack_run
from fewer.sparse.engine import sparse_engine
from fewer.systems.control.presets import PRESETS
from fewer.systems.control.task.algorithms.normaliser import Normaliser
from fewer.systems.control.task.settings import ALGORITHMS, Settings
from fewer.systems.control.task.task import Control
from tests.systems.control.synthetic import SMALL, control, logs


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_honours_the_contract(algorithm: str) -> None:
    assert [outcome for outcome in check(control(algorithm)) if outcome.fault] == []


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_kept_weights_alone_train_as_masked_networks_do(algorithm: str) -> None:
    task, training = control(algorithm, hidden=(80, 80), autoencoder_hidden=(80, 80)), Training(4, 50)
    engines = []
    for build in (lambda engine: engine, sparse_engine):
        plain = Plain(task, Training(steps=4, batch=50, precision="float64"), 3)
        prune_(plain, Pruning("random", 0.9, scope="erk", samples=50))
        engine = build(plain)
        engine.advance(training.steps)
        engines.append(engine.state.modules_of(0))
    for name, module in engines[0].items():
        for one, other in zip(module.parameters(), engines[1][name].parameters()):
            torch.testing.assert_close(one, other, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("algorithm", "changes"),
    [
        ("bcq", {"policy": "both", "sampled": True}),
        ("bc", {}),
        ("td3bc", {"action_bound": 1.5}),
        ("iql", {}),
    ],
)
def test_a_pack_acts_as_the_policy_on_raw_observations(algorithm: str, changes: dict[str, Any], tmp_path: Path) -> None:
    task = control(algorithm, **changes)
    modules = {name: module.train(False) for name, module in fresh_modules(task, 0).items()}
    mask = mask_for(task, modules, Pruning("snip", 0.5, samples=100), seed=0)
    with torch.no_grad():
        for name, by_name in mask.items():
            for key, kept in by_name.items():
                modules[name].get_parameter(key).mul_(kept)
    run = Trained(tmp_path, Job("control"), task, modules, mask, {})
    pack_run(run, tmp_path / "policy.pack")
    batch = task.data("train").take(torch.arange(30))
    answer = pack.load(tmp_path / "policy.pack").predict(batch.observation.numpy())
    np.testing.assert_allclose(answer, predictor(task, modules)(batch).numpy(), rtol=0, atol=2e-5)


def test_the_normaliser_is_part_of_the_prediction() -> None:
    far = logs()._replace(observation=logs().observation * 30 + 7, next_observation=logs().next_observation * 30 + 7)
    near, moved = control("bc"), Control(Settings(algorithm="bc", **SMALL), logs=far)
    modules, index = fresh_modules(near, 0), torch.arange(20)
    one, other = (predictor(task, modules)(task.data("train").take(index)) for task in (near, moved))
    torch.testing.assert_close(one, other, rtol=0, atol=2e-3)  # the deviations differ by the constant added to them
    raw = control("bc", normalise=False)
    assert not torch.allclose(one, predictor(raw, modules)(moved.data("train").take(index)), atol=0.05)


def test_a_sensor_that_never_moves_stays_finite() -> None:
    normaliser = Normaliser.of(torch.tensor([[1.0, 2.0], [1.0, 4.0]]))
    assert normaliser.mean.tolist() == [1.0, 3.0]
    torch.testing.assert_close(normaliser.deviation, torch.tensor([0.001, 1.001]))
    torch.testing.assert_close(normaliser.inverse(normaliser(torch.tensor([1.5, 2.5]))), torch.tensor([1.5, 2.5]))


def test_actions_are_scaled_to_the_bounds_and_back() -> None:
    wide = logs()._replace(action=logs().action * 3)
    task = Control(Settings(algorithm="bc", action_bound=3.0, **SMALL), logs=wide)
    torch.testing.assert_close(task.steps.action, control("bc").steps.action)
    modules, batch = fresh_modules(task, 0), task.data("train").take(torch.arange(20))
    torch.testing.assert_close(
        predictor(task, modules)(batch), 3 * predictor(control("bc"), modules)(batch), rtol=1e-5, atol=1e-6
    )


def _broken(**changes: Any) -> Any:
    return logs()._replace(**changes)


REWARDS = np.where(np.arange(400) == 17, np.nan, 0.0).astype(np.float32)
BAD: list[tuple[Any, dict[str, Any], str]] = [
    (_broken(reward=REWARDS), {}, "reward nan at step 17"),
    (logs(widths=(12, 3)), {}, "12 observations and 3 actions"),
    (_broken(next_observation=logs().next_observation[:, :5]), {}, "next observations"),
    (_broken(reward=logs().reward[:200]), {}, "same number of steps"),
    (_broken(action=logs().action * 2), {}, "--set action_bound="),
    (_broken(reward=logs().reward[:, None]), {}, "shapes"),
    (logs()._replace(**{name: leaf[:0] for name, leaf in logs()._asdict().items()}), {}, "at least one"),
]


@pytest.mark.parametrize(("found", "changes", "words"), BAD, ids=[words for _, _, words in BAD])
def test_logs_that_cannot_be_learnt_from_are_one_line(found: Any, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError) as caught:
        Control(Settings(**changes), logs=found)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"algorithm": "sac"},
        {"policy": "decoder", "algorithm": "iql"},
        {"attack_loss": "value", "algorithm": "bc"},
        {"environment": "none", "judge": "rollout"},
        {"environment": "none"},
        {"hidden": ()},
        {"discount": 1.5},
        {"candidates": 0},
    ],
    ids=str,
)
def test_settings_that_make_no_sense_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="expected"):
        Settings(**changes)


@pytest.mark.parametrize("preset", PRESETS)
def test_every_reading_of_the_paper_makes_a_job(preset: str) -> None:
    job = job_of("control", PRESETS[preset])
    assert (job.training.steps, job.training.batch, job.seeds) == (1_000_000, 100, (0, 1, 2, 3, 4))
    assert job.training.optimizer == Optimizer("adam", 1e-3)  # no schedule
    assert "normalise=false" in job.settings


def test_the_two_readings_of_the_second_critic_have_a_name_each() -> None:
    assert [PRESETS[name]["settings"]["twin"] for name in ("paper", "paper-twins")] == ["copy", "own"]


@pytest.mark.parametrize("algorithm", ["iql", "td3bc"])
def test_a_critic_that_lost_its_actions_is_refused_and_a_quota_cures_it(algorithm: str) -> None:
    # raw sensors of a wide range beside actions of order one: what HalfCheetah does to SNIP
    wide = {"hidden": (400, 300), "normalise": False}
    task = Control(Settings(algorithm=algorithm, **{**SMALL, **wide}), logs=logs(spread=20.0))
    modules = fresh_modules(task, 0)
    with pytest.raises(UserError, match="no path from input 1 of critic") as caught:
        mask_for(task, modules, Pruning("snip", 0.95, samples=100), seed=0)
    assert "input_quota" in str(caught.value)
    mask = mask_for(task, modules, Pruning("snip", 0.95, samples=100, input_quota=16), seed=0)
    assert int(mask["critic"]["body.0.weight"][:, 11:].sum()) >= 16
    assert torch.equal(mask["critic2"]["body.0.weight"], mask["critic"]["body.0.weight"])
    normal = Control(Settings(algorithm=algorithm, **{**SMALL, **wide, "normalise": True}), logs=logs(spread=20.0))
    kept = mask_for(normal, modules, Pruning("snip", 0.95, samples=100), seed=0)["critic"]["body.0.weight"]
    assert int(kept[:, 11:].sum()) > 16


def test_raw_sensors_break_the_masks_of_bcq_and_it_is_said() -> None:
    task = Control(Settings(normalise=False), logs=logs(spread=20.0))
    with pytest.raises(UserError, match="normalise the inputs, or set scope=layer"):
        mask_for(task, fresh_modules(task, 0), Pruning("snip", 0.95, samples=100), seed=0)
    literal = mask_for(task, fresh_modules(task, 0), Pruning("snip", 0.95, samples=100, unchecked=True), seed=0)
    assert not literal["critic"]["body.0.weight"][:, 11:].any()  # the paper would train this


def test_an_encoder_may_lose_a_latent_variable_but_no_network_an_action() -> None:
    task = control("bc")
    modules = fresh_modules(task, 0)
    mask = dense(modules)
    calls = lint.calls_of(task, modules, task.data("train").take(torch.arange(5)), Stream(*torch.zeros(2).long()))
    mask["encoder"]["mean.weight"][2] = False
    lint.refuse_useless(lint.examine(modules, mask, calls), task.spare())
    with pytest.raises(UserError, match="1 of 12 outputs of encoder"):
        lint.refuse_useless(lint.examine(modules, mask, calls))
    mask["decoder"]["body.4.weight"][0] = False
    with pytest.raises(UserError, match="1 of 3 outputs of decoder"):
        lint.refuse_useless(lint.examine(modules, mask, calls), task.spare())


def test_a_vote_takes_the_median_of_each_action() -> None:
    members = torch.tensor([[[0.0, 1.0]], [[0.5, -1.0]], [[0.9, 0.2]]])
    torch.testing.assert_close(control().majority(members), torch.tensor([[0.5, 0.2]]))
    torch.testing.assert_close(control().majority(members[:2]), torch.tensor([[0.25, 0.0]]))


def test_policies_of_several_members_can_vote_in_one_evaluation() -> None:
    from fewer.ensemble.combine import combine

    task = control("plain-bc")
    members = [predictor(task, fresh_modules(task, seed), seed) for seed in range(3)]
    for how in ("mean", "majority", "best"):
        assert np.isfinite(evaluate(task, combine(task, members, how))["score"])
