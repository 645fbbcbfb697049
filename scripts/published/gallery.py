"""docs/gallery.md: every picture of a kept result, with its title and the command that draws it."""

from __future__ import annotations

from fewer.core.registry import systems

from .records import placed, results
from .tables import pictures

__all__ = ["page"]

HEAD = """# Gallery

Pictures that studies drew from the results they kept; under each stands the command that makes it (`DIR` is a folder of
your own). Their tables, notes, files and all commands from nothing are in `RESULTS.md` of the repository.

![the same job with less, in four fields](fewer.png)"""


def page() -> str:
    """All of them, field by field."""
    parts, records = [HEAD], results()
    for family, names in placed().items():
        shown = [(name, picture) for name in names for picture in pictures(name, records[name])]
        if shown:
            title = systems()[family].description.heading if family in systems() else family
            parts.append(f"## {title}")
        for name, picture in shown:
            record = records[name]
            parts += [
                f"![{record['title']}]({picture})",
                f"{record['title']}.",
                f"`{record['command']}`; {record['hardware_in_words']}.",
            ]
    return "\n\n".join(parts) + "\n"
