"""Spectral efficiency as a whole: golden numbers, invariances, speed, refusals."""

from dataclasses import replace

import numpy as np
import pytest

from fewer.core.errors import UserError
from fewer.systems.cellfree.task.spectral.efficiency import (
    SCHEMES,
    Radio,
    Setup,
    assign_pilots,
    cooperation_clusters,
    local_scattering,
    spectral_efficiency,
)


def network(seed: int, phones: int, points: int) -> tuple[np.ndarray, np.ndarray]:
    """Gains and azimuths in the book's running example: 1 km with wrap-around, 10 m up, 4 dB shadowing."""
    rng = np.random.default_rng(seed)
    step = rng.uniform(0, 1000, (phones, 1, 2)) - rng.uniform(0, 1000, (1, points, 2))
    step = (step + 500) % 1000 - 500
    distance = np.sqrt((step**2).sum(axis=-1) + 100)
    gain = -30.5 - 36.7 * np.log10(distance) + 4 * rng.standard_normal((phones, points))
    return gain, np.arctan2(step[..., 1], step[..., 0])


def test_schemes_of_100_access_points_and_40_phones_rank_as_in_the_book():
    gain, azimuth = network(1, 40, 100)
    clusters = cooperation_clusters(gain, assign_pilots(gain, 10))
    correlation = local_scattering(azimuth, 4)
    medians = {}
    for scheme in SCHEMES:
        setup = Setup(scheme=scheme, realisations=50)
        found = spectral_efficiency(gain, clusters, setup=setup, correlation=correlation)
        medians[scheme] = np.median(found.uplink), np.median(found.downlink)
    for link in (0, 1):
        assert medians["mr"][link] < medians["lp-mmse"][link] < medians["p-mmse"][link]
    assert medians["p-mmse"][0] == pytest.approx(medians["mmse"][0], rel=0.03)
    golden = {"mr": (2.47695, 1.97111), "lp-mmse": (5.16679, 4.62820), "p-mmse": (7.31355, 6.24453)}
    for scheme, values in golden.items():
        assert medians[scheme] == pytest.approx(values, rel=1e-4)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_only_the_ratio_of_power_to_noise_counts(scheme: str):
    gain, _ = network(2, 6, 8)
    clusters = gain > np.sort(gain, axis=1)[:, [4]]
    setup = Setup(scheme=scheme, radio=Radio(antennas=2, pilot_symbols=3), realisations=10)
    louder = replace(setup.radio, uplink_mw=1000.0, downlink_mw=2000.0)
    one = spectral_efficiency(gain, clusters, setup=setup)
    other = spectral_efficiency(gain - 10, clusters, setup=replace(setup, radio=louder))
    np.testing.assert_allclose(one.uplink, other.uplink, rtol=1e-8)
    np.testing.assert_allclose(one.downlink, other.downlink, rtol=1e-8)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_renaming_phones_renames_their_rates(scheme: str):
    gain, _ = network(3, 7, 8)
    clusters = gain > np.sort(gain, axis=1)[:, [4]]
    setup = Setup(scheme=scheme, radio=Radio(antennas=2, pilot_symbols=3), realisations=10)
    pilots = assign_pilots(gain, 3)
    order = np.random.default_rng(0).permutation(7)
    one = spectral_efficiency(gain, clusters, setup=setup, pilots=pilots)
    other = spectral_efficiency(gain[order], clusters[order], setup=setup, pilots=pilots[order])
    np.testing.assert_allclose(one.uplink[order], other.uplink, rtol=1e-8)
    np.testing.assert_allclose(one.downlink[order], other.downlink, rtol=1e-8)


@pytest.mark.parametrize("scheme", ["lp-mmse", "p-mmse"])
def test_a_seed_fixes_the_rates_and_another_changes_them(scheme: str):
    gain, _ = network(4, 5, 6)
    clusters = np.ones_like(gain, dtype=bool)
    setup = Setup(scheme=scheme, realisations=5)
    one, same = (spectral_efficiency(gain, clusters, setup=setup).uplink for _ in range(2))
    other = spectral_efficiency(gain, clusters, setup=replace(setup, seed=1)).uplink
    np.testing.assert_array_equal(one, same)
    assert (one != other).all()


