"""What predicted clusters cost and save."""

from dataclasses import replace

import numpy as np
import pytest

from fewer.core.errors import UserError
from fewer.systems.cellfree.task.spectral.efficiency import Radio, Setup, strongest_clusters
from fewer.systems.cellfree.task.spectral.report import Comparison, cdf, compare, pooled

QUICK = Setup(radio=Radio(antennas=2, pilot_symbols=4), realisations=20)


def gains(seed: int, phones: int = 12, points: int = 20) -> np.ndarray:
    rng = np.random.default_rng(seed)
    step = rng.uniform(0, 500, (phones, 1, 2)) - rng.uniform(0, 500, (1, points, 2))
    distance = np.sqrt((step**2).sum(axis=-1) + 100)
    return -30.5 - 36.7 * np.log10(distance) + 4 * rng.standard_normal((phones, points))


def test_the_ideal_clusters_lose_nothing():
    gain = gains(0)
    metrics = compare(gain, strongest_clusters(gain, np.full(12, 3)), setup=QUICK).metrics
    for link in ("uplink", "downlink"):
        for name in ("median", "likely95", "mean"):
            assert metrics[f"{link}_{name}_lost_percent"] == 0
            assert metrics[f"{link}_{name}_predicted"] == metrics[f"{link}_{name}_ideal"] > 0
    assert metrics["servers_agreeing_percent"] == 100


@pytest.mark.parametrize("scheme", ["mr", "lp-mmse", "p-mmse"])
def test_weak_servers_lose_much_against_as_many_strong_ones(scheme: str):
    gain = gains(1)
    sizes = np.arange(12) % 3 + 1
    weak = strongest_clusters(-gain, sizes)
    found = compare(gain, weak, setup=replace(QUICK, scheme=scheme))
    assert (found.servers_ideal == sizes).all() and (found.servers_predicted == sizes).all()
    assert found.metrics["uplink_median_lost_percent"] > 50
    assert found.metrics["downlink_median_lost_percent"] > 50
    assert found.metrics["servers_agreeing_percent"] == 0


def test_given_ideal_clusters_are_used():
    gain = gains(2)
    one, all_of_them = strongest_clusters(gain, np.full(12, 1)), np.ones_like(gain, dtype=bool)
    found = compare(gain, one, all_of_them, setup=QUICK)
    assert (found.servers_ideal == 20).all() and (found.servers_predicted == 1).all()
    assert found.metrics["uplink_mean_lost_percent"] > 10


def made(uplink: list[float], ideal: list[float], measured: list[int]) -> Comparison:
    count = len(uplink)
    rates = {"uplink_predicted": uplink, "uplink_ideal": ideal, "downlink_predicted": ideal, "downlink_ideal": ideal}
    ones = {name: np.ones(count, dtype=int) for name in ("servers_predicted", "servers_ideal", "servers_shared")}
    return Comparison(
        **{name: np.array(values) for name, values in rates.items()},
        **ones,
        measured=np.array(measured),
        measurable=np.full(count, 10),
    )


def test_figures_by_hand():
    metrics = made([1.0, 2.0, 9.0], [2.0, 4.0, 6.0], [3, 3, 6]).metrics
    assert metrics["uplink_median_predicted"] == 2 and metrics["uplink_median_ideal"] == 4
    assert metrics["uplink_median_lost_percent"] == 50
    assert metrics["uplink_mean_lost_percent"] == 0
    assert metrics["uplink_lost_percent_of_median_phone"] == 50
    # the 5 % quantile lies a tenth of the way from the worst to the median
    assert metrics["uplink_likely95_predicted"] == pytest.approx(1.1)
    assert metrics["uplink_likely95_lost_percent"] == pytest.approx(50)
    assert metrics["measurements_per_phone"] == 4
    assert metrics["measurements_saved_per_phone"] == 6
    assert metrics["measurements_saved_percent"] == pytest.approx(60)


def test_pooled_drops_are_one_population():
    both = pooled([made([1.0], [2.0], [3]), made([2.0, 9.0], [4.0, 6.0], [3, 6])])
    assert both.metrics == made([1.0, 2.0, 9.0], [2.0, 4.0, 6.0], [3, 3, 6]).metrics


def test_a_distribution_rises_to_one():
    values, share = cdf([3.0, 1.0, 2.0, 2.0])
    assert values.tolist() == [1, 2, 2, 3] and share.tolist() == [0.25, 0.5, 0.75, 1]
    found = compare(gains(3), strongest_clusters(gains(3), np.full(12, 2)), setup=QUICK).cdfs
    assert set(found) == {"uplink_predicted", "uplink_ideal", "downlink_predicted", "downlink_ideal"}
    assert all((np.diff(rates) >= 0).all() and shares[-1] == 1 for rates, shares in found.values())


def test_a_limit_of_phones_holds_on_both_sides():
    gain = gains(4)
    gain[:, 0] += 60  # everyone's favourite
    found = compare(gain, strongest_clusters(gain, np.full(12, 2)), setup=replace(QUICK, most_phones=4))
    assert found.servers_predicted.min() >= 1
    assert found.servers_predicted.sum() < 24
    assert (found.servers_predicted == found.servers_ideal).all()


GAIN = gains(5)
FINE = strongest_clusters(GAIN, np.full(12, 2))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: compare(GAIN, FINE[:, :-1], setup=QUICK), "predicted clusters of shape"),
        (lambda: compare(GAIN, FINE, FINE[:-1], setup=QUICK), "ideal clusters of shape"),
        (lambda: compare(GAIN, FINE & (np.arange(12) != 3)[:, None], setup=QUICK), "no access point for phone 3"),
        (lambda: compare(np.where(FINE, np.nan, GAIN), FINE, setup=QUICK), "nan"),
        (lambda: compare(GAIN, FINE, setup=QUICK, measured=21), "0 to 20"),
        (lambda: compare(GAIN, FINE, setup=QUICK, measured=[3, 3]), "measured"),
        (lambda: compare(GAIN, FINE, setup=QUICK, measured=2.5), "whole number"),
        (lambda: pooled([]), "at least one"),
    ],
)
def test_wrong_input_is_refused_in_one_line(call, words: str):
    with pytest.raises(UserError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)
