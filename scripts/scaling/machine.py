"""Which machine, and how busy others kept it."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

__all__ = ["machine"]


def machine() -> dict[str, Any]:
    """In a few words."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        model = platform.processor()
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "load_average": round(os.getloadavg()[0], 1),
    }