def test_a_lone_phone_at_one_antenna_gets_the_textbook_rate():
    radio = Radio(antennas=1, pilot_symbols=1, coherence_symbols=10)
    snr = 10 ** ((-90.0 - radio.noise_dbm) / 10) * 100
    gamma = snr * snr / (snr + 1)
    up = spectral_efficiency([[-90.0]], [[True]], setup=Setup(scheme="mr", radio=radio)).uplink
    assert up[0] == pytest.approx(0.9 * np.log2(1 + gamma / (snr + 1)))


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("gain", [[[-400.0]], [[0.0]], [[0.0, -400.0], [-400.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]])
def test_extreme_gains_give_finite_rates(gain: list[list[float]], scheme: str):
    clusters = np.ones((len(gain), len(gain[0])), dtype=bool)
    for control in ("full", "fractional"):
        radio = Radio(antennas=2, uplink_control=control)
        found = spectral_efficiency(gain, clusters, setup=Setup(scheme=scheme, radio=radio, realisations=5))
        assert np.isfinite(found.uplink).all() and (found.uplink >= 0).all()
        assert np.isfinite(found.downlink).all() and (found.downlink >= 0).all()


def test_noise_is_thermal_over_the_band_plus_the_figure():
    assert Radio().noise_dbm == pytest.approx(-174 + 73.0103 + 7, abs=1e-4)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("control", ["equal", "fractional"])
def test_reported_downlink_power_stays_within_every_access_point(scheme: str, control: str):
    gain, _ = network(5, 9, 6)
    clusters = gain > np.sort(gain, axis=1)[:, [2]]
    setup = Setup(scheme=scheme, radio=Radio(antennas=2, downlink_control=control), realisations=10)
    sent = spectral_efficiency(gain, clusters, setup=setup).downlink_mw
    assert (sent.sum(axis=0) <= 200 * (1 + 1e-9)).all()
    assert ((sent > 0) == clusters).all()


def test_fractional_uplink_lifts_the_weak_at_the_cost_of_the_strong():
    gain, _ = network(6, 20, 30)
    clusters = cooperation_clusters(gain, assign_pilots(gain, 10))
    full = spectral_efficiency(gain, clusters, setup=Setup(scheme="mr")).uplink
    evened = Radio(uplink_control="fractional", uplink_exponent=1.0)
    even = spectral_efficiency(gain, clusters, setup=Setup(scheme="mr", radio=evened)).uplink
    assert even.min() > full.min() and even.max() < full.max()


GAIN = np.array([[-80.0, -90.0], [-95.0, -85.0]])
BOTH = np.ones((2, 2), dtype=bool)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Radio(pilot_symbols=0), "pilot_symbols 0"),
        (lambda: Radio(pilot_symbols=200), "fewer pilots than symbols"),
        (lambda: Radio(antennas=0), "antennas 0"),
        (lambda: Radio(antennas=1.5), "whole number"),
        (lambda: Radio(uplink_mw=float("nan")), "uplink_mw nan"),
        (lambda: Radio(uplink_control="most"), "full, fractional"),
        (lambda: Radio(downlink_control="full"), "equal, fractional"),
        (lambda: Setup(scheme="zf"), "p-mmse"),
        (lambda: Setup(realisations=0), "realisations 0"),
        (lambda: Setup(most_phones=-1), "most_phones -1"),
        (lambda: spectral_efficiency([[np.nan, 1], [0, 0]], BOTH), "nan as the gain of phone 0 to access point 0"),
        (lambda: spectral_efficiency([[0, np.inf], [0, 0]], BOTH), "inf"),
        (lambda: spectral_efficiency(GAIN * 100, BOTH), "a gain of -9500 dB"),
        (lambda: spectral_efficiency(GAIN * [-1, 1], BOTH), "a gain of 95 dB"),
        (lambda: spectral_efficiency(GAIN[0], BOTH), "shape"),
        (lambda: spectral_efficiency(np.empty((0, 2)), np.empty((0, 2), dtype=bool)), "at least one"),
        (lambda: spectral_efficiency(GAIN, BOTH[:1]), "clusters of shape"),
        (lambda: spectral_efficiency(GAIN, [[True, True], [False, False]]), "no access point for phone 1"),
        (lambda: spectral_efficiency(GAIN, np.full((2, 2), 0.5)), "booleans"),
        (lambda: spectral_efficiency(GAIN, BOTH, pilots=[0, 10]), "0 to 9"),
        (lambda: spectral_efficiency(GAIN, BOTH, pilots=[0.0, 1.0]), "whole numbers"),
        (lambda: spectral_efficiency(GAIN, BOTH, correlation=np.eye(4)), "correlation of shape"),
    ],
)
def test_wrong_input_is_refused_in_one_line(call, words: str):
    with pytest.raises(UserError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)
