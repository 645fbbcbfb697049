"""The lowest versions that pyproject.toml allows, as words for pip or uv; tried outside `make`, as they are gigabytes.

python scripts/release/lower_bounds.py train > lowest.txt     an extra, or nothing for the base install
uv pip install -c lowest.txt 'dist/fewer-….whl[train]'
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

__all__ = ["lowest", "requirements"]

ROOT = Path(__file__).parents[2]


def requirements(extra: str) -> list[str]:
    """What the base and an extra ask for, extras of our own followed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found: list[str] = list(project["dependencies"])
    waiting, seen = [extra] if extra else [], set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if name not in project["optional-dependencies"]:
            raise SystemExit(f"no extra {name!r}; there are {', '.join(project['optional-dependencies'])}")
        for word in project["optional-dependencies"][name]:
            own = re.match(r"fewer(?:\[([^\]]*)\])?$", word)
            if own:
                waiting += (own[1] or "").split(",") if own[1] else []
            else:
                found.append(word)
    return sorted(set(found))


def lowest(extra: str) -> list[str]:
    """`name>=1.2` as `name==1.2`."""
    return [word.replace(">=", "==") for word in requirements(extra)]


if __name__ == "__main__":
    print("\n".join(lowest(sys.argv[1] if len(sys.argv) > 1 else "")))
