"""The ledger: every claim is judged from the records alone, corrected for how many tests a paper has."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from scipy import stats

from fewer.cli import main
from fewer.core.registry import SYSTEMS, systems
from fewer.core.system import Description, System
from fewer.studies.claims import LACKING, VERDICTS, Claim, Records, Verdict, claims, counted, holm, ledger, records_in
from fewer.studies.order import studies
from tests.studies.records import ROOT

EVERY = [(paper, claim) for paper, stated in claims().items() for claim in stated]
PUBLISHED = records_in(ROOT / "results")


def rows(records: Records) -> Verdict:
    count = len(records["transfer"]["rows"])
    return Verdict("holds" if count > 1 else "fails", f"{count} rows", p=0.01 * count)


CLAIMS = (
    Claim("many-rows", "Table 1", "There are many rows.", ("transfer",), rows),
    Claim("both", "Section 2", "Both are there.", ("transfer", "matrix"), lambda records: Verdict("partly", p=0.02)),
    Claim("aliens", "Section 3", "Nobody knows.", (), lambda records: Verdict("untestable", why="nobody does")),
    Claim("bits", "Section 4", "It has bits.", ("transfer",), lambda records: records["transfer"]["bits"]),
)


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "toy_claims", SimpleNamespace(CLAIMS=CLAIMS))
    system = System("toys", "tests.toys:Blobs", Description("Toys", ""), claims="toy_claims:CLAIMS")
    monkeypatch.setitem(systems(), "toys", system)


def test_a_claim_is_judged_by_its_records_and_untestable_without_them(toy: None) -> None:
    transfer, matrix = {"rows": [1, 2, 3]}, {"rows": [1]}
    first, second, third, fourth = ledger({"transfer": transfer}, "toys")
    assert (first["verdict"], first["numbers"], first["studies"]) == ("holds", "3 rows", ["transfer"])
    assert (second["verdict"], second["why"]) == ("untestable", "no result of matrix is kept")
    assert (third["verdict"], third["why"]) == ("untestable", "nobody does")
    assert fourth["verdict"] == "untestable" and fourth["why"].startswith(LACKING)
    assert first["p"] == first["corrected"] == 0.03, "the only test of its paper"
    first, second, *_ = ledger({"transfer": transfer, "matrix": matrix}, "toys")
    assert (first["corrected"], second["corrected"]) == (0.04, 0.04) and second["verdict"] == "partly"
    assert ledger({"transfer": {"rows": [1]}}, "toys")[0]["verdict"] == "fails"
    json.dumps(ledger({"transfer": transfer}), allow_nan=False)


def test_verdicts_are_counted_by_paper(toy: None) -> None:
    found = counted(ledger({"transfer": {"rows": [1, 2]}}))["toys"]
    assert found == {"holds": 1, "holds on ours": 0, "partly": 0, "fails": 0, "untestable": 3}


def test_holm_is_that_of_scipy_by_steps() -> None:
    values = [0.04, 0.001, 0.03, 0.5, 0.03]
    ordered = sorted(values)
    by_hand = [max(ordered[k] * (len(values) - k) for k in range(place + 1)) for place in range(len(values))]
    expected = dict(zip(ordered, (min(1.0, value) for value in by_hand)))
    assert holm(values) == pytest.approx([expected[value] for value in values])
    assert all(a >= b for a, b in zip(holm(values), stats.false_discovery_control(values)))
    assert holm([]) == [] and holm([0.6, 0.7]) == [1.0, 1.0]


def test_the_ledger_is_shown_from_any_folder_of_results(
    toy: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "transfer.json").write_text(json.dumps({"rows": [1, 2]}))
    assert main(["reproduce", "--claims", "toys", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "toys: 1 holds, 3 untestable" in said and "- holds: There are many rows. (Table 1)" in said
    assert "p 0.02; 0.02 with all tests of the paper counted" in said
    assert main(["reproduce", "--claims", "--out", str(tmp_path), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [line["name"] for line in shown if line["paper"] == "toys"] == ["many-rows", "both", "aliens", "bits"]


@pytest.mark.parametrize(("words", "told"), [(["toy"], "did you mean 'toys'?"), ([], "no result of a study in")])
def test_a_ledger_that_cannot_be_made_is_one_line(
    words: list[str], told: str, toy: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if words:
        (tmp_path / "transfer.json").write_text('{"rows": []}')
    assert main(["reproduce", "--claims", *words, "--out", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert told in said and said.count("\n") == 1
    assert main(["reproduce", "matrix", "--claims"]) == 2 and "leave the study out" in capsys.readouterr().err
    (tmp_path / "transfer.json").write_text("{")
    assert main(["reproduce", "--claims", "--out", str(tmp_path)]) == 2 and "no JSON" in capsys.readouterr().err


def test_every_claim_has_a_name_of_its_own_and_studies_that_exist() -> None:
    for paper, stated in claims().items():
        names = [claim.name for claim in stated]
        assert len(set(names)) == len(names), paper
    for paper, claim in EVERY:
        assert set(claim.studies) <= set(studies()), f"{paper} {claim.name}"
        assert claim.where and claim.says, f"{paper} {claim.name}"


def test_every_published_verdict_is_of_a_known_kind_and_says_what_it_is_based_on() -> None:
    for line in ledger(PUBLISHED):
        where = f"{line['paper']} {line['name']}"
        assert line["verdict"] in VERDICTS and not line["why"].startswith(LACKING), f"{where}: {line['why']}"
        assert line["p"] is None or 0 < line["p"] <= line["corrected"] <= 1, where
        said = {"untestable": "why", "holds on ours": "data"}.get(line["verdict"], "numbers")
        assert line[said], f"{where} says no {said}"
        assert line["verdict"] != "fails" or line["why"], f"{where}: what was tried?"


@pytest.mark.parametrize("paper", claims())
def test_at_least_four_of_five_claims_of_a_paper_are_tested(paper: str) -> None:
    kinds = counted(ledger(PUBLISHED, paper))[paper]
    assert sum(kinds.values()) >= 15 and kinds["untestable"] <= 0.2 * sum(kinds.values()), kinds


def test_every_paper_has_claims() -> None:
    assert set(claims()) == set(SYSTEMS)
