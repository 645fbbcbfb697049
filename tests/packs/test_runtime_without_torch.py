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

from fewer.packs.pack import load, write
from tests.packs.test_runtime_chain import network

ROOT = Path(__file__).parents[2]
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
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / name)
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("*.so", "*.egg-info", "__pycache__"))
    build = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(folder)], cwd=folder, check=True, capture_output=True)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
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
