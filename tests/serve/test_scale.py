"""The models behind docs/scale.md: the queue has the wait that is known, and the page says what was measured."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))


@pytest.mark.parametrize("use", [0.3, 0.7])
def test_rounds_of_one_request_by_chance_wait_as_long_as_is_known(use: float) -> None:
    from scaling.queueing import Costs, queued

    times = np.cumsum(np.random.default_rng(1).exponential(1 / use, 200_000)).tolist()  # of a service time of 1
    found = queued(times, Costs(request=1.0, round=0.0), most=1)
    assert found.together == 1 and found.busy == pytest.approx(use, rel=0.02)
    assert found.mean_wait == pytest.approx(use / (2 * (1 - use)), rel=0.05)  # Pollaczek and Khinchine's formula


def test_a_worker_that_falls_behind_takes_more_at_once_and_keeps_up() -> None:
    from scaling.queueing import Costs, arrivals, queued

    costs = Costs(request=1e-5, round=1e-3)
    slow, fast = (queued(arrivals(rate, 2.0), costs) for rate in (400.0, 20_000.0))
    assert slow.together == 1 and slow.median == pytest.approx(costs.request + costs.round)
    assert fast.together > 15 and fast.busy <= 1 and fast.slowest < 0.01  # one by one it would need 20 cores


def test_costs_are_found_again() -> None:
    from scaling.queueing import Costs, fitted

    costs = Costs(request=5e-5, round=3e-4)
    found = fitted([(costs.of(together), together) for together in (1.0, 3.0, 20.0)])
    assert found.request == pytest.approx(5e-5) and found.round == pytest.approx(3e-4)


def test_the_page_is_what_the_kept_figures_make() -> None:
    from scaling.page import page

    record = json.loads((ROOT / "docs" / "scale.json").read_text())
    assert (ROOT / "docs" / "scale.md").read_text() == page(record)


def test_estimates_follow_the_figures() -> None:
    from scaling.estimates import access_points, million, sweep

    rows = [{"access_points": n, "made_mb": 10 * n / 1e3, "made_s": n / 1e4} for n in (1e5, 2e5)]
    told = access_points({"rows": rows})
    assert told.gigabytes == pytest.approx(10_000 / 1024) and told.seconds == pytest.approx(100)
    bulk = {"phones": 100, "processor_ms": 1.0, "bytes_in": 600, "bytes_out": 1000}
    found = million({"most": {"1": {"processor_us": 60.0}}, "batches": {"JSON": bulk}})
    assert [round(each.cores) for each in found] == [100, 17]
    cost = sweep({"empty": [{"points": 10, "seconds": 0.01}] * 2, "grid_us": 1000.0, "home_us": 8000.0})
    assert cost.minutes == pytest.approx(100_000 * 0.01 / 60) and cost.cores == pytest.approx(1000)
