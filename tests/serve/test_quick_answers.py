"""Answers that are written from arrays say what the slow ones say, and requests that are read at once are the same."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from fewer.serve.app import Application
from fewer.serve.fields import Deadline, RequestField
from fewer.serve.reading.nested import read_json
from fewer.serve.written import shares, write_json

LATER = Deadline.after(math.inf)
FIELDS = (RequestField("master", (), "int64"), RequestField("rsrp_db", (3,), "float32", gaps=True))


@pytest.mark.parametrize("value", [0.0, 1.0, 0.5, 5e-7, 0.9999995, 0.123456])
def test_shares_are_rounded_to_six_digits(value: float) -> None:
    assert shares(np.array([[value, 0.25]])) == [f"{value:.6f},0.250000"]


def test_many_phones_are_answered_as_each_alone(application: Application) -> None:
    service = application.services["cellfree"]
    model, generator = service.model(None), np.random.default_rng(3)
    arrays = [generator.integers(0, 100, 700), np.zeros((700, 3), np.float32), np.ones((700, 3), np.float32)]
    output = generator.random((700, model.output.shape[0])).astype(np.float32)
    for wrong in (0.0, np.nan):
        output[5, 1] = wrong
        quick = json.loads(service.written(model, arrays, output, single=False, deadline=LATER))
        slow = json.loads(write_json(service.answer(model, arrays, output, False), LATER))
        for ours, theirs in zip(quick["phones"], slow["phones"], strict=True):
            left, right = ours.pop("probabilities"), theirs.pop("probabilities")
            assert ours == theirs
            assert all(a == b if b is None else abs(a - b) <= 1.01e-6 for a, b in zip(left, right, strict=True))


ROWS = some.lists(some.none() | some.floats(-200, 200), min_size=3, max_size=3)


@settings(max_examples=60, deadline=None)
@given(some.lists(some.tuples(some.integers(0, 99), ROWS), min_size=1, max_size=4))
def test_a_short_request_read_at_once_is_the_same_as_one_that_is_walked(phones: list[tuple[int, list[float]]]) -> None:
    said = {"master": [m for m, _ in phones], "rsrp_db": [row for _, row in phones]}
    short = json.dumps(said).encode()
    long = short + b" " * (1 << 14)  # blanks make it too long to be read at once
    found = [read_json(body, FIELDS, most_samples=8, deadline=LATER) for body in (short, long)]
    for name, array in found[0].items():
        assert array.dtype == found[1][name].dtype
        np.testing.assert_array_equal(array, found[1][name])
