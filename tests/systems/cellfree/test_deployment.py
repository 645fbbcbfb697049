"""Access points, path loss, shadowing and what phones report."""

from dataclasses import replace

import numpy as np
import pytest

from fewer.core.errors import UserError
from fewer.systems.cellfree.task.clusters import closest
from fewer.systems.cellfree.task.settings import Settings
from fewer.systems.cellfree.task.statistics import network_statistics
from fewer.systems.cellfree.task.survey import World
from fewer.systems.cellfree.task.world.deployment import Deployment
from fewer.systems.cellfree.task.world.placement import PLACEMENT_RULES
from fewer.systems.cellfree.task.world.shadowing import SpectralShadows, fft_maps, row_maps

SMALL = Settings(access_points=30, side_m=500.0, candidates=8, train_phones=300, test_phones=200)


def map_covariance(maps: np.ndarray, lags: tuple[int, ...]) -> dict[int, tuple[float, float]]:
    """Covariance at each lag along rows and along columns, averaged over maps and places."""
    found = {}
    for lag in lags:
        across = maps[:, :, lag:] * maps[:, :, : maps.shape[2] - lag]
        down = maps[:, lag:] * maps[:, : maps.shape[1] - lag]
        found[lag] = float(across.mean(dtype=np.float64)), float(down.mean(dtype=np.float64))
    return found


def test_path_loss_is_the_papers_equation_5():
    deployment = Deployment.simulate(replace(SMALL, shadowing_db=0.0))
    place = deployment.access_points[:1] + [300.0, 400.0]
    expected = -148.1 - 37.6 * np.log10(np.hypot(500.0, 10.0) / 1000)
    assert deployment.gain_db(place)[0, 0] == pytest.approx(expected)


def test_wrapping_makes_far_edges_neighbours():
    settings = replace(SMALL, shadowing_db=0.0, wrap=True)
    deployment = Deployment.simulate(settings)
    moved = (deployment.access_points[:1] + [490.0, 0.0]) % 500.0
    expected = -148.1 - 37.6 * np.log10(np.hypot(10.0, 10.0) / 1000)
    assert deployment.gain_db(moved)[0, 0] == pytest.approx(expected)


@pytest.mark.parametrize("rule", PLACEMENT_RULES)
def test_every_placement_stays_inside_the_area(rule):
    places = PLACEMENT_RULES[rule](np.random.default_rng(0), 64, 300.0)
    assert places.shape[1] == 2
    assert (places >= 0).all() and (places <= 300).all()
    assert rule == "poisson" or len(places) == 64


@pytest.mark.parametrize("wrap", [False, True])
def test_fft_maps_have_the_wanted_correlation_in_both_directions(wrap):
    maps = fft_maps(np.random.default_rng(1), 60, 100, decorrelation_px=4.0, wrap=wrap)
    for lag, (across, down) in map_covariance(maps, (0, 1, 4, 10)).items():
        assert across == pytest.approx(np.exp(-lag / 4), abs=0.03)
        assert down == pytest.approx(np.exp(-lag / 4), abs=0.03)


@pytest.mark.parametrize(("neighbours", "lag4"), [(4, 0.30), (8, 0.29), (12, 0.29)])
def test_row_maps_lose_correlation_along_rows_as_published_code_does(neighbours, lag4):
    maps = row_maps(np.random.default_rng(1), 40, 80, decorrelation_px=4.0, neighbours=neighbours)
    across, down = map_covariance(maps, (4,))[4]
    assert maps.std() == pytest.approx(1.0, abs=0.02)
    assert across == pytest.approx(lag4, abs=0.04)
    assert down > across  # the method is not isotropic


def test_spectral_fields_have_the_wanted_correlation_and_the_same_value_at_the_same_place():
    fields = SpectralShadows.draw(np.random.default_rng(0), 300, decorrelation_m=20.0)
    places = np.random.default_rng(1).uniform(0, 500, (400, 2))
    here = fields.at(places)
    assert np.array_equal(here, fields.at(places))
    for lag in (0.0, 5.0, 20.0, 50.0):
        found = (here * fields.at(places + [lag, 0.0])).mean()
        assert found == pytest.approx(np.exp(-lag / 20), abs=0.04)
    links = np.random.default_rng(2).integers(0, 300, (400, 5))
    assert fields.at(places, links) == pytest.approx(np.take_along_axis(here, links, axis=1), abs=1e-5)


