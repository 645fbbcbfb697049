"""Whether the files that name a version name a tag's; the release workflow asks before it builds anything.

python scripts/release/tag.py v0.2.0     one line for each file that says something else
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

__all__ = ["disagreements"]

ROOT = Path(__file__).parents[2]
PLACES = {
    "pyproject.toml": r'^version = "(.*)"$',
    "src/fewer/core/machine/version.py": r'^VERSION = "(.*)"$',
    "CITATION.cff": r"^version: (.*)$",
    "CHANGELOG.md": r"^## (.*)$",  # the newest heading, which must not say that it is still in the making
}


def disagreements(tag: str, root: Path = ROOT) -> list[str]:
    """What each file says that does not say the version of a tag."""
    if not re.fullmatch(r"v\d+\.\d+\.\d+", tag):
        return [f"the tag is {tag!r}; a release has one such as v0.2.0"]
    found = []
    for name, pattern in PLACES.items():
        match = re.search(pattern, (root / name).read_text(encoding="utf-8"), re.MULTILINE)
        if match is None or match[1] != tag[1:]:
            found.append(f"{name} says {match[1] if match else 'no version'!r}, the tag {tag[1:]!r}")
    return found


if __name__ == "__main__":
    wrong = disagreements(sys.argv[1])
    print("\n".join(wrong) or f"{sys.argv[1]}: all {len(PLACES)} files say so")
    sys.exit(bool(wrong))
