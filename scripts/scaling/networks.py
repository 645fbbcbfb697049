"""Networks of ever more access points: memory and processor time, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from scaling.machine import machine

__all__ = ["measured"]

SIZES = (1_000, 10_000, 100_000, 150_000)  # as far as three gigabytes go
PHONES = 2000
_CODE = """
import json, math, sys, time
from pathlib import Path
from fewer.systems.cellfree.task.settings import Settings
from fewer.systems.cellfree.task.survey import World

def most():
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) / 1024

count, phones = int(sys.argv[1]), int(sys.argv[2])
empty, start = most(), time.process_time()
world = World.make(Settings(access_points=count, side_m=1000 * math.sqrt(count / 100), shadowing="spectral"))
made, memory = time.process_time() - start, most()
start = time.process_time()
world.survey(phones, part="test")
print(json.dumps({"access_points": count, "made_s": made, "made_mb": memory - empty,
                  "phone_us": 1e6 * (time.process_time() - start) / phones, "peak_mb": most()}))
"""


def measured() -> dict[str, Any]:
    """Density stays that of the paper: 100 access points in a square kilometre."""
    rows = []
    for count in SIZES:
        words = [sys.executable, "-c", _CODE, str(count), str(PHONES)]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        rows.append({name: round(value, 3) for name, value in json.loads(done.stdout).items()})
    return {"machine": machine(), "phones": PHONES, "rows": rows}
