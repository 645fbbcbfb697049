"""Selectors under one interface, the ceiling, measured environments, moving phones and pictures."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from fewer.core.errors import UserError
from fewer.systems.cellfree.maps import map_of
from fewer.systems.cellfree.picture import draw
from fewer.systems.cellfree.task.selectors.boosting import Boosting
from fewer.systems.cellfree.task.selectors.ceiling import Ceiling, ceiling_table, closeness
from fewer.systems.cellfree.task.selectors.kriging import Kriging
from fewer.systems.cellfree.task.selectors.particles import Bayes, Fingerprint
from fewer.systems.cellfree.task.selectors.reporting import Reporting
from fewer.systems.cellfree.task.selectors.selector import Frequency, Nearest, at_most
from fewer.systems.cellfree.task.settings import Settings
from fewer.systems.cellfree.task.statistics import average_precision, calibration_error, metrics, roc_area
from fewer.systems.cellfree.task.survey import Survey, World
from fewer.systems.cellfree.task.world.deployment import Deployment

SMALL = Settings(access_points=25, side_m=500.0, candidates=8, train_phones=1500, deployment_seed=5)


@pytest.fixture(scope="module")
def world():
    return World.make(SMALL)


@pytest.fixture(scope="module")
def surveys(world):
    return world.survey(1500, part="train"), world.survey(600, part="test")


def test_ranking_figures_agree_with_scikit_learn_also_with_ties():
    random = np.random.default_rng(0)
    scores = random.integers(0, 40, 2000) / 40
    labels = random.uniform(size=2000) < scores
    assert average_precision(scores, labels) == pytest.approx(average_precision_score(labels, scores))
    assert roc_area(scores, labels) == pytest.approx(roc_auc_score(labels, scores))


def test_calibration_error_is_small_for_true_probabilities_and_large_for_certainty():
    random = np.random.default_rng(0)
    scores = random.uniform(size=50_000)
    labels = random.uniform(size=50_000) < scores
    assert calibration_error(scores, labels) < 0.01
    assert calibration_error((scores > 0.5).astype(float), labels) > 0.2


def test_every_selector_lies_between_counting_and_the_ceiling(world, surveys):
    train, test = surveys
    kinds = {"boosting": Boosting(rounds=60), "kriging": Kriging(), "fingerprint": Fingerprint()}
    found = {name: one.fit(world, survey=train).metrics(test) for name, one in kinds.items()}
    floor = Frequency().fit(world, survey=train).metrics(test)["other_average_precision"]
    top = Bayes(60_000).fit(world, survey=train).metrics(test)["other_average_precision"]
    assert top > 0.95
    for name, one in found.items():
        assert floor + 0.05 < one["other_average_precision"] < top, name
        assert one["calibration_error"] < 0.1, name
    assert found["kriging"]["other_average_precision"] > found["fingerprint"]["other_average_precision"]


def test_selecting_takes_one_phone_or_many_and_always_the_master(world, surveys):
    train, test = surveys
    selector = Fingerprint().fit(world, survey=train)
    many = selector.select(test.master, test.rsrp_db)
    one = selector.select(int(test.master[3]), test.rsrp_db[3].tolist())
    assert np.array_equal(one.access_points(), many.access_points(3))
    assert many.chosen[:, 0].all()
    assert one.access_points()[0] == test.master[3]
    missing = test.rsrp_db[:1].copy()
    missing[0, 1:] = np.nan
    assert selector.select(test.master[:1], missing).scores.shape == (1, 9)


def test_no_access_point_serves_more_phones_than_allowed_beyond_its_own():
    random = np.random.default_rng(0)
    candidates = np.stack([random.permutation(12)[:5] for _ in range(80)])
    scores = random.uniform(size=(80, 5))
    chosen = scores > 0.3
    chosen[:, 0] = True
    kept = at_most(candidates, scores, chosen, 4)
    assert kept[:, 0].all()
    assert not (kept & ~chosen).any()
    for point in range(12):
        own = (candidates[:, 0] == point).sum()
        assert (kept & (candidates == point)).sum() <= max(4, own)


def test_wrong_phones_are_refused_in_one_line(world, surveys):
    selector = Nearest().fit(world, survey=surveys[0])
    for master, rsrp, word in (
        (25, [0.0, 0.0, 0.0], "master 25"),
        (0, [0.0, 0.0], "shape"),
        (0, [np.nan, 0.0, 0.0], "master"),
        (0.5, [0.0, 0.0, 0.0], "whole"),
    ):
        with pytest.raises(UserError, match=word) as caught:
            selector.select(master, rsrp)
        assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match="fit"):
        Nearest().select(0, [0.0, 0.0, 0.0])


def test_the_ceiling_rises_with_reports_and_falls_with_their_error(world):
    rows = ceiling_table(world, phones=500, places=60_000, measured=(1, 3, 5), errors_db=(0.0, 4.0))
    found = {(row["error_db"], row["measured"]): row["other_average_precision"] for row in rows}
    assert found[0.0, 1] < found[0.0, 3] <= found[0.0, 5] + 0.01
    assert found[4.0, 1] < found[4.0, 3] < found[4.0, 5]
    assert all(found[4.0, n] < found[0.0, n] for n in (1, 3, 5))


def test_closeness_puts_the_ceiling_on_the_same_phones(world, surveys):
    train, test = surveys
    ceiling = Ceiling.of(world, places=60_000, measured=5)
    rows = closeness({"frequency": Frequency().fit(world, survey=train)}, test, ceiling)
    assert rows[-1]["share_of_ceiling"] == 1.0
    assert 0.3 < rows[0]["share_of_ceiling"] < 1.0


def test_the_ceiling_knows_that_reports_are_rounded(world):
    coarse = World.make(replace(SMALL, quantum_db=8.0))
    ceiling = Ceiling.of(coarse, places=60_000, measured=5)
    test = coarse.survey(600, part="test")
    top = closeness({}, test, ceiling)[-1]["other_average_precision"]
    exact = closeness({}, test, replace(ceiling, world=world))[-1]["other_average_precision"]
    assert top > exact + 0.02


def log_loss(ceiling: Ceiling, test: Survey, error_db: float) -> float:
    pad = ceiling.particles.signal_db.shape[1] - test.rsrp_db.shape[1]
    rsrp, reported = (np.pad(part, ((0, 0), (0, pad))) for part in (test.rsrp_db, test.reported))
    scores = ceiling.scores(test.master, rsrp, reported, error_db=error_db)[:, 1:].clip(1e-3, 1 - 1e-3)
    serves = test.serves(SMALL.threshold_db)[:, 1:]
    return float(-np.where(serves, np.log(scores), np.log(1 - scores)).mean())


def test_the_ceiling_knows_that_reports_are_old():
    """It is above whatever takes old reports for fresh ones, at any width."""
    moved = World.make(replace(SMALL, stale=0.4, stale_m=60.0, error_db=1.0))
    ceiling, test = Ceiling.of(moved, places=60_000, measured=5), moved.survey(600, part="test")
    fresh = replace(ceiling, world=replace(moved, settings=replace(moved.settings, stale=0.0)))
    knowing = log_loss(ceiling, test, 1.0)
    assert all(knowing < log_loss(fresh, test, width) - 0.01 for width in (1.0, 2.0, 4.0, 8.0))
    none = replace(ceiling, particles=replace(ceiling.particles, before_db=None))
    with pytest.raises(UserError, match="places that know what lay before"):
        closeness({}, test, none)


@pytest.mark.parametrize(("error_db", "quantum_db", "stale"), [(2.0, 0.0, 0.3), (1.0, 3.0, 0.0), (0.5, 6.0, 0.5)])
def test_the_likelihood_of_a_report_is_how_often_it_is_drawn(error_db: float, quantum_db: float, stale: float):
    random, here, before = np.random.default_rng(0), -80.3, -86.9
    old = random.uniform(size=400_000) < stale
    drawn = np.where(old, before, here) + error_db * random.standard_normal(len(old))
    drawn = quantum_db * np.round(drawn / quantum_db) if quantum_db else np.round(drawn)
    values, counts = np.unique(drawn.round(6), return_counts=True)
    fine = values[:, None] if quantum_db else values[:, None] + np.linspace(-0.495, 0.495, 100)  # of a density
    likely = np.exp(Reporting(error_db, quantum_db, stale).log_likelihood(fine - here, fine - before)).mean(axis=1)
    assert np.abs(likely / likely.sum() - counts / counts.sum()).max() < 0.004


def test_measuring_next_prefers_what_is_open(world, surveys):
    test = surveys[1]
    ceiling = Ceiling.of(world, places=60_000, measured=5)
    reports = np.pad(test.rsrp_db[0], (0, 2))
    known = np.array([True, True, True, False, False])
    ranked = ceiling.measure_next(int(test.master[0]), reports, known, error_db=2.0)
    assert len(ranked) == 6
    assert not {point for point, _ in ranked} & set(world.clusters.measured[test.master[0]].tolist())
    gains = [gain for _, gain in ranked]
    assert gains == sorted(gains, reverse=True)
    assert gains[0] > 0


def test_measured_maps_replace_the_simulator(tmp_path):
    simulated = Deployment.simulate(SMALL)
    centres = (np.arange(100) + 0.5) * 5.0
    grid = np.stack(np.meshgrid(centres, centres), axis=-1).reshape(-1, 2)
    maps = simulated.gain_db(grid).T.reshape(25, 100, 100)
    np.savez(tmp_path / "maps.npz", access_points=simulated.access_points, maps_db=maps, pixel_m=5.0)
    world = World.make(replace(SMALL, maps=str(tmp_path / "maps.npz")))
    assert world.deployment.gain_db(grid[:50]) == pytest.approx(simulated.gain_db(grid[:50]), abs=1e-3)
    assert len(world.survey(100, part="train")) == 100


def test_a_drive_test_replaces_the_simulator_and_its_parts_do_not_overlap(tmp_path):
    simulated = Deployment.simulate(SMALL)
    phones = simulated.phones(300, part="drive")
    heard = simulated.gain_db(phones)
    names = [f"ap{i}@{x}:{y}" for i, (x, y) in enumerate(simulated.access_points.tolist())]
    rows = [",".join(map(str, [*p, *h])) for p, h in zip(phones.tolist(), heard.tolist())]
    path = tmp_path / "drive.csv"
    path.write_text("\n".join([",".join(["x_m", "y_m", *names]), *rows]) + "\n")
    world = World.make(replace(SMALL, maps=str(path)))
    train, test = world.survey(1000, part="train"), world.survey(1000, part="test")
    assert (len(train), len(test)) == (210, 60)
    assert not {tuple(p) for p in train.phones.tolist()} & {tuple(p) for p in test.phones.tolist()}
    assert np.array_equal(train.gap_db[:, 0], np.zeros(210))


def drive(path, *, phones=40, times=1, seed=0, shift=0.0):
    """A log of noise: each place so many times, a fifth of the signals not heard."""
    random = np.random.default_rng(seed)
    places = np.repeat(random.uniform(0, 200, (phones, 2)).round(1), times, axis=0) + shift
    heard = random.uniform(-110, -60, (len(places), 6))
    heard[:, 1:][random.uniform(size=(len(places), 5)) < 0.2] = np.nan
    np.savez(path, access_points=random.uniform(0, 200, (6, 2)) + shift, phones=places, rsrp_db=heard)
    return places, heard


def test_a_place_that_was_logged_often_is_in_one_part_only_with_the_mean_of_what_was_heard(tmp_path):
    places, heard = drive(tmp_path / "log.npz", times=4)
    world = World.make(Settings(maps=str(tmp_path / "log.npz"), candidates=3, measured=2))
    surveys = [world.survey(1000, part=part) for part in ("train", "validation", "test")]
    found = [{tuple(place) for place in survey.phones.tolist()} for survey in surveys]
    assert [len(part) for part in found] == [28, 4, 8] and len(set.union(*found)) == 40
    gain = world.deployment.gain_db(places[:1])[0]
    assert gain[0] == pytest.approx(heard[:4, 0].mean())
    others = [places for part in ("kriging", "ceiling") for places in world.deployment.phones(40, part=part).tolist()]
    assert {tuple(place) for place in others} <= found[0]


@pytest.mark.parametrize("count", [3, 4, 5, 6, 9, 10, 11])
def test_few_places_are_still_divided(tmp_path, count):
    drive(tmp_path / "log.npz", phones=count)
    world = World.make(Settings(maps=str(tmp_path / "log.npz"), candidates=3, measured=2))
    sizes = [len(world.survey(100, part=part)) for part in ("train", "validation", "test")]
    assert min(sizes) >= 1 and sum(sizes) == count


def test_what_was_not_heard_is_a_report_that_did_not_arrive(tmp_path):
    drive(tmp_path / "log.npz", phones=60)
    world = World.make(Settings(maps=str(tmp_path / "log.npz"), candidates=5, measured=6, error_db=2.0))
    survey = world.survey(1000, part="train")
    silent = world.deployment.gain_to(survey.phones, world.clusters.measured[survey.master]) < -111
    assert silent.any() and np.array_equal(survey.reported, ~silent)
    assert (survey.rsrp_db[silent] == 0).all()


def test_old_reports_are_old_by_metres_wherever_the_origin_lies(tmp_path):
    changes = []
    for shift in (0.0, 5e5):
        drive(tmp_path / "log.npz", phones=60, shift=shift)
        settings = Settings(maps=str(tmp_path / "log.npz"), candidates=5, measured=6, stale=1.0, stale_m=1.0)
        survey = World.make(settings).survey(1000, part="train")
        fresh = World.make(replace(settings, stale=0.0)).survey(1000, part="train")
        changes.append(np.abs(survey.rsrp_db - fresh.rsrp_db).mean())
    assert changes[0] == pytest.approx(changes[1], abs=0.5)
    assert changes[0] < 3.0


def test_maps_are_the_same_wherever_the_origin_lies(tmp_path):
    pictures = []
    for shift in (0.0, 2.0**19):
        drive(tmp_path / "log.npz", phones=60, shift=shift)
        world = World.make(Settings(maps=str(tmp_path / "log.npz"), candidates=3, measured=2))
        survey = world.survey(1000, part="train")
        selection = Nearest(2).fit(world, survey=survey).select(int(survey.master[0]), survey.rsrp_db[0])
        pictures.append(map_of(world, survey.phones[0], selection))
        corner, side = np.array(world.deployment.corner_m), world.deployment.side_m
        for places in (survey.phones, world.deployment.access_points, world.deployment.grid(5)):
            assert (places >= corner).all() and (places <= corner + side).all()
    assert pictures[0] == pictures[1]


@pytest.mark.parametrize(
    "content", [b"", b"PK\x03\x04 cut", b"\xff\xfex_m", b"x_m,y_m,a@1:2\n", b"x_m,y_m,a@1:2\n1,2\n"]
)
@pytest.mark.parametrize("name", ["log.csv", "log.npz", "LOG.CSV"])
def test_damaged_logs_are_one_line(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError) as caught:
        World.make(Settings(maps=str(tmp_path / name), candidates=1, measured=1))
    assert "\n" not in str(caught.value)


def test_a_truncated_archive_and_a_spreadsheets_mark_are_understood(tmp_path):
    places, heard = drive(tmp_path / "log.npz")
    whole = (tmp_path / "log.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match=r"cut\.npz"):
        World.make(Settings(maps=str(tmp_path / "cut.npz"), candidates=1, measured=1))
    header = "\ufeffx_m, y_m, " + ", ".join(f"a{i}@{i}:{i}" for i in range(6))
    rows = [", ".join("" if np.isnan(n) else f"{n}" for n in [*p, *h]) for p, h in zip(places, heard)]
    (tmp_path / "log.csv").write_text("\n".join([header, *rows]), encoding="utf-8")
    assert len(World.make(Settings(maps=str(tmp_path / "log.csv"), candidates=2, measured=2)).survey(99, part="train"))


@pytest.mark.parametrize(
    ("arrays", "word"),
    [
        ({"map_0": np.zeros((4, 4)), "map_1": np.zeros((4, 5)), "pixel_m": 1.0}, "sizes"),
        ({"maps_db": np.zeros((3, 4, 4)), "pixel_m": 1.0}, "2 access points"),
        ({"maps_db": np.zeros((2, 4, 4))}, "pixel_m"),
        ({"phones": np.zeros((4, 2)), "rsrp_db": np.zeros((4, 3))}, "rsrp_db"),
        ({"maps_db": np.full((2, 4, 4), np.nan), "pixel_m": 1.0}, "nothing is heard"),
    ],
)
def test_wrong_maps_are_refused_in_one_line(tmp_path, arrays, word):
    np.savez(tmp_path / "m.npz", access_points=[[0.0, 0.0], [3.0, 3.0]], **arrays)
    with pytest.raises(UserError, match=word) as caught:
        World.make(Settings(maps=str(tmp_path / "m.npz"), candidates=1, measured=1))
    assert "\n" not in str(caught.value)


def test_a_picture_is_drawn(tmp_path, world, surveys):
    train, test = surveys
    selection = Nearest(2).fit(world, survey=train).select(int(test.master[0]), test.rsrp_db[0])
    draw(tmp_path / "map.png", world, test.phones[0], selection, pixels=20)
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")


def test_recall_counts_positives_outside_the_candidates(world, surveys):
    test = surveys[1]
    perfect = test.serves(10.0).astype(float)
    found = metrics(perfect, test, 10.0)
    assert found["recall_inside"] == found["precision"] == 1.0
    assert found["recall"] == pytest.approx(1 - found["ignored"])
