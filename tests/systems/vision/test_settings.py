"""What the vision task refuses at once, what it recommends, and how it normalises."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from fewer.core.engines.nets import NetworkSet
from fewer.core.errors import UserError
from fewer.core.seed import Stream
from fewer.systems.vision.task.task import Settings, Vision

NOISE = Stream(torch.tensor(0), torch.tensor(0))


@pytest.mark.parametrize("wrong", [{"augment": "swirl"}, {"classes": "3,seven"}, {"smooth": 1.0}, {"hidden": -1}])
def test_a_wrong_setting_is_refused_before_any_image_is_read(wrong: dict[str, object]) -> None:
    with pytest.raises(UserError):
        Settings(**wrong)  # type: ignore[arg-type]


def test_the_mlp_alone_is_pruned_in_three_times_the_steps() -> None:
    for settings, longer in ((Settings(network="mlp"), {"steps": 6000}), (Settings(network="cnn2"), {}), (None, {})):
        recipe = Vision.recipe(settings)
        assert recipe.pruned == longer and recipe.prune == "lamp,when=gradual" and recipe.training == Vision.recommended


def test_a_normalised_network_sees_mean_zero_and_deviation_one_and_others_see_the_pixels() -> None:
    task = Vision(Settings(network="cnn0", normalise=True))
    pixels = task.data("train").samples.pixels
    seen = task.networks()["net"].normalise(pixels)
    assert abs(float(seen.mean())) < 1e-4
    assert float(seen.square().sum() / seen.numel()) == pytest.approx(1, abs=1e-5)
    assert not any(
        name.startswith("normalise.") for name in Vision(Settings(network="cnn0")).networks()["net"].state_dict()
    )


def test_the_loss_is_cross_entropy_with_a_share_given_to_other_classes() -> None:
    batch = Vision(Settings(network="cnn0")).data("train").take(torch.arange(6))
    found = []
    for smooth in (0.0, 0.1):
        task = Vision(Settings(network="cnn0", smooth=smooth))
        torch.manual_seed(0)
        nets = NetworkSet(task.networks())
        (objective,) = task.objectives()
        expected = functional.cross_entropy(nets.net(batch.pixels), batch.label, label_smoothing=smooth)
        found.append(objective.loss(nets, batch, NOISE).item())
        assert found[-1] == pytest.approx(expected.item())
    assert found[0] != found[1]
