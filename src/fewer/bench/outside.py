"""An outside client beside our own: wrk, where it is installed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Outside", "wrk"]

_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}


@dataclass(frozen=True)
class Outside:
    """What it saw."""

    rate: float  # answers a second
    p99: float  # seconds
    wrong: int  # answers that were not good, and connections that failed


def wrk(url: str, content: Any, *, seconds: float, connections: int) -> Outside | None:
    """Send the same JSON as soon as a connection is free; None where there is no wrk."""
    program = shutil.which("wrk")
    if program is None:
        return None
    body = json.dumps(content)
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "post.lua"
        script.write_text(
            f'wrk.method = "POST"\nwrk.body = {json.dumps(body)}\nwrk.headers["content-type"] = "application/json"\n'
        )
        words = [program, "-t1", f"-c{connections}", f"-d{seconds:.0f}s", "--latency", "-s", str(script), url]
        told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return read(told)


def read(told: str) -> Outside:
    """Its report."""
    rate = re.search(r"Requests/sec:\s*([\d.]+)", told)
    slow = re.search(r"99%\s*([\d.]+)(us|ms|s|m)\b", told)
    if rate is None or slow is None:
        raise ValueError(f"a report of wrk that cannot be read: {told[:200]}")
    wrong = [
        int(number) for number in re.findall(r"(?:Non-2xx or 3xx responses:|connect|read|write|timeout) (\d+)", told)
    ]
    return Outside(float(rate[1]), float(slow[1]) * _UNITS[slow[2]], sum(wrong))
