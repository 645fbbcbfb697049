"""Correlation matrices against other integrals; estimates against the estimator at work on drawn channels."""

import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.special import jv

from fewer.core.errors import UserError
from fewer.systems.cellfree.task.spectral.channels import (
    arrival_angles,
    channels,
    draw,
    local_scattering,
)
from tests.systems.cellfree.spectral_oracle import draw_with_truth


def by_bessel_series(azimuth: float, antennas: int, spread: float) -> np.ndarray:
    """E exp(i z sin(a + d)) = sum_q J_q(z) exp(i q a - q^2 s^2 / 2), the Jacobi-Anger expansion."""
    order = np.arange(-120, 121)
    turn = np.exp(1j * order * azimuth - (order * spread) ** 2 / 2)
    lag = np.arange(antennas)[:, None] - np.arange(antennas)
    return (jv(order, np.pi * lag[..., None]) * turn).sum(axis=-1)


@pytest.mark.parametrize("spread", [0.5, 15.0, 40.0, 120.0])
@pytest.mark.parametrize("antennas", [1, 4, 16])
def test_local_scattering_equals_the_bessel_series(spread: float, antennas: int):
    azimuth = np.array([[-2.9, -0.7], [0.0, 1.2]])
    ours = local_scattering(azimuth, antennas, spread_degrees=spread)
    for index in np.ndindex(2, 2):
        theirs = by_bessel_series(azimuth[index], antennas, np.deg2rad(spread))
        np.testing.assert_allclose(ours[index], theirs, atol=1e-9)


def test_local_scattering_in_two_angles_equals_the_double_integral():
    azimuth, elevation, spread, tilt = 0.6, -0.3, np.deg2rad(12), np.deg2rad(8)

    def density(e: float, a: float) -> float:
        return np.exp(-(a**2) / (2 * spread**2) - e**2 / (2 * tilt**2)) / (2 * np.pi * spread * tilt)

    def phase(e: float, a: float) -> float:
        return 2 * np.pi * 0.7 * 2 * np.sin(azimuth + a) * np.cos(elevation + e)

    bounds = (-6 * spread, 6 * spread, -6 * tilt, 6 * tilt)
    real, _ = dblquad(lambda e, a: np.cos(phase(e, a)) * density(e, a), *bounds)
    imaginary, _ = dblquad(lambda e, a: np.sin(phase(e, a)) * density(e, a), *bounds)
    ours = local_scattering(
        [[azimuth]],
        3,
        spread_degrees=12,
        elevation=[[elevation]],
        elevation_spread_degrees=8,
        spacing_wavelengths=0.7,
    )
    assert ours[0, 0, 2, 0] == pytest.approx(real + 1j * imaginary, abs=1e-7)


def test_correlations_are_positive_semidefinite_with_unit_diagonal():
    azimuth = np.random.default_rng(0).uniform(-np.pi, np.pi, (5, 6))
    matrices = local_scattering(azimuth, 8, spread_degrees=5)
    np.testing.assert_allclose(np.einsum("klnn->kln", matrices), 1, atol=1e-12)
    assert np.linalg.eigvalsh(matrices).min() > -1e-12


def test_without_spread_the_channel_is_one_plane_wave():
    matrix = local_scattering([[0.5]], 4, spread_degrees=0)[0, 0]
    steering = np.exp(1j * np.pi * np.arange(4) * np.sin(0.5))
    np.testing.assert_allclose(matrix, np.outer(steering, steering.conj()), atol=1e-12)


def test_angles_point_from_access_points_to_phones():
    angles = arrival_angles([[1.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 2.0]])
    np.testing.assert_allclose(angles, [[np.pi / 4, -np.pi / 4], [0, -np.pi / 2]])


def test_with_one_antenna_the_statistics_are_the_scalar_formulas():
    gain, pilots, energy = np.array([[2.0, 0.5], [1.0, 3.0], [0.2, 0.1]]), np.array([0, 1, 0]), 5.0
    found = channels(gain, pilots, pilot_energy=energy, antennas=1)
    for phone in range(3):
        for point in range(2):
            shared = gain[pilots == pilots[phone], point].sum()
            gamma = energy * gain[phone, point] ** 2 / (energy * shared + 1)
            assert found.estimated[point, phone, 0, 0].real == pytest.approx(gamma)
            assert found.error[point, phone, 0, 0].real == pytest.approx(gain[phone, point] - gamma)


@pytest.fixture(scope="module")
def correlated():
    rng = np.random.default_rng(5)
    gain = 10 ** rng.uniform(-1, 0.5, (4, 3))
    correlation = local_scattering(rng.uniform(-np.pi, np.pi, (4, 3)), 2, spread_degrees=20)
    return channels(gain, np.array([0, 1, 0, 1]), pilot_energy=2.0, antennas=2, correlation=correlation)


def covariance(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return np.einsum("rlkn,rlkm->lknm", left, right.conj()) / len(left)


def test_the_estimator_at_work_has_the_stated_covariances(correlated):
    truth, estimate = draw_with_truth(correlated, 20_000, seed=1)
    scale = np.abs(correlated.covariance).max()
    bound = 5 * scale / np.sqrt(20_000)
    np.testing.assert_allclose(covariance(truth, truth), correlated.covariance, atol=bound)
    np.testing.assert_allclose(covariance(estimate, estimate), correlated.estimated, atol=bound)
    np.testing.assert_allclose(covariance(truth - estimate, truth - estimate), correlated.error, atol=bound)
    # orthogonality principle: what an MMSE estimate misses is uncorrelated with it
    np.testing.assert_allclose(covariance(truth - estimate, estimate), 0, atol=bound)


def test_drawn_estimates_share_what_a_pilot_shares(correlated):
    (short,) = draw(correlated, 20_000, seed=2, block=20_000)
    _, long = draw_with_truth(correlated, 20_000, seed=3)
    bound = 7 * np.abs(correlated.estimated).max() / np.sqrt(20_000)
    for other in (1, 2):  # phone 2 shares the pilot of phone 0, phone 1 does not
        ours = np.einsum("rln,rlm->lnm", short[:, :, 0], short[:, :, other].conj()) / 20_000
        theirs = np.einsum("rln,rlm->lnm", long[:, :, 0], long[:, :, other].conj()) / 20_000
        np.testing.assert_allclose(ours, theirs, atol=bound)
        assert (np.abs(ours).max() > bound) == (other == 2)


@pytest.mark.parametrize("block", [1, 7, 100])
def test_the_size_of_a_block_changes_no_draw(correlated, block: int):
    parts = list(draw(correlated, 30, seed=4, block=block))
    (whole,) = draw(correlated, 30, seed=4, block=30)
    np.testing.assert_allclose(np.concatenate(parts), whole, rtol=0, atol=1e-13)
    assert len(parts) == -(-30 // block)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: local_scattering([[np.nan]], 2), "angles"),
        (lambda: local_scattering([[0.0]], 0), "0 antennas"),
        (lambda: local_scattering([[0.0]], 2, elevation=[0.0]), "shapes"),
        (lambda: channels(np.ones((1, 1)), np.array([0]), pilot_energy=1, antennas=2, correlation=np.eye(2)), "shape"),
        (
            lambda: channels(
                np.ones((1, 1)), np.array([0]), pilot_energy=1, antennas=2, correlation=[[[[1, 1], [0, 1]]]]
            ),
            "Hermitian",
        ),
    ],
)
def test_wrong_input_is_refused_in_one_line(call, words: str):
    with pytest.raises(UserError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)
