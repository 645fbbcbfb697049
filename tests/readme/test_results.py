"""RESULTS.md tells all that a result says, and the README has a table of each field."""

from __future__ import annotations

import pytest

from fewer.core.registry import SYSTEMS
from fewer.studies.claims import VERDICTS, claims
from tests.studies.records import NO_STUDIES, RESULTS, ROOT

TOLD = (ROOT / "RESULTS.md").read_text()
README = (ROOT / "README.md").read_text()


def part(name: str) -> str:
    """What stands under the title of a result."""
    found = [one for one in TOLD.split("\n### ") if f"; `results/{name}.json`." in one.partition("\n## ")[0]]
    assert len(found) == 1, name
    return found[0].partition("\n## ")[0]


@pytest.mark.parametrize("name", RESULTS)
def test_every_result_stands_with_its_rows_sentences_pictures_and_commands(name: str) -> None:
    record, text = RESULTS[name], part(name)
    assert text.startswith(record["title"])
    for row in [record["columns"], *record["rows"]]:
        assert all(str(cell).replace("|", "\\|") in text for cell in row), row
    for line in [*record.get("remarks", []), *record.get("notes", [])]:
        assert f"\n- {line}\n" in text
    assert "```sh\n" + "\n".join(record.get("commands") or [record["command"]]) + "\n```" in text
    for picture in record.get("figures", []):
        assert f"(docs/{picture})" in text or not (ROOT / "docs" / picture).exists()
    assert f"Scale {record.get('scale')}; " in text or name.startswith(NO_STUDIES)


def test_the_readme_has_a_table_of_each_field_and_the_picture_of_the_matrix() -> None:
    shown = {name for name in RESULTS if f"`results/{name}.json`" in README}
    assert {name.partition("-")[0] for name in shown} == {*SYSTEMS, "bench", "matrix"} and len(shown) == 6
    assert "](docs/matrix.png)" in README and "| task | method |" not in README
    assert README.count("\nThe paper: ") == len(claims()), "what the paper says stands above the table"


@pytest.mark.parametrize("page", ["CLAIMS.md", "docs/claims.md"])
def test_the_ledger_is_shown_with_its_counts_and_every_claim(page: str) -> None:
    text = (ROOT / page).read_text()
    assert f"| paper | {' | '.join(VERDICTS)} |" in text
    for paper, stated in claims().items():
        assert f"\n## {paper}\n" in text and all(claim.says.replace("|", "\\|") in text for claim in stated)
