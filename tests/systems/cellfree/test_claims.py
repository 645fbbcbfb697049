"""Verdicts on the paper's claims follow the records: other numbers, another verdict."""

import copy
import json
from pathlib import Path

import pytest

from fewer.studies.claims import VERDICTS
from fewer.systems.cellfree.studies.claims import CLAIMS
from fewer.systems.cellfree.system import SYSTEM

RESULTS = Path(__file__).parents[3] / "results"
RECORDS = {name: json.loads((RESULTS / f"{name.replace('/', '-')}.json").read_text()) for name in SYSTEM.studies}
BY_NAME = {claim.name: claim for claim in CLAIMS}


def judged(name, change=lambda records: None):
    """The verdict after some numbers were changed."""
    records = copy.deepcopy(RECORDS)
    change(records)
    return BY_NAME[name].judge(records)


def test_every_claim_has_a_verdict_and_four_in_five_can_be_tested():
    verdicts = [claim.judge(RECORDS) for claim in CLAIMS]
    assert len(BY_NAME) == len(CLAIMS) and {verdict.kind for verdict in verdicts} <= set(VERDICTS)
    assert sum(verdict.kind != "untestable" for verdict in verdicts) >= 0.8 * len(CLAIMS)
    assert all(verdict.numbers or verdict.why for verdict in verdicts)
    assert all(bool(claim.studies) == (verdict.kind != "untestable") for claim, verdict in zip(CLAIMS, verdicts))


def test_a_claim_is_judged_by_the_studies_that_it_names_alone():
    for claim in CLAIMS:
        own = {name: RECORDS[name] for name in claim.studies}
        assert claim.judge(own) == claim.judge(RECORDS)


def _shift(study, metric, by):
    def change(records):
        for networks in records[study]["details"].values():
            for each in networks.values():
                for one in each:
                    one[metric] += by

    return change


@pytest.mark.parametrize(
    ("name", "study", "metric"),
    [
        ("statistics-ignored-100-10", "cellfree/statistics", "ignored"),
        ("statistics-closest-100-10", "cellfree/statistics", "closest"),
        ("fig2-precision", "cellfree/fig2", "precision"),
        ("fig2-recall", "cellfree/fig2", "recall"),
        ("fig3-auc", "cellfree/fig3", "auc"),
        ("fig3-ap", "cellfree/fig3", "average_precision"),
    ],
)
def test_a_number_far_from_the_papers_contradicts_it(name, study, metric):
    assert judged(name).kind != "fails"
    assert judged(name, _shift(study, metric, -0.3)).kind == "fails"


def _exchange(records):
    for study in ("fig2", "fig3"):
        for networks in records[f"cellfree/{study}"]["details"].values():
            for size in (100, 50):
                few, many = f"L={size} c=10", f"L={size} c=20"
                networks[few], networks[many] = networks[many], networks[few]


@pytest.mark.parametrize("name", ["fig2-recall-rises", "fig2-precision-falls", "fig3-ap-falls", "fig3-50-ap-falls"])
def test_what_rises_with_candidates_is_told_from_what_falls(name):
    assert judged(name).kind in ("holds", "partly")
    assert judged(name, _exchange).kind == "fails"


def _slow_cache(records):
    for one in records["cellfree/cached"]["details"].values():
        one["cached 1"] = 2 * one["whole 1"]


def _dependent(records):
    for each in records["cellfree/phones"]["details"].values():
        each[0]["difference"] = 0.1


def test_caching_must_be_faster_and_answer_the_same():
    assert judged("cached-embeddings").kind == "holds"
    assert judged("cached-embeddings", _slow_cache).kind == "fails"
    assert judged("cached-embeddings", _dependent).kind == judged("any-number-of-phones", _dependent).kind == "fails"


def _same_density(records):
    for study in ("fig2", "fig3"):
        for networks in records[f"cellfree/{study}"]["details"].values():
            networks["L=50 c=10"] = networks["L=100 c=10"]


def test_the_density_of_access_points_does_not_matter_only_where_numbers_are_the_same():
    assert judged("density", _same_density).kind == "holds"
    assert judged("density").kind != "holds"
