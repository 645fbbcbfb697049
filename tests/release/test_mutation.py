"""Small wrong changes of the source: every one is another program, bears a name that lasts, and is counted right."""

from __future__ import annotations

import argparse
import ast
import json
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from scripts.mutation import tally
from scripts.mutation.__main__ import ROOMS, drawn, sampled
from scripts.mutation.reach import Reach, digest
from scripts.mutation.server import KILLED, LATE, SURVIVED, forked
from scripts.mutation.sites import mutants
from scripts.mutation.trials import Trials, blamed, failure

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


def test_a_sample_stays_what_was_drawn_when_its_source_changes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    order, known = argparse.Namespace(each=5, seed=1, only=""), tmp_path / "drawn.json"
    names = drawn(["metrics"], order, known)
    monkeypatch.setitem(ROOMS, "metrics", ("packs/show.py",))
    assert drawn(["metrics", "core"], order, known) == names | {
        "core": [one.name for one in sampled(["core"], 5, 1)["core"]]
    }


def measured(folder: Path) -> Reach:
    """Of a module of two lines and one that has changed since."""
    seconds = {"slow": 3.0, "quick": 0.1, "other": 0.5, "broken": -1.0}
    lines = {"1": [""], "2": ["slow", "quick", "broken"], "3": ["other", ""]}
    for name in ("m.py", "n.py"):
        (folder / name).write_text("pass")
    content = {"seconds": seconds, "lines": {"m.py": lines, "n.py": lines}, "of": {"m.py": digest(folder / "m.py")}}
    content["of"]["n.py"] = "another"
    (folder / "reach").mkdir()
    (folder / "reach/a.json").write_text(json.dumps(content))
    return Reach(folder / "reach", folder)


def test_the_quickest_tests_of_a_line_come_first_and_what_runs_at_import_is_then_every_tests(tmp_path: Path) -> None:
    reach = measured(tmp_path)
    assert reach.tests("m.py", 2) == ["quick", "slow"] and reach.tests("m.py", 9) == []
    assert reach.tests("m.py", 1) == ["quick", "other", "slow"] and reach.tests("m.py", 3) == ["other", "quick", "slow"]
    assert list(reach.within("m.py", 2, seconds=1.0)) == ["quick"]


def test_every_line_of_a_module_that_has_changed_since_is_tried_with_all_that_ran_it(tmp_path: Path) -> None:
    assert measured(tmp_path).tests("n.py", 9) == ["quick", "other", "slow"]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="nothing says here what a process does")
def test_a_trial_is_ended_when_it_waits_for_nothing_and_not_when_the_machine_is_busy(tmp_path: Path) -> None:
    def busy() -> int:
        worker = threading.Thread(target=lambda: [None for _ in iter(lambda: time.process_time() < begin + 1.5, False)])
        begin = time.process_time()
        worker.start()
        worker.join()
        return 7

    assert forked(busy, tmp_path / "log", 0.7) == 7
    assert forked(lambda: time.sleep(600) or 0, tmp_path / "log", 0.7) == -signal.SIGKILL


def test_the_test_that_failed_is_found_in_what_pytest_says() -> None:
    tests = ["t.py::test_a", "t.py::test_a[1 - b]", "t.py::test_b"]
    log = "....F\nFAILED t.py::test_a[1 - b] - assert False\n1 failed"
    assert failure(log) == "FAILED t.py::test_a[1 - b] - assert False" and failure("all well") == ""
    assert blamed(tests, failure(log)) == ["t.py::test_a[1 - b]"]
    assert blamed(tests, "ERROR t.py - ImportError") == tests == blamed(tests, "")


@pytest.mark.parametrize(
    ("outcomes", "wanted"),
    [
        ({"slow": KILLED, "quick": SURVIVED}, KILLED),
        ({"slow": LATE, "quick": SURVIVED}, LATE),
        ({"slow": SURVIVED, "quick": SURVIVED}, SURVIVED),
    ],
)
@pytest.mark.parametrize("weak", ["", "slow", "quick"])
def test_a_mutant_is_killed_only_by_a_test_that_passes_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outcomes: dict[str, str], wanted: str, weak: str
) -> None:
    (tmp_path / "tree/src/fewer").mkdir(parents=True)
    source = tmp_path / "tree/src/fewer/m.py"
    source.write_bytes(SOURCE)
    lines = {str(line): ["slow", "quick"] for line in range(1, 20)}
    content = {"seconds": {"slow": 3.0, "quick": 0.1}, "lines": {"m.py": lines}, "of": {"m.py": digest(source)}}
    (tmp_path / "reach").mkdir()
    (tmp_path / "reach/a.json").write_text(json.dumps(content))
    trials = Trials(tmp_path, 30.0)

    def run(tests: list[str]) -> str:
        """`weak` fails whatever it is given."""
        changed = source.read_bytes() != SOURCE
        for test in tests:
            found = KILLED if test == weak else outcomes[test] if changed else SURVIVED
            if found != SURVIVED:
                trials.log.write_text(f"FAILED {test} - so")
                return found
        return SURVIVED

    monkeypatch.setattr(trials, "_run", run)
    found = trials(mutants("m.py", SOURCE)[0])["outcome"]
    assert found == (SURVIVED if weak == "slow" else wanted)
    assert source.read_bytes() == SOURCE


def test_the_count_sets_equivalent_ones_aside_and_names_the_survivors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "reasons", lambda: {"same": "nobody reads it"})
    trials: dict[str, Any] = {
        "a": {"outcome": "killed", "first": "survived"}, "b": {"outcome": "killed by time"}, "c": {}, "same": {},
        "d": {"outcome": "gone", "first": "survived"},
    }  # fmt: skip
    rows = tally.rows({"core": trials})
    assert rows == [[name, 5, 1, 1, 1, 2, 1, 1 / 4, 2 / 3] for name in ("core", "all")]
    assert tally.told({"core": trials}).splitlines()[0] == "survived: c"


def test_every_reason_is_a_sentence() -> None:
    assert all(len(reason) > 20 for reason in tally.reasons().values())
