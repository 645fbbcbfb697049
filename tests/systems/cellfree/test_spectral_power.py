"""Power control: by hand, and never above any limit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewer.systems.cellfree.task.spectral.efficiency import Radio
from fewer.systems.cellfree.task.spectral.power import joint_downlink_power, local_downlink_power, uplink_power

CLUSTERS = np.array([[True, True, False], [False, True, False], [False, False, True]])
GAIN = np.array([[3.0, 1.0, 9.0], [7.0, 1.0, 7.0], [7.0, 7.0, 0.25]])


@st.composite
def networks(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gains, clusters, and how unit-power precoders spread over the servers."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = draw(st.integers(1, 12)), draw(st.integers(1, 6))
    gain = 10 ** rng.uniform(-4, 4, shape)
    clusters = rng.random(shape) < 0.4
    clusters[np.arange(shape[0]), gain.argmax(axis=1)] = True
    shares = np.where(clusters, rng.random(shape) ** 4 + 1e-3, 0.0)
    return gain, clusters, shares / shares.sum(axis=1, keepdims=True)


def test_full_power_is_what_the_radio_has():
    assert uplink_power(GAIN, CLUSTERS, Radio(uplink_mw=50)).tolist() == [50, 50, 50]


def test_fractional_uplink_power_by_hand():
    radio = Radio(uplink_control="fractional", uplink_exponent=0.5)
    # summed gains 4, 1 and 0.25; phones 0 and 1 share a server, phone 2 is alone
    np.testing.assert_allclose(uplink_power(GAIN, CLUSTERS, radio), [50, 100, 100])


@settings(deadline=None)  # machines are shared
@given(networks(), st.floats(-1, 1))
def test_no_phone_exceeds_its_power_and_one_in_each_neighbourhood_uses_it(network, exponent: float):
    gain, clusters, _ = network
    power = uplink_power(gain, clusters, Radio(uplink_control="fractional", uplink_exponent=exponent))
    assert (power <= 100 * (1 + 1e-9)).all() and (power > 0).all()
    assert power.max() == pytest.approx(100)


def test_shares_of_an_access_point_by_hand():
    even = local_downlink_power(GAIN, CLUSTERS, Radio(downlink_control="equal"))
    np.testing.assert_allclose(even, [[200, 100, 0], [0, 100, 0], [0, 0, 200]])
    gain = GAIN.copy()
    gain[1, 1] = 9.0
    by_gain = local_downlink_power(gain, CLUSTERS, Radio(downlink_control="fractional"))
    np.testing.assert_allclose(by_gain[:, 1], [50, 150, 0])


@settings(deadline=None)
@given(networks(), st.sampled_from(["equal", "fractional"]))
def test_an_access_point_that_serves_spends_exactly_its_power(network, control: str):
    gain, clusters, _ = network
    sent = local_downlink_power(gain, clusters, Radio(downlink_control=control))
    np.testing.assert_allclose(sent.sum(axis=0), 200.0 * clusters.any(axis=0))
    assert (sent[~clusters] == 0).all()


def test_joint_power_by_hand():
    shares = np.array([[0.75, 0.25, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    even = joint_downlink_power(GAIN, CLUSTERS, shares, Radio(downlink_control="equal"))
    np.testing.assert_allclose(even, [100, 100, 200])
    radio = Radio(downlink_control="fractional", downlink_exponent=-0.5, downlink_sharing=0.5)
    found = joint_downlink_power(GAIN, CLUSTERS, shares, radio)
    # s = 4, 1, 0.25 give s^v = 0.5, 1, 2; w = 0.75, 1, 1
    first = 0.5 * 0.75**-0.5
    busiest = 0.5 * 0.75**0.5 + 1
    np.testing.assert_allclose(found, [200 * first / busiest, 200 / busiest, 200])


@settings(deadline=None)
@given(
    networks(),
    st.sampled_from(["equal", "fractional"]),
    st.floats(-1, 1),
    st.floats(0, 1),
)
def test_joint_precoders_overload_no_access_point(network, control: str, exponent: float, sharing: float):
    gain, clusters, shares = network
    radio = Radio(downlink_control=control, downlink_exponent=exponent, downlink_sharing=sharing)
    power = joint_downlink_power(gain, clusters, shares, radio)
    assert (power > 0).all()
    assert (power @ shares <= 200 * (1 + 1e-9)).all()
