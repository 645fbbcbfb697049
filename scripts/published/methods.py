"""The lists of docs/methods.md: every criterion and attack that is registered, in its own first words."""

from __future__ import annotations

from fewer.attack.attacks import ATTACKS
from fewer.core.system import imported
from fewer.pruning.criteria import CRITERIA

from .records import ROOT, markdown, replaced

__all__ = ["page"]


def page() -> str:
    """The page with both lists."""
    text = (ROOT / "docs" / "methods.md").read_text()
    for name, option, registry in (("criteria", "--prune", CRITERIA), ("attacks", "--attack", ATTACKS)):
        rows = [[f"`{option} {word}`", first_line(one.place)] for word, one in registry.items()]
        text = replaced(text, name, "the registry", markdown([name, "what it does"], rows))
    return text


def first_line(place: str) -> str:
    """Of what a place is documented by."""
    text: str = imported(place).__doc__.partition("\n")[0]
    return text.replace("<", "&lt;").replace("*", "\\*")
