"""What a mutant's tests say of it, and whether they say so of the mutant."""

from __future__ import annotations

import os
from pathlib import Path

from scripts.mutation.reach import Reach
from scripts.mutation.server import LATE, SURVIVED, trial
from scripts.mutation.sites import Mutant

__all__ = ["Trials", "blamed", "failure"]


class Trials:
    """Of mutants in a copy of the tree, each by tests of so many seconds together."""

    def __init__(self, folder: Path, seconds: float) -> None:
        self.tree, self.log, self.seconds = folder / "tree", folder / "log", seconds
        self.reach = Reach(folder / "reach", self.tree / "src/fewer")
        self._sound: dict[tuple[str, ...], bool] = {}

    def __call__(self, mutant: Mutant) -> dict[str, object]:
        """One mutant's outcome: killed only by tests that pass without it, within the same limits."""
        while tests := list(self.reach.within(mutant.path, mutant.line, seconds=self.seconds)):
            outcome = self._wrong(mutant, tests)
            by = "" if outcome == SURVIVED else failure(self.log.read_text(errors="replace"))
            if outcome == SURVIVED or self._passes(blamed(tests, "" if outcome == LATE else by)):
                of = len(self.reach.tests(mutant.path, mutant.line))
                return {"outcome": outcome, "tests": len(tests), "of": of, "by": by[:160]}
        return {"outcome": SURVIVED, "tests": 0, "of": 0}

    def _wrong(self, mutant: Mutant, tests: list[str]) -> str:
        path = self.tree / "src/fewer" / mutant.path
        original, times = path.read_bytes(), path.stat()
        try:
            path.write_bytes(mutant.applied(original))
            return self._run(tests)
        finally:
            path.write_bytes(original)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # what was compiled of it holds again

    def _run(self, tests: list[str]) -> str:
        allowed = 20.0 + 3 * sum(self.reach.seconds[test] for test in tests)
        return trial(tests, self.log, processor=allowed)

    def _passes(self, tests: list[str]) -> bool:
        """Whether they do without a mutant; else the slowest is left out, for the memory or the time it wants here."""
        if tuple(tests) not in self._sound:
            self._sound[tuple(tests)] = self._run(tests) == SURVIVED
        if not self._sound[tuple(tests)]:
            worst = max(tests, key=self.reach.seconds.__getitem__)
            self.reach.seconds[worst] = -1.0
            print(f"left out, for it fails without a mutant too: {worst}", flush=True)
        return self._sound[tuple(tests)]


def failure(log: str) -> str:
    """The last line of what pytest said that names a test that failed."""
    return next((line for line in reversed(log.splitlines()) if line.startswith(("FAILED", "ERROR"))), "")


def blamed(tests: list[str], line: str) -> list[str]:
    """The one of these that such a line names; all, where it names none, as when a module cannot be imported."""
    named = [test for test in tests if line.split(" ", 1)[-1].startswith(test)]
    return [max(named, key=len)] if named else tests
