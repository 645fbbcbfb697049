"""Install a wheel into an empty environment and use it: the commands, a shipped pack, and no torch.

python scripts/release/try_wheel.py dist/fewer-*.whl [--python python3.13] [--extra train --with torch==2.11.0]
python scripts/release/try_wheel.py dist/fewer-*.whl --extra all --into VENV     whose torch must stay what it is
Packages come from the registry that pip is set to; nothing is compiled.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

PREDICT = """
import json, sys
import numpy as np
import fewer
from fewer.packs.file import codec
from fewer.packs.runtime import chain
answer = fewer.open_pack("digits-3197").predict(np.full((2, 1, 28, 28), 0.5, np.float32))
print(json.dumps({"python": sys.version.split()[0], "numpy": np.__version__, "torch": "torch" in sys.modules,
                  "finite": bool(np.isfinite(answer).all()),
                  "compiled": codec.compiled() and chain.kernels() is not None}))
"""
TORCH = "import importlib.metadata as m; print(''.join(d.version for d in m.distributions(name='torch')))"
TRAIN = ("train", "vision", "--set", "network=cnn0", "--steps", "4", "--batch", "16", "--prune", "snip",
         "--sparsity", "0.5", "--json", "--out")  # fmt: skip


def environment() -> dict[str, str]:
    """Nothing of this project's own environment, and no compiler."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {**kept, "CC": "false"}


def tried(wheel: Path, venv: Path, extra: str, beside: list[str], folder: Path) -> dict[str, object]:
    """What the installation says of itself; an error where anything fails, or where another torch came."""

    def call(*words: str) -> str:
        done = subprocess.run(words, env=environment(), cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(words)[:200]}: {done.stderr[-2000:]}")
        return done.stdout

    def torch() -> str:
        return call(inside, "-c", TORCH).strip()

    scripts = venv / ("Scripts" if sys.platform == "win32" else "bin")
    inside, command = str(scripts / "python"), str(scripts / "fewer")
    before = torch()
    asked = f"{wheel.resolve()}[{extra}]" if extra else str(wheel.resolve())
    call(inside, "-m", "pip", "install", "-q", "--only-binary=:all:", asked, *beside)
    if before not in ("", after := torch()):
        raise SystemExit(f"torch was {before} and is {after}")
    assert "usage: fewer" in call(command, "--help")
    call(command, "run", "digits-3197", "--info")
    found: dict[str, object] = json.loads(call(inside, "-c", PREDICT))
    if extra:
        call(command, *TRAIN, str(folder / "run"))
        found["trained with torch"] = torch()
    return found


def main() -> int:
    """Print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--into", type=Path, help="an environment that exists, in the place of an empty one")
    parser.add_argument("--extra", default="")
    parser.add_argument("--with", dest="beside", nargs="*", default=[], help="more to install, such as torch==2.11.0")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        venv = arguments.into.resolve() if arguments.into else Path(folder) / "venv"
        if not arguments.into:
            subprocess.run([arguments.python, "-m", "venv", str(venv)], env=environment(), check=True)
        found = tried(arguments.wheel, venv, arguments.extra, arguments.beside, Path(folder))
    print(json.dumps(found))
    return 0 if found["finite"] else 1


if __name__ == "__main__":
    sys.exit(main())
