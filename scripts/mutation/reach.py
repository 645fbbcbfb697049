"""Which tests run which lines, and how long each takes: every test file once, under coverage, in a fork of its own."""

from __future__ import annotations

import contextlib
import hashlib
import json
import resource
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["Reach", "measure"]

MODULE = ""  # the context of what runs while a module is imported
MOVED = 0  # instead of the line, of a module that was another when it was measured


class Recorder:
    """A plugin of pytest that names each test to coverage, and times it by the processor."""

    def __init__(self, coverage: Any) -> None:
        self.coverage, self.seconds = coverage, dict[str, float]()
        self._began = 0.0

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.coverage.switch_context(nodeid)
        self._began = time.process_time()

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" and not report.passed:
            self.seconds[report.nodeid] = -1.0  # tells nothing: it does not pass here

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.seconds.setdefault(nodeid, time.process_time() - self._began)
        self.coverage.switch_context(MODULE)


def measure(file: str, source: Path, out: Path, most: int) -> None:
    """Run a test file and write what its tests reach; after so many seconds of processor time, of those that ran."""
    import pytest
    from coverage import Coverage

    def late(*_: Any) -> None:
        pytest.exit("its time is up")

    coverage = Coverage(data_file=None, source=[str(source)], config_file=False, messages=False)
    recorder = Recorder(coverage)
    signal.signal(signal.SIGXCPU, late)
    spent = int(time.process_time())
    resource.setrlimit(resource.RLIMIT_CPU, (spent + most, spent + most + 30))
    coverage.start()
    with contextlib.suppress(pytest.exit.Exception):  # where time is up between two tests
        pytest.main([file, "-q", "-p", "no:cacheprovider", "--tb=no"], plugins=[recorder])
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)
    coverage.stop()
    data = coverage.get_data()
    lines = {
        str(Path(path).relative_to(source)): {str(line): tests for line, tests in data.contexts_by_lineno(path).items()}
        for path in data.measured_files()
    }
    of = {module: digest(source / module) for module in lines}
    out.write_text(json.dumps({"seconds": recorder.seconds, "lines": lines, "of": of}))


def digest(path: Path) -> str:
    """What tells whether a module is the one that was measured; empty where it is no more."""
    return hashlib.blake2b(path.read_bytes(), digest_size=8).hexdigest() if path.exists() else ""


class Reach:
    """What was measured, of all test files together; of a module that has changed since, all that ran it."""

    def __init__(self, folder: Path, source: Path) -> None:
        self._lines: dict[tuple[str, int], set[str]] = {}
        self._modules: dict[str, set[str]] = {}
        self.seconds: dict[str, float] = {}
        for path in sorted(folder.glob("*.json")):
            content = json.loads(path.read_text())
            self.seconds |= content["seconds"]
            for module, lines in content["lines"].items():
                self._add(module, lines, same=content["of"][module] == digest(source / module))

    def _add(self, module: str, lines: dict[str, list[str]], *, same: bool) -> None:
        for line, tests in lines.items():
            self._lines.setdefault((module, int(line) if same else MOVED), set()).update(tests)
            self._modules.setdefault(module, set()).update(test for test in tests if test != MODULE)

    def tests(self, module: str, line: int) -> list[str]:
        """Those that run a line, the quickest first; of a line that runs at import then all that run the module.

        Where a test is the first to import a module, its lines are that test's too.
        """
        found = self._lines.get((module, line), set())
        others = self._modules.get(module, set()) if MODULE in found else self._lines.get((module, MOVED), set())
        others = others - found
        return [test for tests in (found, others) for test in sorted(tests, key=self._when) if self._when(test)[0] >= 0]

    def _when(self, test: str) -> tuple[float, str]:
        """Before slower ones; below 0 if it tells nothing."""
        return self.seconds.get(test, -1.0), test

    def within(self, module: str, line: int, *, seconds: float) -> Iterator[str]:
        """The same as far as a time lasts; the quickest always."""
        spent = 0.0
        for number, test in enumerate(self.tests(module, line)):
            spent += self.seconds[test]
            if number and spent > seconds:
                return
            yield test
