"""A hook of the documentation's site: pictures say how large they are, so that no text moves when they arrive."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any

__all__ = ["on_page_content"]

_SOURCE = re.compile(r'<img\b(?![^>]*\bwidth=)[^>]*\bsrc="([^":]+)"')


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """The page's HTML with width and height of every picture of ours."""
    folder = (Path(config["docs_dir"]) / page.file.src_uri).parent

    def sized(found: re.Match[str]) -> str:
        size = _size(folder / found[1])
        return found[0] + (f' width="{size[0]}" height="{size[1]}"' if size else "")

    return _SOURCE.sub(sized, html)


def _size(picture: Path) -> tuple[int, int] | None:
    if not picture.is_file():
        return None
    if picture.suffix == ".svg":
        box = re.search(r'viewBox="0 0 (\d+)(?:\.\d+)? (\d+)', picture.read_text())
        return (int(box[1]), int(box[2])) if box else None
    width, height = struct.unpack(">II", picture.read_bytes()[16:24])  # of a PNG's header
    return width, height
