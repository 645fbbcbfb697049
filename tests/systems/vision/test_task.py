"""The vision task honours the contract and says what is wrong with its settings."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import fields

import pytest
import torch
from torch.func import functional_call, vmap
from torch.nn import functional

from fewer.core.abilities import Attackable, Classifier, Featured, ability
from fewer.core.data import TensorData
from fewer.core.engines.nets import NetworkSet
from fewer.core.engines.plain import Plain, Training
from fewer.core.errors import UserError
from fewer.core.seed import Stream
from fewer.pruning.features.structured import remove_features
from fewer.systems.vision.task.networks import NETWORKS
from fewer.systems.vision.task.task import Settings, Vision

NOISE = Stream(torch.tensor(0), torch.tensor(0))


@pytest.fixture(scope="module")
def digits() -> Vision:
    return Vision(Settings(network="cnn0"))


def answered(task: Vision, predict, split: str = "test") -> dict[str, float]:
    asking = task.evaluate(split)
    batch = next(asking)
    try:
        while True:
            batch = asking.send(predict(batch))
    except StopIteration as end:
        return end.value


def test_it_has_all_three_abilities(digits: Vision) -> None:
    for wanted in (Attackable, Classifier, Featured):
        assert ability(digits, wanted, "a test") is digits


def test_a_short_training_learns_digits(digits: Vision) -> None:
    engine = Plain(digits, Training(steps=150, batch=64))
    engine.advance(150)
    nets = NetworkSet(engine.modules, training=False)
    with torch.no_grad():
        metrics = answered(digits, lambda batch: digits.predict(nets, digits.inputs(batch), NOISE))
    assert metrics["accuracy"] > 0.75
    assert metrics["loss"] < 0.8


def test_evaluation_counts_every_image_once_and_matches_a_count_by_hand(digits: Vision) -> None:
    labels = digits.data("test").samples.label
    perfect = answered(digits, lambda batch: 50.0 * functional.one_hot(batch.label, 10).float())
    uniform = answered(digits, lambda batch: torch.zeros(len(batch.label), 10))
    assert perfect["accuracy"] == 1.0
    assert uniform["accuracy"] == pytest.approx((labels == 0).float().mean().item())
    assert uniform["loss"] == pytest.approx(math.log(10), rel=1e-6)
    assert next(iter(perfect)) == "accuracy"


def test_predictions_are_log_probabilities_whose_loss_is_the_objective(digits: Vision) -> None:
    nets = NetworkSet(digits.networks())
    batch = digits.data("train").take(torch.arange(32))
    prediction = digits.predict(nets, digits.inputs(batch), NOISE)
    torch.testing.assert_close(prediction.exp().sum(1), torch.ones(32))
    loss = digits.objectives()[0].loss(nets, batch, NOISE)
    torch.testing.assert_close(functional.nll_loss(prediction, batch.label), loss)
    torch.testing.assert_close(digits.attack_loss(nets, batch, NOISE).mean(), loss)


def test_replacing_the_surface_changes_the_pixels_alone(digits: Vision) -> None:
    batch = digits.data("train").take(torch.arange(4))
    other = digits.replace(batch, digits.perturbable(batch) * 0.5)
    assert other.pixels.equal(batch.pixels * 0.5)
    assert other.label.equal(batch.label)


def test_the_head_turns_the_features_into_the_logits(digits: Vision) -> None:
    nets = NetworkSet(digits.networks(), training=False)
    pixels = digits.inputs(digits.data("test").take(torch.arange(8)))
    name, parameter = digits.head()
    weight = nets.modules[name].get_parameter(parameter)
    features = digits.features(nets, pixels)
    bias = nets.modules[name].head.bias
    torch.testing.assert_close(features @ weight.T + bias, digits.logits(nets, pixels, NOISE))


@pytest.mark.parametrize("name", ["cnn0", "cnn0-deep", "mlp", "small-cnn", "conv"])
def test_losses_and_harm_run_under_vmap_and_equal_single_replicas(name: str) -> None:
    task = Vision(Settings(network=name, normalise=True))
    modules = [task.networks()["net"].double() for _ in range(2)]
    stacked = {key: torch.stack([dict(m.state_dict())[key] for m in modules]) for key in modules[0].state_dict()}
    batch = task.data("train").take(torch.arange(6))
    batch = batch._replace(pixels=batch.pixels.double())

    def losses(state):
        nets = NetworkSet({"net": modules[0]}, {"net": state})
        return task.objectives()[0].loss(nets, batch, NOISE), task.attack_loss(nets, batch, NOISE)

    together = vmap(losses)(stacked)
    for row, module in enumerate(modules):
        scores = functional_call(module, module.state_dict(), (batch.pixels,))
        expected = functional.cross_entropy(scores, batch.label, reduction="none")
        torch.testing.assert_close(together[1][row], expected)
        torch.testing.assert_close(together[0][row], expected.mean())


def test_chosen_classes_are_counted_anew_in_the_given_order() -> None:
    task = Vision(Settings(network="cnn1", classes="7,3"))
    whole = Vision(Settings(validation=0.0))
    assert task.classes == 2
    sevens = whole.data("test").samples.pixels[whole.data("test").samples.label == 7]
    mine = task.data("test").samples
    assert mine.pixels[mine.label == 0].equal(sevens)


def test_normalisation_uses_the_training_images() -> None:
    task = Vision(Settings(network="mlp", normalise=True))
    net = task.networks()["net"]
    seen = net.normalise(task.data("train").samples.pixels)
    assert seen.mean().abs() < 1e-4
    assert seen.std().item() == pytest.approx(1, abs=1e-4)
    few = _few(task, 3)  # so few that dividing by one less would show
    assert few[1].numpy() == pytest.approx(task.data("train").samples.pixels[:3].numpy().std(), rel=1e-5)


def _few(task: Vision, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and deviation of the first images alone."""
    known = task._splits["train"]
    try:
        task._splits["train"] = TensorData(known.take(torch.arange(count)))
        return task._statistics()
    finally:
        task._splits["train"] = known


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"network": "cnn9"}, "one of cnn0, cnn1"),
        ({"hidden": -1}, "0 or more"),
        ({"initial": "zero"}, "torch or xavier"),
        ({"contrast": -1.0}, "steepness from 0"),
        ({"contrast": math.nan}, "steepness from 0"),
        ({"contrast": 20.0, "normalise": True}, "one of the two"),
        ({"validation": 1.0}, "share from 0"),
        ({"validation": math.nan}, "share from 0"),
        ({"classes": "three"}, "such as 3,7"),
        ({"classes": "3"}, "two or more different"),
        ({"classes": "3,3"}, "two or more different"),
        ({"classes": "3,10"}, "0 to 9"),
        ({"classes": "-1,3"}, "0 to 9"),
        ({"data": "no such place"}, "check the path"),
    ],
)
def test_a_wrong_setting_is_one_line(settings: dict, said: str) -> None:
    with pytest.raises(UserError) as caught:
        Vision(Settings(**settings))
    assert said in str(caught.value)


def test_a_split_that_is_not_there_is_said() -> None:
    with pytest.raises(UserError, match="validation above 0"):
        Vision(Settings(network="cnn0", validation=0.0)).data("validation")


def test_every_setting_has_a_help_string_and_a_unit() -> None:
    assert all({"help", "unit"} <= set(each.metadata) for each in fields(Settings))


@pytest.mark.parametrize("name", ["cnn0", "mlp3", "small-cnn"])
def test_a_shrunk_network_fits_a_task_with_as_many_hidden_features(name: str) -> None:
    task = Vision(Settings(network=name, hidden=9))
    whole = NETWORKS[name](task.shape, task.classes)
    smaller = remove_features(whole, torch.arange(9))
    net = task.networks()["net"]
    net.load_state_dict(smaller.state_dict())
    pixels = torch.rand(3, *task.shape)
    assert net(pixels).equal(smaller(pixels))


def test_importing_the_task_reads_no_data() -> None:
    program = (
        "import fewer.systems.vision.task.task, fewer.systems.vision.task.digits as d;"
        "assert d.read_digits.cache_info().currsize == 0"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
