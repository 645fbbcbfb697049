"""P-MMSE and MMSE: combiners by the definition, rates from simulated channels, and what must hold between them."""

import numpy as np
import pytest

from fewer.systems.cellfree.task.spectral import combining as spectral_combining
from fewer.systems.cellfree.task.spectral.channels import draw
from fewer.systems.cellfree.task.spectral.efficiency import spectral_efficiency

from .spectral_oracle import Scene, combiners, downlink_bits, gathered, missed_power, scene, simulated


def instantaneous_bits(view: Scene, estimate: np.ndarray, scheme: str) -> np.ndarray:
    """Uplink rates when the receiver knows the estimates, term by term."""
    vectors = combiners(view, estimate, scheme)
    products = gathered(vectors, estimate).sum(axis=-1)  # (R, K, K)
    power, error = view.radio.uplink_mw, view.channels.error
    bits = np.zeros(len(view.gain_db))
    for phone in range(len(bits)):
        signal = power * np.abs(products[:, phone, phone]) ** 2
        v = vectors[:, phone]
        noise = (np.abs(v) ** 2).sum(axis=(1, 2)) - signal
        for other in range(len(bits)):
            noise = noise + power * np.abs(products[:, phone, other]) ** 2
            noise = noise + power * np.einsum("rln,lnp,rlp->r", v.conj(), error[:, other], v).real
        bits[phone] = np.log2(1 + signal / noise).mean()
    return view.radio.data_share * bits


@pytest.mark.parametrize("scheme", ["p-mmse", "mmse"])
@pytest.mark.parametrize(("antennas", "correlated"), [(1, False), (3, True)])
def test_uplink_rates_follow_the_definition_draw_by_draw(scheme: str, antennas: int, correlated: bool):
    view = scene(antennas, correlated=correlated, seed=8, density=0.2)
    setup = view.setup(scheme, realisations=40, seed=3)
    found = spectral_efficiency(view.gain_db, view.clusters, setup=setup, correlation=view.correlation)
    (estimate,) = draw(view.channels, 40, seed=3)
    assert not spectral_combining.partners(view.clusters).all()  # else p-mmse would be mmse
    np.testing.assert_allclose(found.uplink, instantaneous_bits(view, estimate, scheme), rtol=1e-9)


@pytest.mark.parametrize("scheme", ["p-mmse", "mmse"])
def test_downlink_rates_agree_with_simulated_channels(scheme: str):
    view = scene(2, correlated=True, seed=9)
    setup = view.setup(scheme, realisations=2500, seed=4)
    found = spectral_efficiency(view.gain_db, view.clusters, setup=setup, correlation=view.correlation)
    value, error = simulated(view, scheme, found.downlink_mw, draws=2500, seed=5)
    assert (np.abs(found.downlink - value[1]) < 4.5 * np.sqrt(2) * error[1] + 1e-3).all()
    assert (error[1] < 0.05 * found.downlink + 0.01).all()


def test_no_linear_combiner_beats_mmse_and_nulling_fewer_costs():
    view = scene(2, seed=10)
    rates = {
        scheme: spectral_efficiency(view.gain_db, view.clusters, setup=view.setup(scheme, realisations=60)).uplink
        for scheme in ("p-mmse", "mmse")
    }
    assert (rates["mmse"] >= rates["p-mmse"] - 1e-9).all()
    (estimate,) = draw(view.channels, 60, seed=0)
    for scheme in ("mr", "lp-mmse"):
        assert (rates["mmse"] >= instantaneous_bits(view, estimate, scheme) - 1e-9).all()


def test_p_mmse_is_mmse_when_everyone_shares_a_server():
    view = scene(2, seed=11)
    everyone = np.ones_like(view.clusters)
    partial, full = (
        spectral_efficiency(view.gain_db, everyone, setup=view.setup(scheme, realisations=20))
        for scheme in ("p-mmse", "mmse")
    )
    np.testing.assert_allclose(partial.uplink, full.uplink, rtol=1e-12)
    np.testing.assert_allclose(partial.downlink, full.downlink, rtol=1e-12)


def test_the_two_systems_have_one_solution():
    rng = np.random.default_rng(12)
    view = scene(3, correlated=True, seed=12)
    (estimate,) = draw(view.channels, 6, seed=1)
    for group in spectral_combining.groups(view.clusters, 3, 6):
        count, size = group.points.shape
        signals = group.heard(estimate).transpose(0, 1, 3, 2, 4).reshape(6, count, 5, size * 3)
        weight = rng.uniform(1, 100, (count, 5)) * (rng.random((count, 5)) < 0.7)
        weight[np.arange(count), group.phones] = 50.0
        blocks = np.einsum("gk,gmknp->gmnp", weight, view.channels.error[group.points]) + np.eye(3)
        one = spectral_combining._by_antennas(signals, blocks, group, weight)
        other = spectral_combining._by_phones(signals, blocks, group, weight)
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-12 * np.abs(one).max())


def test_with_one_server_each_p_mmse_sends_what_lp_mmse_sends():
    view = scene(3, correlated=True, seed=13)
    single = view.gain_db == view.gain_db.max(axis=1, keepdims=True)
    view = Scene(view.gain_db, single, view.correlation, view.radio)
    (estimate,) = draw(view.channels, 500, seed=6)
    found = spectral_efficiency(
        view.gain_db, single, setup=view.setup("p-mmse", realisations=500, seed=6), correlation=view.correlation
    )
    vectors = combiners(view, estimate, "lp-mmse")
    missed = missed_power(view, vectors)
    expected = downlink_bits(view, gathered(vectors, estimate), vectors, found.downlink_mw, missed)
    np.testing.assert_allclose(found.downlink, expected, rtol=1e-9)
