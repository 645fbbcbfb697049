"""What Ray takes for a point that does nothing, and what a sweep takes for its own part of one."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from fewer.core.files.run_folder import METRICS
from fewer.sweep.executors.ray_pool import AHEAD, bring_home
from fewer.sweep.grid import grid_of
from fewer.sweep.plan import units_of
from scaling.machine import machine

__all__ = ["measured"]

EMPTY = (250, 1000, 10_000)
POINTS = 2000


def _nothing(unit: dict[str, Any]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """As much as a point sends and brings home, without its training."""
    return {"failures": {unit["name"]: None}}, {f"{unit['name']}/{METRICS}": b"{}"}


def measured() -> dict[str, Any]:
    """Seconds of a point, by part."""
    import logging

    import ray

    start = time.perf_counter()
    points = grid_of(
        {"base": {"task": "vision", "steps": 1}, "axes": {"seed": f"0-{POINTS - 1}"}, "resources": {"cohort": 1}}
    )
    units = units_of(points.points, points.resources)
    read = time.perf_counter() - start
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    away = ray.remote(_nothing)
    ray.get([away.remote(units[0].to_json()) for _ in range(4)])  # until its workers are there
    rows = []
    for count in EMPTY:
        asked = [units[number % len(units)].to_json() for number in range(count)]
        start = time.perf_counter()
        left: list[Any] = []
        while asked or left:  # as `work_on_ray` waits for them: one by one, over all that Ray has
            while asked and len(left) < AHEAD:
                left.append(away.remote(asked.pop()))
            _, left = ray.wait(left, num_returns=1)
        rows.append({"points": count, "seconds": round(time.perf_counter() - start, 4)})
    ray.shutdown()
    return {"machine": machine(), "empty": rows, "grid_us": round(1e6 * read / POINTS, 1), "home_us": _home()}


def _home(count: int = 200) -> float:
    """Microseconds that the files of a point take to be written safely."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        for number in range(count):
            bring_home({f"{number}/{METRICS}": b"{}", f"{number}/weights.safetensors": bytes(10_000)}, Path(folder))
        return round(1e6 * (time.perf_counter() - start) / count, 1)
