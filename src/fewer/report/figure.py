"""A matplotlib figure as the bytes of a file, so that it is written whole, beside what it shows, or not at all."""

from __future__ import annotations

import io
from typing import Any

__all__ = ["png"]


def png(figure: Any, dpi: int = 110) -> bytes:
    """The figure as it looks now; it is closed."""
    from matplotlib import pyplot

    memory = io.BytesIO()
    figure.savefig(memory, format="png", dpi=dpi)
    pyplot.close(figure)
    return memory.getvalue()
