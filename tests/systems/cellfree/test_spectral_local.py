"""MR against closed forms written out by hand; MR and LP-MMSE against simulation from the definitions."""

from dataclasses import replace

import numpy as np
import pytest

from fewer.systems.cellfree.task.spectral.channels import draw
from fewer.systems.cellfree.task.spectral.combining import partners
from fewer.systems.cellfree.task.spectral.efficiency import spectral_efficiency

from .spectral_oracle import Scene, combiners, downlink_bits, gathered, missed_power, scene, simulated, uplink_bits


def literal_uncorrelated(view: Scene, sent_mw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ngo et al. (2017), eqs. (24) and (27), with N antennas and clusters; milliwatts over unit noise."""
    beta, pilots, served = view.gain, view.pilots, view.clusters
    antennas, power = view.radio.antennas, view.radio.uplink_mw
    energy = power * view.radio.pilot_symbols
    phones = len(beta)
    same = pilots[:, None] == pilots
    gamma = energy * beta**2 / (energy * same @ beta + 1)
    up, down = np.zeros(phones), np.zeros(phones)
    for k in range(phones):
        m = served[k]
        signal = power * (antennas * gamma[k, m].sum()) ** 2
        noise = antennas * gamma[k, m].sum()
        for i in range(phones):
            noise += power * antennas * (gamma[k, m] * beta[i, m]).sum()
            if i != k and same[i, k]:
                noise += power * (antennas * (gamma[k, m] * beta[i, m] / beta[k, m]).sum()) ** 2
        up[k] = np.log2(1 + signal / noise)
        signal = antennas * np.sqrt(sent_mw[k, m] * gamma[k, m]).sum() ** 2
        noise = 1.0
        for i in range(phones):
            m = served[i]
            noise += (sent_mw[i, m] * beta[k, m]).sum()
            if i != k and same[i, k]:
                noise += antennas * (np.sqrt(sent_mw[i, m] * gamma[i, m]) * beta[k, m] / beta[i, m]).sum() ** 2
        down[k] = np.log2(1 + signal / noise)
    return view.radio.data_share * up, view.radio.data_share * down


def literal_correlated(view: Scene, sent_mw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same with matrices: traces of R_i Psi^-1 R_k, from the gains and correlations alone."""
    pilots, served, power = view.pilots, view.clusters, view.radio.uplink_mw
    energy = power * view.radio.pilot_symbols
    phones, points = view.gain.shape
    covariance = view.gain[..., None, None] * view.correlation
    cross = np.zeros((phones, phones, points), dtype=complex)  # E v_k^H h_i
    spread = np.zeros((phones, phones, points))  # its variance
    for k in range(phones):
        for point in range(points):
            psi = energy * covariance[pilots == pilots[k], point].sum(axis=0) + np.eye(view.radio.antennas)
            own = covariance[k, point] @ np.linalg.inv(psi)
            for i in range(phones):
                spread[k, i, point] = energy * np.trace(own @ covariance[k, point] @ covariance[i, point]).real
                if pilots[i] == pilots[k]:
                    cross[k, i, point] = energy * np.trace(
                        covariance[i, point] @ np.linalg.inv(psi) @ covariance[k, point]
                    )
    up, down = np.zeros(phones), np.zeros(phones)
    size = np.einsum("kkl->kl", cross).real
    for k in range(phones):
        m = served[k]
        total = size[k, m].sum()
        for i in range(phones):
            total += power * (abs(cross[k, i, m].sum()) ** 2 + spread[k, i, m].sum())
        signal = power * size[k, m].sum() ** 2
        up[k] = np.log2(1 + signal / (total - signal))
        arriving = 1.0
        for i in range(phones):
            m = served[i]
            scale = np.sqrt(sent_mw[i, m] / size[i, m])
            arriving += abs((scale * cross[i, k, m]).sum()) ** 2 + (scale**2 * spread[i, k, m]).sum()
        m = served[k]
        signal = np.sqrt(sent_mw[k, m] * size[k, m]).sum() ** 2
        down[k] = np.log2(1 + signal / (arriving - signal))
    return view.radio.data_share * up, view.radio.data_share * down


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("antennas", [1, 3])
def test_mr_is_the_published_closed_form_for_independent_antennas(antennas: int, seed: int):
    view = scene(antennas, seed=seed, weighting="none")
    found = spectral_efficiency(view.gain_db, view.clusters, setup=view.setup("mr"))
    up, down = literal_uncorrelated(view, found.downlink_mw)
    np.testing.assert_allclose(found.uplink, up, rtol=1e-9)
    np.testing.assert_allclose(found.downlink, down, rtol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_mr_is_the_closed_form_for_correlated_antennas(seed: int):
    view = scene(3, correlated=True, seed=seed, weighting="none")
    found = spectral_efficiency(view.gain_db, view.clusters, setup=view.setup("mr"), correlation=view.correlation)
    up, down = literal_correlated(view, found.downlink_mw)
    np.testing.assert_allclose(found.uplink, up, rtol=1e-9)
    np.testing.assert_allclose(found.downlink, down, rtol=1e-9)


@pytest.mark.parametrize("weighting", ["none", "n-opt", "opt"])
@pytest.mark.parametrize(("antennas", "correlated"), [(1, False), (3, False), (3, True)])
def test_closed_form_mr_agrees_with_simulated_channels(antennas: int, correlated: bool, weighting: str):
    view = scene(antennas, correlated=correlated, seed=1, weighting=weighting)
    exact = spectral_efficiency(view.gain_db, view.clusters, setup=view.setup("mr"), correlation=view.correlation)
    value, error = simulated(view, "mr", exact.downlink_mw, draws=2500, seed=2)
    ours = np.stack([exact.uplink, exact.downlink])
    assert (np.abs(ours - value) < 4.5 * error + 1e-3).all()
    assert (error < 0.05 * ours + 0.01).all()


@pytest.mark.parametrize(("antennas", "correlated"), [(1, False), (2, True)])
def test_drawn_mr_converges_to_closed_form(antennas: int, correlated: bool):
    view = scene(antennas, correlated=correlated, seed=3, weighting="none")

    def bits(closed: bool, seed: int) -> np.ndarray:
        setup = replace(view.setup("mr", realisations=1000, seed=seed), closed_form=closed)
        found = spectral_efficiency(view.gain_db, view.clusters, setup=setup, correlation=view.correlation)
        return np.stack([found.uplink, found.downlink])

    drawn = np.stack([bits(False, seed) for seed in range(16)])
    error = drawn.std(axis=0, ddof=1) / 4
    assert (np.abs(drawn.mean(axis=0) - bits(True, 0)) < 4.5 * error + 2e-3).all()


@pytest.mark.parametrize("weighting", ["none", "n-opt"])
@pytest.mark.parametrize(("antennas", "correlated"), [(1, False), (3, True)])
def test_lp_mmse_agrees_with_simulated_channels(antennas: int, correlated: bool, weighting: str):
    view = scene(antennas, correlated=correlated, seed=4, weighting=weighting)
    setup = view.setup("lp-mmse", realisations=2500, seed=9)
    found = spectral_efficiency(view.gain_db, view.clusters, setup=setup, correlation=view.correlation)
    value, error = simulated(view, "lp-mmse", found.downlink_mw, draws=2500, seed=5)
    ours = np.stack([found.uplink, found.downlink])
    # both sides are drawn: the errors add
    assert (np.abs(ours - value) < 4.5 * np.sqrt(2) * error + 1e-3).all()
    assert (error < 0.05 * ours + 0.01).all()


@pytest.mark.parametrize("scheme", ["mr", "lp-mmse"])
@pytest.mark.parametrize("weighting", ["none", "n-opt", "opt"])
def test_drawn_rates_follow_the_definition_draw_by_draw(scheme: str, weighting: str):
    view = scene(3, correlated=True, seed=8, weighting=weighting, density=0.3)
    assert not partners(view.clusters).all()  # else n-opt would be opt
    setup = replace(view.setup(scheme, realisations=60, seed=3), closed_form=False)
    found = spectral_efficiency(view.gain_db, view.clusters, setup=setup, correlation=view.correlation)
    (estimate,) = draw(view.channels, 60, seed=3)
    vectors = combiners(view, estimate, scheme)
    products, missed = gathered(vectors, estimate), missed_power(view, vectors)
    np.testing.assert_allclose(found.uplink, uplink_bits(view, products, vectors, missed), rtol=1e-9)
    down = downlink_bits(view, products, vectors, found.downlink_mw, missed)
    np.testing.assert_allclose(found.downlink, down, rtol=1e-9)


@pytest.mark.parametrize("scheme", ["mr", "lp-mmse"])
def test_no_weights_beat_the_optimal_ones(scheme: str):
    bits = {}
    for weighting in ("opt", "n-opt", "none"):
        view = scene(2, correlated=True, seed=6, weighting=weighting)
        setup = view.setup(scheme, realisations=200)
        bits[weighting] = spectral_efficiency(view.gain_db, view.clusters, setup=setup).uplink
    assert (bits["opt"] >= bits["n-opt"] - 1e-9).all()
    assert (bits["opt"] >= bits["none"] - 1e-9).all()
    assert (bits["opt"] > bits["none"] + 0.01).any()


def test_blocks_of_realisations_change_nothing(monkeypatch: pytest.MonkeyPatch):
    view = scene(2, seed=7)
    for scheme in ("lp-mmse", "p-mmse"):
        setup = view.setup(scheme, realisations=50)
        whole = spectral_efficiency(view.gain_db, view.clusters, setup=setup)
        with monkeypatch.context() as patch:
            patch.setattr("fewer.systems.cellfree.task.spectral.channels._DRAWN_AT_ONCE", 7 * 5 * 4 * 2)
            patch.setattr("fewer.systems.cellfree.task.spectral.combining._GATHERED_AT_ONCE", 1)
            parts = spectral_efficiency(view.gain_db, view.clusters, setup=setup)
        np.testing.assert_allclose(parts.uplink, whole.uplink, rtol=1e-10)
        np.testing.assert_allclose(parts.downlink, whole.downlink, rtol=1e-10)