def test_access_points_share_as_much_shadowing_as_asked():
    deployment = Deployment.simulate(replace(SMALL, access_points=60, site_correlation=0.5, decorrelation_m=10.0))
    shadows = deployment.radio.shadows.at(deployment.phones(4000, part="x"))
    between = np.corrcoef(shadows.T)[np.triu_indices(60, 1)].mean()
    assert between == pytest.approx(0.5, abs=0.06)
    assert shadows.std() == pytest.approx(8.0, abs=0.5)


def test_ten_thousand_access_points_fit_in_little_memory():
    settings = Settings(access_points=10_000, side_m=10_000.0, shadowing="spectral")
    deployment = Deployment.simulate(settings)
    near, gain = deployment.audible(deployment.phones(50, part="x"))
    assert deployment.radio.shadows.amplitudes.nbytes < 1e8
    assert gain.shape == near.shape == (50, 64)
    with pytest.raises(UserError, match="spectral"):
        Deployment.simulate(replace(settings, shadowing="fft"))


def test_the_papers_statistics_are_within_two_spreads():
    found = []
    for seed in range(6):
        world = World.make(Settings(deployment_seed=200 + seed))
        found.append(network_statistics(world.survey(500, part="s"), 10.0))
    for name, paper in (("ignored", 0.16), ("power_share", 0.85), ("closest", 0.42), ("closest_three", 0.33)):
        values = np.array([one[name] for one in found])
        assert abs(values.mean() - paper) < 2 * values.std(ddof=1), name


def test_learned_candidates_ignore_a_quarter_fewer_positives():
    settings = Settings(deployment_seed=201)
    world = World.make(settings)
    better = world.with_learned_candidates()
    ignored = [network_statistics(w.survey(2000, part="s"), 10.0)["ignored"] for w in (world, better)]
    assert ignored[1] < 0.75 * ignored[0]
    assert (better.clusters.candidates[:, 0] == np.arange(100)).all()
    assert all(len(set(row)) == 11 for row in better.clusters.candidates.tolist())


def test_reports_have_their_error_resolution_and_gaps():
    exact = World.make(SMALL).survey(2000, part="r")
    world = World.make(replace(SMALL, error_db=2.0, quantum_db=1.0, missing=0.3, stale=0.2))
    noisy = world.survey(2000, part="r")
    assert np.array_equal(exact.phones, noisy.phones)
    assert noisy.reported[:, 0].all()
    assert noisy.reported[:, 1:].mean() == pytest.approx(0.7, abs=0.03)
    assert (noisy.rsrp_db == np.round(noisy.rsrp_db)).all()
    only_error = World.make(replace(SMALL, error_db=2.0)).survey(2000, part="r")
    assert (only_error.rsrp_db - exact.rsrp_db).std() == pytest.approx(2.0, abs=0.1)


def test_the_master_is_the_strongest_and_its_gap_is_zero():
    survey = World.make(SMALL).survey(500, part="m")
    assert (survey.gap_db[:, 0] == 0).all()
    assert (survey.gap_db >= 0).all()
    assert (survey.serving >= survey.serves(10.0).sum(axis=1)).all()


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"candidates": 30}, "candidates"),
        ({"access_points": 1}, "access_points"),
        ({"measured": 0}, "measured"),
        ({"error_db": float("nan")}, "error_db"),
        ({"placement": "hexagonal"}, "placement"),
        ({"measured": 9, "candidates": 7}, "measured"),
    ],
)
def test_wrong_settings_are_refused_in_one_line(changes, word):
    with pytest.raises(UserError, match=word) as caught:
        replace(SMALL, **changes)
    assert "\n" not in str(caught.value)


def test_duplicate_or_missing_positions_are_refused():
    deployment = Deployment.simulate(SMALL)
    twice = deployment.access_points.copy()
    twice[7] = twice[3]
    for wrong, word in ((twice, "3 and 7"), (twice[:1], "1 access point"), (np.full((4, 2), np.nan), "NaN")):
        with pytest.raises(UserError, match=word):
            Deployment(wrong, 10.0, 500.0, deployment.radio)
    with pytest.raises(UserError, match="candidates"):
        closest(deployment, 30, 3)
