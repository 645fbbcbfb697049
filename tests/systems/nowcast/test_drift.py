"""The model that drifts: the motion of clouds, reading upwind, and both together."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fewer.systems.nowcast.task.bands import BANDS
from fewer.systems.nowcast.task.models.drift import Drift, clouds_motion
from fewer.systems.nowcast.task.windows import LEADS, SEEN, center


def clouds(motion: tuple[float, float], size: int = 60, waves: int = 24) -> Tensor:
    """(1, SEEN, size, size): a sum of waves that moves so many rows and columns a step."""
    random = torch.Generator().manual_seed(0)
    wave = (torch.rand(waves, 2, generator=random) - 0.5) * 0.8
    phase = 6.28 * torch.rand(waves, generator=random)
    row, column = torch.meshgrid(torch.arange(float(size)), torch.arange(float(size)), indexing="ij")
    images = []
    for step in range(SEEN):
        place = torch.stack([row - motion[0] * step, column - motion[1] * step])
        images.append(torch.cos(torch.einsum("wk,kij->wij", wave, place) + phase[:, None, None]).sum(0) / waves**0.5)
    return torch.stack(images)[None]


@pytest.mark.parametrize("motion", [(0.0, 0.0), (0.7, -0.4), (-1.3, 0.9)])
def test_the_motion_of_clouds_is_found(motion: tuple[float, float]) -> None:
    assert clouds_motion(clouds(motion))[0].tolist() == pytest.approx(motion, abs=0.12)


def test_missing_lines_do_not_look_like_clouds_that_stand_still() -> None:
    images = clouds((1.2, 0.5))
    images[:, :, 10:13] = images[:, 2, 40:45] = 0.0
    assert clouds_motion(images)[0].tolist() == pytest.approx((1.2, 0.5), abs=0.15)


def test_where_nothing_is_seen_nothing_moves() -> None:
    assert clouds_motion(torch.zeros(2, SEEN, 24, 24)).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_noise_moves_nowhere_and_clouds_in_noise_move() -> None:
    torch.manual_seed(0)
    noise = torch.randn(200, SEEN, 24, 24)
    found = clouds_motion(noise).abs().amax(1)
    assert float((found == 0).float().mean()) > 0.8 and float(found.max()) < 0.5
    seen = clouds((0.7, -0.4)) + 0.1 * torch.randn(1, SEEN, 60, 60)
    assert clouds_motion(seen)[0].tolist() == pytest.approx((0.7, -0.4), abs=0.15)


def test_a_lead_time_reads_as_many_steps_upwind_as_it_is_ahead() -> None:
    torch.manual_seed(0)
    net = Drift(len(BANDS), 60, 4).eval()
    features = torch.randn(2, 3, 60, 60)
    found = net._upwind(features, torch.tensor([[1.0, 0.0], [0.0, -0.5]]))
    first, count = center(60).start - 1, 12
    assert found.shape == (2, LEADS, 3, count, count)
    for lead in range(first):  # one row a step until the image's edge
        rows = slice(first - lead - 1, first - lead - 1 + count)
        assert torch.allclose(found[0, lead], features[0, :, rows, first : first + count], atol=1e-5)
    half = (features[1, :, :, first : first + count] + features[1, :, :, first + 1 : first + count + 1]) / 2
    assert torch.allclose(found[1, 0], half[:, first : first + count], atol=1e-5)
    # beyond the edge lies the edge
    assert torch.allclose(found[0, -1, :, 0], features[0, :, 0, first : first + count], atol=1e-5)


def test_a_forecast_depends_most_on_where_its_air_is_now() -> None:
    torch.manual_seed(0)
    size, lead = 84, 20
    net = Drift(len(BANDS), size, 4).eval()
    satellite = torch.randn(1, len(BANDS), SEEN, size, size)
    satellite[:, 4] = clouds((0.8, -0.6), size)
    satellite.requires_grad_(True)
    net(satellite)[0, lead - 1, size // 2, size // 2].backward()
    influence = satellite.grad.abs().sum((0, 1, 2))  # type: ignore[union-attr]
    top = int(influence.argmax())
    middle = size / 2 - 0.5
    assert top // size == pytest.approx(middle - 0.8 * lead, abs=3)
    assert top % size == pytest.approx(middle + 0.6 * lead, abs=3)
