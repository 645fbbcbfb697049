"""From what was measured to what more would take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["AccessPoints", "Million", "SweepCost", "access_points", "million", "sweep"]

Record = dict[str, Any]
SELECTIONS = 1e6  # a second
USE = 0.6  # of a core: beyond, waiting grows quickly
CORES = 16  # of a machine
HEADERS = 400  # bytes of a request's and an answer's headers together, and of what surrounds them on the wire
NETWORK = 25.0  # Gbit/s of a machine
POINTS, SECONDS = 100_000, 10.0  # of a sweep, and of one of its points
GIGABYTES = 16.0


@dataclass(frozen=True)
class Million:
    """Selections in one kind of body."""

    name: str
    microseconds: float
    cores: float
    machines: float
    gigabits: float
    breaks: str


def million(rates: Record) -> list[Million]:
    """One phone in a request, and many, in every kind of body."""
    single = rates["most"]["1"]["processor_us"]
    found = [_million("one phone, JSON", single, 60 + 330 + HEADERS)]  # bytes of the bench's phone and its answer
    for name, row in rates["batches"].items():
        size = (row["bytes_in"] + row["bytes_out"] + HEADERS) / row["phones"]
        found.append(_million(f"{row['phones']} phones, {name}", 1e3 * row["processor_ms"] / row["phones"], size))
    return found


def _million(name: str, microseconds: float, size: float) -> Million:
    cores = SELECTIONS * microseconds * 1e-6 / USE
    machines, gigabits = max(1.0, cores / CORES), SELECTIONS * size * 8e-9
    full = gigabits / machines > NETWORK
    return Million(name, microseconds, cores, machines, gigabits, "the network" if full else "processors")


@dataclass(frozen=True)
class SweepCost:
    """What the leader of a sweep does by itself."""

    minutes: float
    a_second: float
    cores: float
    waiting: str


def sweep(ray: Record) -> SweepCost:
    """Of 100,000 points, from the longest run of empty ones."""
    small, large = ray["empty"][0], ray["empty"][-1]
    each = [row["seconds"] / row["points"] for row in (small, large)]
    whole = each[1] + 1e-6 * (ray["grid_us"] + ray["home_us"])
    grows = each[1] > 1.2 * each[0]
    said = "does" if grows else "does not"
    counts = f"{small['points']:,} to {large['points']:,}"
    waiting = f"A point's cost {said} grow from {counts} points, of which Ray has a thousand at once."
    return SweepCost(POINTS * whole / 60, 1 / whole, SECONDS / whole, waiting)


@dataclass(frozen=True)
class AccessPoints:
    """A million of them."""

    kilobytes: float
    gigabytes: float
    seconds: float
    largest: float


def access_points(networks: Record) -> AccessPoints:
    """By the slope between the two largest networks."""
    first, last = networks["rows"][-2:]
    step = last["access_points"] - first["access_points"]
    memory = (last["made_mb"] - first["made_mb"]) / step  # MB an access point
    seconds = (last["made_s"] - first["made_s"]) / step
    more = 1e6 - last["access_points"]
    whole = (last["made_mb"] + more * memory) / 1024
    largest = last["access_points"] + (1024 * GIGABYTES - last["made_mb"]) / memory
    return AccessPoints(1024 * memory, whole, last["made_s"] + more * seconds, largest)
