"""Every model has the published number of weights, takes any size, and uses what it is given."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fewer.core.engines.stochastic import drawing, keyed_
from fewer.core.errors import UserError
from fewer.core.mask import prunable
from fewer.core.seed import Stream
from fewer.pruning.paths.lint import on_paths
from fewer.systems.nowcast.task.bands import BANDS
from fewer.systems.nowcast.task.models.networks import Forecaster, network
from fewer.systems.nowcast.task.settings import ADAPTATIONS, Settings
from fewer.systems.nowcast.task.windows import FACTOR, LEADS, SEEN, center

torch.set_num_threads(1)

# millions of weights at the competition's size, field measurements of the published architectures
PUBLISHED = [
    ({"model": "baseline"}, 22.59),
    ({"model": "improved", "gates": False}, 25.90),
    ({"model": "improved", "gates": False, "transposed": True}, 22.59),
    ({"model": "swin"}, 15.71),
    ({"model": "swin", "width": 12}, 4.08),
    ({"model": "vivit"}, 37.49),
    ({"model": "vivit", "width": 16}, 15.7),
]
SMALL: dict[str, dict[str, Any]] = {
    "baseline": {"model": "baseline", "width": 4},
    "improved": {"model": "improved", "width": 4},
    "transposed": {"model": "improved", "width": 4, "transposed": True},
    "vivit": {"model": "vivit", "width": 4},
    "focus": {"model": "focus", "width": 4},
    "drift": {"model": "drift", "width": 4},
}


def made(size: int, **options: Any) -> Forecaster:
    torch.manual_seed(0)
    return network(Settings(size=size, **options), size)


def images(count: int, size: int) -> tuple[Tensor, Tensor]:
    torch.manual_seed(1)
    return torch.randn(count, SEEN, len(BANDS), size, size), (torch.rand(count, SEEN, size, size) < 0.1).float()


@pytest.mark.parametrize("name", ["baseline", "improved", "vivit", "focus", "drift"])
def test_paths_can_be_counted_through_every_model(name: str) -> None:
    net = made(36, **SMALL[name])
    # what is added to a value, such as a lead time's shift, lies on no path from input to output
    multiplied = [key for key in prunable(net) if not key.endswith(".shift")]
    mask = {key: torch.ones_like(net.get_parameter(key), dtype=torch.bool) for key in multiplied}
    useful = on_paths(net, mask, images(1, 36))
    assert all(bool(some.any()) for some in useful.values())  # taps that only ever see padding are on none


@pytest.mark.parametrize(("options", "millions"), PUBLISHED, ids=lambda value: str(value))
def test_a_model_has_as_many_weights_as_published(options: dict[str, Any], millions: float) -> None:
    count = sum(parameter.numel() for parameter in made(252, **options).parameters())
    digits = 1 if millions == 15.7 else 2
    assert round(count / 1e6, digits) == millions


@pytest.mark.parametrize("size", [24, 42, 60])
@pytest.mark.parametrize("name", SMALL)
def test_a_model_forecasts_every_lead_time_at_any_multiple_of_six(name: str, size: int) -> None:
    with torch.no_grad():
        answer = made(size, **SMALL[name]).eval()(*images(2, size))
    assert answer.shape == (2, LEADS, size, size)
    assert bool(torch.isfinite(answer).all())


@pytest.mark.parametrize("adaptation", ADAPTATIONS)
def test_each_adaptation_of_swin_makes_32_lead_times_of_4_images(adaptation: str) -> None:
    net = made(24, model="swin", width=12, adaptation=adaptation).eval()
    with torch.no_grad():
        answer = net(*images(1, 24))
    assert answer.shape == (1, LEADS, 24, 24)
    assert len(answer[0].unique(dim=0)) == LEADS  # no two lead times alike


def test_the_papers_upsampling_has_as_many_channels_out_of_the_last_two_stages_as_into_them() -> None:
    body = made(24, model="swin", width=12, adaptation="upsample_paper").body
    with torch.no_grad():
        hidden = body.encoder(torch.randn(1, len(BANDS), SEEN, 64, 64))
    assert [part.shape[1] for part in hidden] == [12, 24, 48, 48, 48]
    assert [part.shape[-1] for part in hidden] == [32, 16, 8, 4, 2]


@pytest.mark.parametrize("name", SMALL)
def test_every_weight_has_a_gradient(name: str) -> None:
    net = made(24, **SMALL[name], missing=True)
    net(*images(3, 24)).square().mean().backward()
    without = [key for key, parameter in net.named_parameters() if not bool(parameter.grad.any())]  # type: ignore[union-attr]
    assert without == []


def test_no_convolution_before_a_norm_has_a_bias() -> None:
    for options in SMALL.values():
        for part in made(24, **options).modules():
            if isinstance(part, nn.Sequential):
                for first, second in zip(list(part), list(part)[1:]):
                    if isinstance(second, (nn.BatchNorm2d, nn.BatchNorm3d, nn.InstanceNorm3d)):
                        assert getattr(first, "bias", None) is None


def test_deltas_are_summed_over_lead_times() -> None:
    plain, shifted = made(24, **SMALL["focus"]).eval(), made(24, **SMALL["focus"], deltas=True).eval()
    with torch.no_grad():
        assert torch.allclose(shifted(*images(2, 24)), plain(*images(2, 24)).cumsum(1), atol=1e-5)


def test_the_mask_of_missing_pixels_is_one_more_channel() -> None:
    satellite, missing = images(1, 24)
    with torch.no_grad():
        for wanted in (False, True):
            net = made(24, **SMALL["baseline"], missing=wanted).eval()
            changed = net(satellite, 1 - missing) - net(satellite, missing)
            assert bool(changed.any()) is wanted


def test_focus_looks_at_the_centre_where_the_radar_lies() -> None:
    """A gradient with respect to the images: a radar pixel depends most on the satellite pixel above it."""
    size = 84
    net = made(size, **SMALL["focus"]).eval()
    for row, column in ((3, 80), (40, 41), (81, 5)):
        satellite, missing = images(1, size)
        satellite.requires_grad_(True)
        net(satellite, missing)[0, :, row, column].square().sum().backward()
        influence = satellite.grad.abs().sum((0, 1, 2))  # type: ignore[union-attr]
        top = int(influence.argmax())
        here = (center(size).start + row // FACTOR, center(size).start + column // FACTOR)
        assert max(abs(top // size - here[0]), abs(top % size - here[1])) <= 2
        assert bool((influence > 0).sum() > 0.5 * size * size)  # and on most of what surrounds it


def test_the_baseline_maps_a_pixel_to_the_same_index_and_focus_does_not() -> None:
    """What the geometry-aware model is for: the others read the image's corner for the radar's corner."""
    size = 84
    for name, near_corner in (("baseline", True), ("focus", False)):
        net = made(size, **SMALL[name]).eval()
        satellite, missing = images(1, size)
        satellite.requires_grad_(True)
        net(satellite, missing)[0, :, 0, 0].square().sum().backward()
        influence = satellite.grad.abs().sum((0, 1, 2))  # type: ignore[union-attr]
        top = int(influence.argmax())
        assert (max(top // size, top % size) < 12) is near_corner


def test_checkpointing_changes_neither_gradients_nor_running_statistics() -> None:
    for name in ("baseline", "improved", "focus", "drift"):
        found = []
        for checkpoint in (False, True):
            net = keyed_({"net": made(24, **SMALL[name], checkpoint=checkpoint)})["net"]
            with drawing(Stream(torch.tensor(0), torch.tensor(3))):
                net(*images(2, 24)).square().mean().backward()
            found.append([p.grad for p in net.parameters()] + [b.clone() for b in net.buffers()])
        for one, other in zip(*found):
            assert torch.allclose(one, other, rtol=1e-5, atol=1e-7)


def test_wrong_sizes_and_widths_are_refused_in_one_line() -> None:
    for options, word in (
        ({"size": 100}, "multiple of 6"),
        ({"model": "swin", "width": 20}, "multiple of 12"),
        ({"model": "vivit", "width": 5}, "even"),
        ({"model": "unet"}, "one of"),
        ({"size": 42, "augment": True}, "multiple of 12"),
    ):
        with pytest.raises(UserError, match=word):
            Settings(**options)
