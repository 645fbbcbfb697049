"""Is generated weather what it claims: statistics by formula, motion, clouds over rain, and the same bits again?"""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import datetime

import numpy as np
import pytest
import torch
from torch import Tensor

from fewer.core.errors import UserError
from fewer.systems.nowcast.task.bands import BANDS
from fewer.systems.nowcast.task.files.layout import CORE, TRANSFER, Place
from fewer.systems.nowcast.task.weather import ground
from fewer.systems.nowcast.task.weather.fields import Evolution, Grid, Law, variance_share
from fewer.systems.nowcast.task.weather.gaps import Gaps
from fewer.systems.nowcast.task.weather.regimes import REGIMES, REGIONS, Scene, draw_scene
from fewer.systems.nowcast.task.weather.weather import Weather, checked_size
from fewer.systems.nowcast.task.weather.wind import Wind, sample_periodic
from fewer.systems.nowcast.task.windows import FACTOR, center


def scenes(count: int, seed: int = 3, **changes: object) -> list[Scene]:
    names = list(REGIONS)
    drawn = [draw_scene(Place(names[n % 10], 2019 + n % 2), seed=seed, name=f"test/{n}") for n in range(count)]
    return [replace(scene, **changes) for scene in drawn]  # type: ignore[arg-type]


def rates(weather: Weather, count: int) -> Tensor:
    frames = weather.frames(count, seen=(), measured=range(count))
    return torch.stack([frame.rate for frame in frames if frame.rate is not None], dim=1)


def generators(count: int) -> list[torch.Generator]:
    return [torch.Generator().manual_seed(seed) for seed in range(count)]


def test_fields_have_the_variance_and_the_memory_of_their_law() -> None:
    laws = [Law(3.0, 0.5, 0.7, variance) for variance in (1.0, 0.25)] * 20
    field = Evolution(Grid(64, 12.0), laws, band_km=(100.0, 40.0), generators=generators(40))
    before = field.values()
    for _ in range(4):
        field.advance_()
    after = field.values()
    for part, variance in ((slice(0, None, 2), 1.0), (slice(1, None, 2), 0.25)):
        assert before[part].var().item() == pytest.approx(variance, rel=0.05)
        assert after[part].var().item() == pytest.approx(variance, rel=0.05)  # still the same after a while
    correlation = (before * after).mean() / (before.std() * after.std())
    slow, fast = (math.exp(-1 / (0.5 * (length / 10) ** 0.7)) for length in (100.0, 40.0))
    assert fast < correlation.item() < slow


def test_one_wavelength_forgets_exactly_as_its_lifetime_says() -> None:
    grid, length_km = Grid(48, 12.0), 48 * 12.0 / 8
    field = Evolution(
        grid, [Law(3.0, 0.4, 0.8)] * 300, band_km=(length_km * 1.01, length_km * 0.99), generators=generators(300)
    )
    before = field.values()
    for _ in range(4):
        field.advance_()
    correlation = (before * field.values()).mean() / before.var()
    assert correlation.item() == pytest.approx(math.exp(-1 / (0.4 * (length_km / 10) ** 0.8)), abs=0.04)


def test_shares_of_variance_add_up() -> None:
    whole = variance_share(2.9, 1e6, 4.0)
    assert variance_share(2.9, 1e6, 40.0) + variance_share(2.9, 40.0, 4.0) == pytest.approx(whole)


def test_sampling_a_periodic_field_at_its_pixels_gives_the_field_and_wraps_around() -> None:
    field = torch.randn(1, 1, 32, 32, generator=torch.Generator().manual_seed(0))
    down, across = torch.meshgrid(torch.arange(32.0), torch.arange(32.0), indexing="ij")
    places = torch.stack([across, down], dim=-1)[None] * 2.0
    assert torch.allclose(sample_periodic(field, places, 2.0), field, atol=1e-4)
    assert torch.allclose(sample_periodic(field, places + 2 * 32 * 3, 2.0), field, atol=1e-3)
    shifted = sample_periodic(field, places + torch.tensor([2.0, 0.0]), 2.0)
    assert torch.allclose(shifted, field.roll(-1, dims=3), atol=1e-4)


def test_the_wind_neither_squeezes_nor_stretches_the_air() -> None:
    wind = Wind(scenes(4), torch.device("cpu"))
    places = torch.rand(4, 50, 2, generator=torch.Generator().manual_seed(1)) * 1000
    step = 5.0
    parts = []
    for axis in (0, 1):
        away = torch.zeros(2)
        away[axis] = step
        parts.append((wind.at(places + away) - wind.at(places - away))[..., axis] / (2 * step))
    assert (parts[0] + parts[1]).abs().max() < 1e-3 * 10  # km/h per km, of waves of about 10 km/h over 150 km
    assert parts[0].abs().max() > 0.01


def test_rain_moves_with_the_wind() -> None:
    # 40 km/h eastward is 5 pixels of 2 km in a quarter of an hour
    steady = scenes(6, speed_kmh=40.0, heading=0.0, wet=0.2, tau_hours=2.0)
    wet = (rates(Weather(steady, size=84), 2) >= 0.2).float()
    best = max(range(-10, 11), key=lambda shift: float((wet[:, 0].roll(shift, dims=2) * wet[:, 1]).sum()))
    assert 3 <= best <= 7


