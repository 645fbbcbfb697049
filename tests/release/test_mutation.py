"""Small wrong changes of the source: every one is another program, bears a name that lasts, and is counted right."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from scripts.mutation import tally
from scripts.mutation.__main__ import ROOMS, sampled
from scripts.mutation.reach import Reach
from scripts.mutation.sites import mutants

SOURCE = b'''"""A module."""
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import numpy
__all__ = ["f"]
LIMIT: int = 3
def f(x: int, y: float = 0.0) -> int:
    """Not 1 < 2."""
    if not x < LIMIT and y:
        print(f"{x + 1}")
        raise ValueError(-x)
    return x + 1
'''
EXPECTED = {
    ("constant", "3", "(4)"), ("constant", "0.0", "(1.0)"), ("comparison", "x < LIMIT", "(x <= LIMIT)"),
    ("boolean", "not x < LIMIT", "(x < LIMIT)"), ("boolean", "not x < LIMIT and y", "(not x < LIMIT or y)"),
    ("deleted", 'print(f"{x + 1}")', "pass"), ("deleted", "raise ValueError(-x)", "pass"), ("sign", "-x", "(x)"),
    ("return", "return x + 1", "return None"), ("arithmetic", "x + 1", "(x - 1)"), ("constant", "1", "(2)"),
}  # fmt: skip


def test_every_place_that_runs_is_changed_and_no_other() -> None:
    assert {(one.kind, one.before, one.after) for one in mutants("m.py", SOURCE)} == EXPECTED


def test_a_mutant_is_another_program_and_keeps_its_name_when_lines_are_put_before_it() -> None:
    found, later = mutants("m.py", SOURCE), mutants("m.py", SOURCE.replace(b"__all__", b"import os\n__all__"))
    assert [one.name for one in found] == [one.name for one in later]
    assert len({one.name for one in found}) == len(found)
    plain = ast.dump(ast.parse(SOURCE))
    assert all(ast.dump(ast.parse(one.applied(SOURCE))) != plain for one in found)


def test_a_sample_is_the_same_again_and_has_something_of_every_room() -> None:
    chosen = sampled(list(ROOMS), 5, 0)
    assert all(len(found) == 5 for found in chosen.values())
    again, other, more = (sampled(["metrics"], each, seed)["metrics"] for each, seed in ((5, 0), (5, 1), (6, 0)))
    assert chosen["metrics"] == again != other
    assert {one.name for one in again} < {one.name for one in more}


def test_the_quickest_tests_of_a_line_come_first_and_what_runs_at_import_is_then_every_tests(tmp_path: Path) -> None:
    seconds = {"slow": 3.0, "quick": 0.1, "other": 0.5, "broken": -1.0}
    lines = {"m.py": {"1": [""], "2": ["slow", "quick", "broken"], "3": ["other", ""]}}
    (tmp_path / "a.json").write_text(json.dumps({"seconds": seconds, "lines": lines}))
    reach = Reach(tmp_path)
    assert reach.tests("m.py", 2) == ["quick", "slow"] and reach.tests("m.py", 9) == []
    assert reach.tests("m.py", 1) == ["quick", "other", "slow"] and reach.tests("m.py", 3) == ["other", "quick", "slow"]
    assert list(reach.within("m.py", 2, seconds=1.0)) == ["quick"]


def test_the_count_sets_equivalent_ones_aside_and_names_the_survivors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "reasons", lambda: {"same": "nobody reads it"})
    trials: dict[str, Any] = {"a": {"outcome": "killed"}, "b": {"outcome": "killed by time"}, "c": {}, "same": {}}
    rows = tally.rows({"core": trials})
    assert rows == [["core", 4, 1, 2, 1, 2 / 3], ["all", 4, 1, 2, 1, 2 / 3]]
    assert tally.told({"core": trials}).splitlines()[0] == "survived: c"


def test_every_reason_is_a_sentence() -> None:
    assert all(len(reason) > 20 for reason in tally.reasons().values())
