"""What the page tells of the whole map: against choices that need no network, and where it opens."""

from __future__ import annotations

import numpy as np
import pytest
from fastapi.testclient import TestClient

from fewer.serve.app import Application
from fewer.serve.models import open_models
from fewer.systems.cellfree.quality import choice_quality

pytest.importorskip("scipy", reason="no scipy: pip install 'fewer[cellfree]'")


def test_the_page_opens_where_the_share_of_the_signal_is_nearest_to_the_mean_of_a_grid_of_places() -> None:
    with TestClient(Application(open_models(["cellfree-80"]))) as client:
        quality, area = client.get("/v1/cellfree/quality").json(), client.get("/v1/cellfree/map").json()
        (west, south), side = area["corner_m"], area["side_m"]

        def apart(x: float, y: float) -> float:
            share = client.post("/v1/cellfree/place", json={"x_m": x, "y_m": y}).json()["signal"]["chosen"]
            return abs(float(share) - float(quality["signal"]))

        steps = [(n + 0.5) / 8 for n in range(8)]
        others = [apart(round(west + a * side, 3), round(south + b * side, 3)) for a in steps for b in steps]
        assert apart(**{axis.removesuffix("_m"): metres for axis, metres in quality["typical"].items()}) == min(others)


def test_serving_all_that_were_measured_is_judged_like_the_networks_choice() -> None:
    with TestClient(Application(open_models(["cellfree-80"]))) as client:
        quality = client.get("/v1/cellfree/quality").json()
    every = quality["all_measured"]
    assert quality["master_signal"] < every["signal"] < quality["signal"] and every["right"] < quality["right"]


def test_only_what_should_serve_counts_as_signal() -> None:
    # four places, three candidates: the second is 10 dB below the first, the third 40 dB and needless
    gap = np.array([[0.0, 10.0, 40.0]] * 4)
    chosen = np.array([[True, False, False], [True, True, True], [True, True, False], [True, True, False]])
    found = choice_quality(gap, chosen, -gap, threshold_db=20.0, side=2)
    assert (found["signal"], found["right"]) == (pytest.approx((1 / 1.1 + 3) / 4, abs=1e-4), 0.5)