def test_frames_are_the_same_bits_again_and_do_not_depend_on_the_company() -> None:
    some = scenes(3)
    together = list(Weather(some, size=42).frames(3, seen=range(2), measured=range(1, 3)))
    again = list(Weather(some, size=42).frames(3, seen=range(2), measured=range(1, 3)))
    alone = list(Weather(some[1:2], size=42).frames(3, seen=range(2), measured=range(1, 3)))
    for one, two, three in zip(together, again, alone, strict=True):
        for here, there, lone in zip(one, two, three, strict=True):
            assert (here is None) == (there is None) == (lone is None)
            if here is not None and there is not None and lone is not None:
                assert torch.equal(here, there)
                # the same but for the last bits, which depend on where a vector's end falls
                assert torch.allclose(here[1:2], lone, rtol=1e-4, atol=1e-2)


def test_the_satellite_sees_cold_bright_cloud_where_it_rains() -> None:
    names = [band.name for band in BANDS]
    noon = scenes(8, wet=0.15, start=datetime(2019, 6, 21, 11, 0), top_km=3.2, slope=3.0)
    (frame,) = Weather(noon, size=84).frames(1, seen=(0,), measured=(0,))
    assert frame.satellite is not None and frame.rate is not None
    inner = frame.satellite[:, :, center(84), center(84)]
    raining = torch.nn.functional.avg_pool2d((frame.rate >= 0.2).float()[:, None], FACTOR)[:, 0]
    window, visible = inner[:, names.index("IR_108")], inner[:, names.index("VIS006")]
    assert window[raining > 0.8].mean() < window[raining == 0].mean() - 20  # K
    assert visible[raining > 0.8].mean() > 1.8 * visible[raining == 0].mean()


def test_reflectances_are_dark_at_night_and_no_band_leaves_its_range() -> None:
    night = scenes(2, start=datetime(2019, 12, 21, 0, 0))
    (frame,) = Weather(night, size=42).frames(1, seen=(0,), measured=())
    assert frame.satellite is not None
    for index, band in enumerate(BANDS):
        values = frame.satellite[:, index]
        assert values.min() >= 0 and values.max() <= band.highest
        assert values.max() < 0.01 if band.reflectance else values.min() > 150


def test_the_sun_is_high_at_noon_in_june_and_down_at_midnight() -> None:
    noon = ground.sun("boxi_0015", 252, datetime(2019, 6, 21, 11, 20))
    # at 48.5 degrees north the sun stands 48.5 - 23.4 degrees from the zenith
    assert noon[125:127, 125:127].mean().item() == pytest.approx(math.cos(math.radians(48.5 - 23.44)), abs=0.01)
    assert ground.sun("boxi_0015", 42, datetime(2019, 12, 21, 0, 0)).max() == 0


@pytest.mark.parametrize("size", [42, 84, 126, 252])
def test_the_radar_lies_where_the_satellites_centre_is(size: int) -> None:
    rows = torch.arange(size)[center(size)].float()
    middle_km = (rows.mean().item() - (size - 1) / 2) * 12
    assert ground.radar_offset_km(size) == pytest.approx(middle_km)


def test_regions_have_their_own_wet_fractions_and_years_their_own() -> None:
    for region, year, expected in (("roxi_0007", 2019, 0.0227), ("roxi_0004", 2020, 0.1410)):
        drawn = [draw_scene(Place(region, year), seed=7, name=str(n)).wet for n in range(4000)]
        assert np.mean(drawn) == pytest.approx(expected, rel=0.15)
    assert REGIONS["boxi_0015"].wet_fraction(2021) == pytest.approx((0.0732 + 0.0807) / 2)
    assert set(REGIONS) == set(CORE + TRANSFER)


def test_scenes_use_every_regime_season_and_hour() -> None:
    drawn = [draw_scene(Place("boxi_0034", 2020), seed=0, name=str(n)) for n in range(600)]
    assert {scene.regime for scene in drawn} == set(REGIMES)
    assert {scene.start.month for scene in drawn} == set(range(1, 13))
    assert {scene.start.hour for scene in drawn} == set(range(24))
    storms = [scene.start.month for scene in drawn if scene.regime == "convective"]
    assert sum(5 <= month <= 9 for month in storms) > 0.6 * len(storms)  # an affair of summer


def test_radars_miss_few_pixels_and_some_are_silent_for_a_while() -> None:
    for region in REGIONS:
        assert 0.85 <= ground.covered(region, 84).float().mean().item() <= 1.0
    gaps = [Gaps(scene, size=84, frames=32, images=4) for scene in scenes(300)]
    whole = [ground.covered(scene.region, 84) for scene in scenes(300)]
    silent = sum(any(not torch.equal(each.valid(f), full) for f in range(32)) for each, full in zip(gaps, whole))
    lossy = sum(any(each.lines(image) != slice(0, 0) for image in range(4)) for each in gaps)
    assert 5 <= silent <= 40 and 1 <= lossy <= 25


@pytest.mark.parametrize("size", [0, 6, 43, 258])
def test_an_impossible_size_is_refused_in_one_line(size: int) -> None:
    with pytest.raises(UserError, match="multiple of 6"):
        checked_size(size)
