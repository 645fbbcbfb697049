"""The page: tables and sentences from what was measured, with what they stand on beside them."""

from __future__ import annotations

from typing import Any

from scaling.estimates import access_points, million, sweep

__all__ = ["page"]

Record = dict[str, Any]


def page(record: Record) -> str:
    """All of it."""
    parts = [_HEAD, _rates(record["rates"]), _queue(record["rates"]), _million(record["rates"])]
    return "\n".join([*parts, _ray(record["ray"]), _networks(record["networks"])])


_HEAD = """# Past one machine

What one small machine was measured to do, models that are checked against it, and what three large jobs would take by
them. `scripts/scale.py` measures, models and writes this page; docs/scale.json has every figure. Rates of a machine
that others keep busy are low and its latencies long, so the estimates stand on processor time, which suffers less.
"""


def _machine(part: Record) -> str:
    told = part["machine"]
    return (
        f"Measured on {told['cores']} cores of {told['processor']}, Python {told['python']}, load average "
        f"{told['load_average']:g} when it began: {_busy(told)}."
    )


def _busy(told: Record) -> str:
    waiting = told["load_average"] / told["cores"]
    return "others kept it busy" if waiting > 1 else "otherwise idle"


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _rates(part: Record) -> str:
    most = [
        [f"as fast as 64 clients get answers, {w} worker{'s' * (w != '1')}", f"{r['answered']:,.0f}",
         f"{r['processor_us']:.0f} us", f"{r['together']:.1f}"]
        for w, r in part["most"].items()
    ]  # fmt: skip
    bulk = [
        [name, f"{r['a_second']:,.0f}", f"{r['processor_ms']:.2f} ms",
         f"{1e3 * r['processor_ms'] / r['phones']:.1f} us", f"{r['bytes_in']:,} / {r['bytes_out']:,}"]
        for name, r in part["batches"].items()
    ]  # fmt: skip
    head = ["one phone in a request", "a second", "processor time of the server", "in a round, mean"]
    batch = [f"{part['batches']['JSON']['phones']} phones in a request", "a second, one client", "processor time",
             "of a phone", "bytes in / out"]  # fmt: skip
    return f"## One machine\n{_machine(part)} Client and server share the cores.\n\n" + "\n".join(
        [_table(head, most), _table(batch, bulk)]
    )


def _queue(part: Record) -> str:
    costs = part["costs_us"]
    rows = [
        [f"{seen['asked']:,.0f}{' (fitted)' * said['fitted']}", f"{seen['processor_us']:.0f}",
         f"{_curve(costs, seen['together']):.0f}", f"{seen['together']:.1f}", f"{said['together']:.1f}",
         f"{seen['median_ms']:.1f} / {seen['p99_ms']:.0f}", f"{said['median_ms']:.1f} / {said['p99_ms']:.1f}"]
        for seen, said in zip(part["by_rate"], part["model"])
    ]  # fmt: skip
    others = [row for row, said in zip(part["by_rate"], part["model"]) if not said["fitted"]]
    worst = max(abs(_curve(costs, row["together"]) / row["processor_us"] - 1) for row in others)
    head = [
        "asked a second",
        "us a request",
        "by the model",
        "in a round",
        "by the queue",
        "ms median / 99 %",
        "by the queue",
    ]
    return f"""## A worker as a queue
A worker takes everything that arrived in one round of its event loop: {costs["round"]:.0f} us a round and
{costs["request"]:.0f} us a request, from the rates marked here and the fastest above; the others are predicted.
Medians of {part["times"]} turns of {part["seconds"]:g} s.
`scripts/scaling/queueing.py` is the queue, and a test holds it to the known mean wait of M/D/1.

{_table(head, rows)}
Given how many came together, the two numbers say the processor time of the rates that played no part in them within
{100 * worst:.0f} %. The queue alone, without the others on the machine, says what the last column has: where a worker
has to wait for a core, requests come together in longer rounds and latencies are those of the machine, not of the
queue.
"""


def _curve(costs: Record, together: float) -> float:
    return float(costs["request"] + costs["round"] / together)


def _million(part: Record) -> str:
    rows = [
        [e.name, f"{e.microseconds:.1f} us", f"{e.cores:,.0f}", f"{e.machines:,.0f}", f"{e.gigabits:,.1f}", e.breaks]
        for e in million(part)
    ]
    head = ["body", "processor time of a selection", "cores at 60 % use", "machines of 16 cores", "Gbit/s, both ways",
            "breaks first"]  # fmt: skip
    return f"""## A million selections a second
No state is shared between workers, so cores add up until something else is full. By the processor times above:

{_table(head, rows)}
Whoever has so many selections has them together: a base station's phones in one request. One request per phone is
paid for in reading and writing HTTP, not in selecting.
"""


def _ray(part: Record) -> str:
    rows = [
        [f"{r['points']:,}", f"{r['seconds']:.2f} s", f"{1e3 * r['seconds'] / r['points']:.2f} ms"]
        for r in part["empty"]
    ]
    told = sweep(part)
    return f"""## A sweep of 100,000 points on Ray
{_machine(part)} Points that do nothing, on two workers, waited for as `fewer sweep --on ray` waits:

{_table(["empty points", "in all", "a point"], rows)}
Beside that a point takes {part["grid_us"] / 1e3:.1f} ms to be read from its grid and
{part["home_us"] / 1e3:.1f} ms to be written home safely, one after the other in the process that leads the sweep. So
100,000 points cost the leader {told.minutes:.0f} minutes, whatever the cluster, and it can bring home
{told.a_second:,.0f} points a second: points of ten seconds keep {told.cores:,.0f} cores busy, shorter ones fewer.
{told.waiting}
What breaks first is that leader. Points that differ only in seed, mask and optimiser go together as cohorts, which
divides all of this by their size.
"""


def _networks(part: Record) -> str:
    rows = [
        [f"{r['access_points']:,.0f}", f"{r['made_s']:.2f} s", f"{r['made_mb']:,.0f} MB", f"{r['phone_us']:.0f} us"]
        for r in part["rows"]
    ]
    told = access_points(part)
    head = ["access points", "to make", "memory", "a phone: what it hears, reports and ideally gets"]
    return f"""## A network of a million access points
{_machine(part)} Processor time; 100 access points in a square kilometre, shadowing by waves.

{_table(head, rows)}
From the two largest, memory grows by {told.kilobytes:.1f} kB an access point: a million would take
{told.gigabytes:.0f} GB, and {told.seconds:.0f} s to make on one core. A phone looks at its neighbourhood only. Memory
breaks first, at about {told.largest:,.0f} access points in 16 GB. Tiles with a margin would hold a part each, and the
pack's table by master could be cut the same way; neither is built.
"""
