"""Names that a package offers and imports only when they are asked for, so that importing it stays light."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = ["lazily"]


def lazily(package: str, offered: Mapping[str, Sequence[str]]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package that offers names from modules: {"fewer.core.task": ("Task", ...)}."""
    places = {name: module for module, names in offered.items() for name in names}

    def find(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = importlib.import_module(places[name])
        return getattr(module, name) if hasattr(module, name) else importlib.import_module(f"{module.__name__}.{name}")

    return find, lambda: sorted(places)
