"""The bars of the calibration on few windows, and the formula behind them on many: does either move, it fails."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
import torch

from fewer.systems.nowcast.studies.weather import EXTRAPOLATION, PERSISTENCE, STEPS, Tally, measure_bands
from fewer.systems.nowcast.studies.weather import _count_ as count_
from fewer.systems.nowcast.task.bands import BANDS
from fewer.systems.nowcast.task.files.layout import Place
from fewer.systems.nowcast.task.weather.fields import LONGEST_KM, OUTER_KM
from fewer.systems.nowcast.task.weather.regimes import REGIONS, Scene, draw_scene
from fewer.systems.nowcast.task.weather.weather import Weather


def all_scenes(count: int, seed: int) -> list[Scene]:
    names = list(REGIONS)
    return [draw_scene(Place(names[n % 10], 2019 + n // 10 % 2), seed=seed, name=f"bars/{n}") for n in range(count)]


def expected_scores(scenes: list[Scene]) -> tuple[np.ndarray, np.ndarray]:
    """Persistence and perfect extrapolation of Gaussian fields over a threshold, with nothing simulated.

    Both are P11 / (2 p - P11), P11 the chance that two standard normals of correlation rho both exceed z, which by
    Plackett is p^2 plus the integral of exp(-z^2 / (1 + sin t)) / 2 pi from 0 to arcsin rho.
    """
    from scipy.special import j0

    k = np.exp(np.linspace(math.log(2 * math.pi / 3000), math.log(2 * math.pi / 4), 300))
    hours = np.array(STEPS)[:, None] / 4
    nodes, weights = np.polynomial.legendre.leggauss(24)
    both, either = np.zeros((2, len(STEPS))), np.zeros((2, len(STEPS)))
    for scene in scenes:
        density = (k**2 + (2 * math.pi / OUTER_KM) ** 2) ** (-scene.slope / 2) * k * np.gradient(k)
        tau = scene.tau_hours * (np.minimum(2 * math.pi / k, LONGEST_KM) / 10) ** scene.exponent
        kept = density / density.sum() * np.exp(-hours / tau)
        z = NormalDist().inv_cdf(1 - scene.wet)
        for row, correlation in enumerate((kept * j0(k * scene.speed_kmh * hours), kept)):
            end = np.arcsin(correlation.sum(1))[:, None]
            t = end * (nodes + 1) / 2
            joint = scene.wet**2 + (np.exp(-(z**2) / (1 + np.sin(t))) * weights).sum(1) * end[:, 0] / (4 * math.pi)
            both[row] += joint
            either[row] += 2 * scene.wet - joint
    scores = both / either
    return scores[0], scores[1]


def test_scores_expected_of_many_scenes_are_operas() -> None:
    persistence, extrapolation = expected_scores(all_scenes(800, 2000))
    np.testing.assert_allclose(persistence, PERSISTENCE, atol=0.04)
    np.testing.assert_allclose(extrapolation[:7], EXTRAPOLATION, atol=0.05)


def test_scenes_are_as_wet_as_operas_evening() -> None:
    assert 0.08 <= np.mean([scene.wet for scene in all_scenes(3000, 2000)]) <= 0.10


@pytest.fixture(scope="module")
def tally() -> Tally:
    found = Tally()
    for start in range(0, 12, 4):
        some = all_scenes(12, 2001)[start : start + 4]
        frames = Weather(some, size=84).frames(36, seen=(), measured=range(36))
        for rate in torch.stack([frame.rate for frame in frames if frame.rate is not None], dim=1).numpy():
            count_(found, rate)
    return found


def test_simulated_persistence_is_what_the_formula_expects(tally: Tally) -> None:
    persistence, _ = expected_scores(all_scenes(12, 2001))
    np.testing.assert_allclose(tally.scores("persistence")[:4], persistence[:4], atol=0.12)


def test_extrapolation_beats_persistence_and_both_lose_skill_with_lead_time(tally: Tally) -> None:
    persistence, extrapolation = tally.scores("persistence"), tally.scores("extrapolation")
    assert (extrapolation[:5] > persistence[:5]).all()
    for scores in (persistence, extrapolation):
        assert scores[0] > scores[2] > scores[4] > 0.02
    assert persistence[0] > 1.5 * persistence[4]


def test_rates_are_spread_like_operas(tally: Tally) -> None:
    _, mean, deviation = tally.rates()
    assert -0.7 < mean < 0.1 and 0.75 < deviation < 1.25


def test_bands_have_the_competitions_means_and_deviations() -> None:
    mean, deviation = measure_bands(100, 84, 2002)
    for index, band in enumerate(BANDS):
        assert abs(float(mean[index]) - band.mean) < 0.3 * band.deviation, band.name
        assert abs(float(deviation[index]) / band.deviation - 1) < 0.3, band.name
