"""What the package's extras need, as its own metadata says, and what of it is installed here."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version

__all__ = ["Extra", "Needed", "extras"]

_LINE = re.compile(r"^([A-Za-z0-9._-]+)(?:\[([^\]]*)\])?\s*([^;]*)(?:;(.*))?$")


@dataclass(frozen=True)
class Needed:
    """One package that an extra asks for."""

    name: str
    wanted: str  # such as ">=2.0"
    found: str  # the installed version, or nothing

    @property
    def trouble(self) -> str:
        """Why it does not do, or nothing."""
        if not self.found:
            return f"{self.name} is not installed"
        least = re.search(r"[>=]=\s*([0-9.]+)", self.wanted)
        if least and _numbers(self.found) < _numbers(least[1]):
            return f"{self.name} {self.found} is older than {least[1]}"
        return ""


@dataclass(frozen=True)
class Extra:
    """What `pip install 'fewer[NAME]'` brings."""

    name: str
    needs: tuple[Needed, ...]

    @property
    def trouble(self) -> str:
        """What is missing, or nothing."""
        return ", ".join(need.trouble for need in self.needs if need.trouble)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text.partition("+")[0])[:3])


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def extras(lines: Iterable[str] | None = None) -> dict[str, Extra]:
    """Every extra with all that it needs, those that it includes too; `lines` are the metadata's own by default."""
    if lines is None:
        try:
            lines = requires("fewer") or ()
        except PackageNotFoundError:  # run from its source without being installed
            lines = ()
    own: dict[str, list[tuple[str, str, list[str]]]] = {}
    for line in lines:
        found = _LINE.match(line)
        if found is None or ("sys_platform" in line and not _here(line)):
            continue
        name, inside, wanted, condition = found.groups()
        extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)", condition or "")
        included = [part.strip() for part in (inside or "").split(",") if part.strip()]
        own.setdefault(extra[1] if extra else "", []).append((name, wanted.strip(), included))
    return {extra: Extra(extra, _needs(extra, own)) for extra in own if extra}


def _here(line: str) -> bool:
    """Whether a condition on the platform holds."""
    found = re.search(r"sys_platform\s*([!=]=)\s*['\"]([^'\"]+)", line)
    return found is None or (sys.platform == found[2]) == (found[1] == "==")


def _needs(extra: str, own: dict[str, list[tuple[str, str, list[str]]]]) -> tuple[Needed, ...]:
    found: dict[str, Needed] = {}
    for name, wanted, included in own.get(extra, []):
        if name == "fewer":
            found |= {need.name: need for part in included for need in _needs(part, own)}
        else:
            found[name] = Needed(name, wanted, _installed(name))
    return tuple(found.values())
