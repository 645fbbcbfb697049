"""Pilots and clusters: by hand, and what holds for any gains."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewer.core.errors import UserError
from fewer.systems.cellfree.task.spectral.efficiency import (
    assign_pilots,
    cooperation_clusters,
    limit_load,
    strongest_clusters,
)


@st.composite
def networks(draw: st.DrawFn) -> np.ndarray:
    """Gains on a coarse grid, so that ties are common."""
    phones, points = draw(st.integers(1, 12)), draw(st.integers(1, 8))
    cells = draw(st.lists(st.integers(-12, -6), min_size=phones * points, max_size=phones * points))
    return 10.0 * np.array(cells).reshape(phones, points)


def test_a_pilot_is_shared_with_the_phone_the_master_hears_least():
    gain = np.array([[-80, -110, -120], [-120, -80, -100], [-90, -100, -120], [-75, -100, -120]], dtype=float)
    # the fourth phone's master is access point 0, which hears phone 1 least
    assert assign_pilots(gain, 3).tolist() == [0, 1, 2, 1]


def test_contamination_adds_up_over_the_phones_of_a_pilot():
    gain = np.array([[-90.0], [-92.0], [-92.0], [-80.0]])
    # two phones at -92 dB on pilot 1 are 1 dB louder than one at -90 dB on pilot 0
    assert assign_pilots(gain, 2).tolist() == [0, 1, 1, 0]


@settings(deadline=None)  # machines are shared
@given(networks(), st.integers(1, 6))
def test_the_first_phones_get_orthogonal_pilots(gain: np.ndarray, symbols: int):
    pilots = assign_pilots(gain, symbols)
    first = pilots[:symbols]
    assert len(set(first.tolist())) == len(first)
    assert pilots.min() >= 0 and pilots.max() < symbols


def test_an_access_point_serves_the_best_heard_phone_of_each_pilot():
    gain = np.array([[-80.0, -100.0, -95.0], [-100.0, -80.0, -90.0], [-99.0, -70.0, -120.0]])
    clusters = cooperation_clusters(gain, np.array([0, 0, 1]))
    expected = [[True, False, False], [False, True, True], [True, True, True]]
    assert clusters.tolist() == expected


def test_a_master_keeps_its_phone_from_a_better_heard_one_on_the_same_pilot():
    # access point 0 hears phone 1 better, but is the strongest that phone 0 has
    gain = np.array([[-90.0, -100.0], [-85.0, -80.0]])
    assert cooperation_clusters(gain, np.array([0, 0])).tolist() == [[True, False], [False, True]]


@settings(deadline=None)
@given(networks(), st.integers(1, 6))
def test_masters_serve_and_pilots_stay_apart_but_for_masters(gain: np.ndarray, symbols: int):
    pilots = assign_pilots(gain, symbols)
    clusters = cooperation_clusters(gain, pilots)
    master = gain.argmax(axis=1)
    assert clusters[np.arange(len(gain)), master].all()
    others = clusters & (np.arange(gain.shape[1]) != master[:, None])
    for pilot in range(symbols):
        of_pilot = pilots == pilot
        assert (others[of_pilot].sum(axis=0) <= 1).all()
        if of_pilot.any():
            assert clusters[of_pilot].any(axis=0).all()  # no access point stays idle on a pilot in use


def test_a_threshold_keeps_far_access_points_out():
    gain = np.array([[-80.0, -95.0, -130.0]])
    assert cooperation_clusters(gain, np.array([0]), threshold_db=40).tolist() == [[True, True, False]]


@settings(deadline=None)
@given(networks(), st.data())
def test_strongest_clusters_have_the_sizes_asked_and_leave_nothing_stronger_out(gain: np.ndarray, data: st.DataObject):
    sizes = np.array(data.draw(st.lists(st.integers(1, gain.shape[1]), min_size=len(gain), max_size=len(gain))))
    clusters = strongest_clusters(gain, sizes)
    assert (clusters.sum(axis=1) == sizes).all()
    weakest_in = np.where(clusters, gain, np.inf).min(axis=1)
    strongest_out = np.where(clusters, -np.inf, gain).max(axis=1)
    assert (weakest_in >= strongest_out).all()


@settings(deadline=None)
@given(networks(), st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_a_load_limit_holds_and_leaves_nobody_out(gain: np.ndarray, seed: int, spare: int):
    phones, points = gain.shape
    clusters = np.random.default_rng(seed).random(gain.shape) < 0.5
    clusters[np.arange(phones), gain.argmax(axis=1)] = True
    most = -(-phones // points) + spare - 1
    limited = limit_load(gain, clusters, most)
    assert limited.sum(axis=0).max() <= most
    assert limited.any(axis=1).all()
    if clusters.sum(axis=0).max() <= most:
        assert (limited == clusters).all()
    # only a phone whose servers are all full goes elsewhere, and to one access point
    moved = (limited & ~clusters).any(axis=1)
    assert (limited[moved].sum(axis=1) == 1).all()
    assert not (limited[~moved] & ~clusters[~moved]).any()


def test_a_full_access_point_keeps_the_best_heard():
    gain = np.array([[-80.0, -100.0], [-85.0, -100.0], [-90.0, -70.0]])
    limited = limit_load(gain, np.ones((3, 2), dtype=bool), 2)
    assert limited[:, 0].tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: assign_pilots(np.zeros((3, 2)), 0), "pilot length of 0"),
        (lambda: assign_pilots(np.zeros(3), 1), "shape"),
        (lambda: cooperation_clusters(np.zeros((3, 2)), [0, 1]), "pilots"),
        (lambda: cooperation_clusters(np.zeros((3, 2)), [0, 1, -1]), "-1"),
        (lambda: cooperation_clusters(np.zeros((1, 2)), [0], threshold_db=-1), "threshold"),
        (lambda: strongest_clusters(np.zeros((2, 2)), [1, 3]), "1 to 3"),
        (lambda: strongest_clusters(np.zeros((2, 2)), [1]), "sizes"),
        (lambda: limit_load(np.zeros((3, 1)), np.ones((3, 1), dtype=bool), 2), "at least 3"),
    ],
)
def test_wrong_input_is_refused_in_one_line(call, words: str):
    with pytest.raises(UserError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)
