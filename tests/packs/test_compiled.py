"""Where the C kernels were not built, somebody says so: once, in a line, with the cure."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from fewer.bench import overview
from fewer.packs import compiled
from fewer.packs.file import codec
from fewer.packs.pack import load, write
from fewer.packs.program import Input, Node, Program
from fewer.packs.runtime import chain
from fewer.serve.models import open_models

# a finder that knows no compiled module: as after an install without a compiler
WITHOUT = """
import sys
class Nowhere:
    def find_spec(self, name, path=None, target=None):
        if name in ("fewer.packs._runtime", "fewer.packs._codec"):
            raise ImportError(name)
sys.meta_path.insert(0, Nowhere())
from fewer.cli import main
raise SystemExit(main(sys.argv[1:]))
"""


@pytest.fixture
def no_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "_runtime", None)
    monkeypatch.setattr(codec, "_codec", None)
    monkeypatch.setattr(compiled, "_told", set())


@pytest.fixture
def small(tmp_path: Path) -> str:
    program = Program((Input("x", (5,)),), (Node("linear", ("x", "w"), "y"),), ("y",))
    write(tmp_path / "a.pack", program, {"w": np.eye(5, dtype=np.float32)}, settings={"task": "own"})
    return str(tmp_path / "a.pack")


def test_a_build_with_kernels_says_nothing(small: str) -> None:
    assert compiled.missing() == ""
    assert [model.described()["compiled"] for model in open_models([small])] == [True]


def test_opening_packs_without_kernels_warns_once(small: str, no_kernels: None) -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(2):
            load(small)
    assert [str(one.message) for one in said] == [compiled.missing()]
    assert "20 to 140 times slower" in compiled.missing() and "C compiler" in compiled.missing()


@pytest.mark.parametrize("gone", [chain, codec])
def test_either_of_the_two_is_missed(gone: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gone, "_runtime" if gone is chain else "_codec", None)
    assert compiled.missing()


def test_the_list_of_models_and_the_benches_of_packs_say_it(
    small: str, no_kernels: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [model.described()["compiled"] for model in open_models([small])] == [False]
    monkeypatch.setattr(
        overview, "imported", lambda place: SimpleNamespace(run=lambda quick: [], USES_PACKS=".sparse" in place)
    )
    assert compiled.missing() in [line.why for line in overview.measure("sparse", quick=True)]
    assert compiled.missing() not in [line.why for line in overview.measure("attack", quick=True)]


def test_the_command_line_says_it_in_one_line_on_stderr_and_in_info(small: str) -> None:
    source = Path(compiled.__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONWARNINGS": ""}
    command = [sys.executable, "-c", WITHOUT, "run", small, "--info", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert done.stderr.count("\n") == 1 and "the C kernels are missing" in done.stderr
    assert "C compiler" in json.loads(done.stdout)["kernels"]
