"""The base install: a fresh environment with this package, numpy and rich, and no torch."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scripts.release.wheel import build_wheel, has_auditwheel

from fewer.packs.pack import load, write
from tests.packs.test_runtime_chain import network

BASE = ("numpy", "rich", "markdown-it-py", "mdurl", "pygments", "shtab")
PROGRAM = """
import json, sys
from fewer.packs.pack import load
from fewer.packs.export import c as export_c
from fewer.packs.file import codec
from fewer.packs.runtime import chain
pack = load(sys.argv[1])
answers = [pack.predict([0.1 * i for i in range(17)]).tolist(), pack.predict([[0.0] * 17] * 5).tolist()]
export_c.export(pack, sys.argv[2], "policy")
try:
    import torch
    raise SystemExit("torch is here")
except ImportError:
    pass
compiled = codec.compiled() and chain.kernels() is not None
modules = [name for name in sys.modules if "." not in name]
print(json.dumps({"answers": answers, "compiled": compiled, "modules": modules}))
"""


def install(site: Path, folder: Path) -> None:
    """A wheel built from this tree, and the distributions of the base install, into site-packages."""
    with zipfile.ZipFile(build_wheel(folder, again=False)) as wheel:
        wheel.extractall(site)
    for distribution in BASE:
        for file in importlib.metadata.files(distribution) or []:
            if ".." not in file.parts:
                target = site / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file.locate(), target)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of the fresh environment."""
    folder = tmp_path_factory.mktemp("base")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    site = next((folder / "venv" / "lib").glob("python*/site-packages"))
    (folder / "tree").mkdir()
    install(site, folder / "tree")
    return folder / "venv" / "bin" / "python"


def said(python: Path, *words: str) -> str:
    """What a command of the fresh environment prints, run where nothing of this tree is found."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run([str(python), *words], capture_output=True, text=True, env=environment, cwd=python.parent)
    assert done.returncode == 0, done.stderr
    return done.stdout


def wheel_of(python: Path) -> Path:
    return next((python.parents[2] / "tree").glob("*.whl"))


def test_the_command_line_and_a_shipped_pack_work_in_an_empty_environment(python: Path) -> None:
    assert "usage: fewer" in said(python, "-m", "fewer", "--help")
    assert "3197" in said(python, "-m", "fewer", "run", "digits-3197", "--info").replace(",", "")


@pytest.mark.skipif(not has_auditwheel(), reason="auditwheel is not installed")
def test_the_wheel_runs_on_other_linux_systems(python: Path) -> None:
    assert "manylinux" in wheel_of(python).name


def test_extensions_come_without_what_only_a_debugger_reads(python: Path) -> None:
    with zipfile.ZipFile(wheel_of(python)) as wheel:
        sizes = {item.filename: item.file_size for item in wheel.infolist() if item.filename.endswith(".so")}
        assert all(b".debug_info" not in wheel.read(name) for name in sizes)
    assert sum(sizes.values()) < 1.2e6


def test_a_wheel_built_without_a_compiler_has_no_extensions_and_everything_else(python: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel_of(python)) as wheel, zipfile.ZipFile(build_wheel(tmp_path, compiler=False)) as plain:
        kept, whole = ({name for name in each.namelist() if ".dist-info/" not in name} for each in (plain, wheel))
        assert not {name for name in kept if name.endswith(".so")}
        assert kept == {name for name in whole if not name.endswith((".so", "/"))}  # auditwheel lists folders too


def test_a_pack_predicts_where_torch_is_not_installed(python: Path, tmp_path: Path) -> None:
    program, tensors = network([17, 40, 30, 6], 0.1, ["relu", "relu", "tanh"], 0)
    write(tmp_path / "a.pack", program, tensors, values="float16")
    pack = load(tmp_path / "a.pack")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [str(python), "-c", PROGRAM, str(tmp_path / "a.pack"), str(tmp_path / "a.c")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["compiled"] == (shutil.which("gcc") is not None)
    assert not {"torch", "scipy", "onnx"} & set(said["modules"])
    expected = [pack.predict([0.1 * i for i in range(17)]), pack.predict([[0.0] * 17] * 5)]
    for ours, theirs in zip(said["answers"], expected):
        assert np.abs(np.array(ours) - theirs).max() < 1e-6
    assert "void policy" in (tmp_path / "a.c").read_text()


def test_the_base_install_takes_tens_of_megabytes(python: Path) -> None:
    site = next(python.parents[1].glob("lib/python*/site-packages"))
    megabytes = sum(file.stat().st_size for file in site.rglob("*") if file.is_file()) / 1e6
    print(f"the base install takes {megabytes:.0f} MB")
    assert 10 < megabytes < 100
