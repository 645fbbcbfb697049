"""Single-phone selections a second through HTTP on loopback, server and client on the same processor."""

from __future__ import annotations

import time

from fewer.bench.load import CORES, Machine, apart, load, serving, still
from fewer.bench.outside import wrk
from fewer.bench.row import Row

__all__ = ["PATH", "PHONE", "run"]

USES_PACKS = True  # and is slower where the C kernels are missing

RATE = 2000.0  # selections a second that are asked for
SLOWEST = 0.020  # seconds, 99th percentile that is asked for
PHONES = 64  # connections at a fixed rate: so many that a request rarely waits for one to be free
PATH = "/v1/cellfree/predict"
PHONE = {"master": 21, "rsrp_db": [-113.8, -131.9, -124.9]}


def run(quick: bool = False) -> list[Row]:
    """The rate that is asked for, then as fast as 16 clients get answers."""
    seconds = 3.0 if quick else 10.0
    with serving(["cellfree-80"]) as server, apart(server), still():
        load(server.port, PATH, PHONE, rate=500.0, seconds=1.0)
        before, machine = server.answered("cellfree", SLOWEST), Machine.now(server)
        asked = load(server.port, PATH, PHONE, rate=RATE, seconds=seconds, connections=PHONES)
        others, stolen = machine.taken(Machine.now(server))
        after = server.answered("cellfree", SLOWEST)
        spent = server.processor_seconds() + time.process_time()
        most = load(server.port, PATH, PHONE, rate=None, seconds=seconds)
        spent = server.processor_seconds() + time.process_time() - spent
        theirs = wrk(f"{server.url}{PATH}", PHONE, seconds=seconds, connections=PHONES)
    work, room = 1e6 * spent / most.statuses[200], 1e6 * CORES / RATE
    within = (after[0] - before[0]) / (after[1] - before[1])
    slow, usual, against = asked.percentile(99), asked.percentile(50), "what is asked"
    limit, both = 1e3 * SLOWEST, f"{CORES} cores at that rate"
    # a busy machine makes both sides wait, but not work more; so does a host that runs other machines
    shared = f"{against}; other processes had {others:.0%} of the cores, the host took {stolen:.1%}"
    rows = [
        Row(f"selections/s held of {RATE:g} asked for", asked.rate, RATE, "1/s", asked.rate / RATE, against, 1.0),
        Row("99th percentile at that rate", 1e3 * slow, limit, "ms", SLOWEST / slow, shared, 1.0),
        Row("median at that rate", 1e3 * usual, limit, "ms", SLOWEST / usual, shared),
        Row(f"answered by the server within {limit:g} ms", 100 * within, 99.0, "%", within / 0.99, shared, 1.0),
        Row("processor time a selection, both sides", work, room, "us", room / work, both, 1.0),
        Row("as fast as 16 clients get answers", most.rate, RATE, "1/s", most.rate / RATE, against, 1.0),
    ]
    if theirs is not None and not theirs.wrong:
        name = f"as fast as wrk's {PHONES} connections get answers"
        rows.append(Row(name, theirs.rate, RATE, "1/s", theirs.rate / RATE, against, 1.0))
        rows.append(Row("99th percentile of those", 1e3 * theirs.p99, limit, "ms", SLOWEST / theirs.p99, shared))
    return rows
