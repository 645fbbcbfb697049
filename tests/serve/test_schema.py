"""Schemathesis reads the description and tries what it allows and what it does not: no answer is a server error."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings

from fewer.bench.load import serving

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import schemathesis
    from schemathesis import Case, GenerationMode
    from schemathesis.checks import not_a_server_error

pytestmark = pytest.mark.filterwarnings("ignore")  # of schemathesis and what it stands on
EXAMPLES = int(os.environ.get("FEWER_SCHEMA_EXAMPLES", "3"))  # of each operation, allowed and forbidden
MODELS = ["cellfree-80", "digits-3197", "control-hopper-95", "nowcast-80"]
LONG = ("POST /v1/nowcast/forecast",) if EXAMPLES < 10 else ()  # draws weather for seconds before it answers


@pytest.fixture(scope="module")
def server() -> Iterator[serving]:
    with serving(MODELS) as found:
        yield found


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["allowed", "forbidden"])
def test_nothing_the_description_allows_or_forbids_makes_the_server_fail(server: serving, mode: GenerationMode) -> None:
    description = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    tried: dict[str, set[int]] = {}
    for found in description.get_all_operations():
        operation = found.ok()
        if operation.label in LONG:
            continue
        cases = operation.as_strategy(generation_mode=mode)

        @settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @given(cases)
        def attempt(case: Case) -> None:
            answer = case.call_and_validate(checks=[not_a_server_error])
            tried.setdefault(case.operation.label, set()).add(answer.status_code)

        # an operation that takes nothing has nothing forbidden
        if mode is GenerationMode.POSITIVE or operation.body or operation.query:
            attempt()
    asked = ("POST /v1/cellfree/predict", "POST /v1/vision/predict", "POST /v1/vision/attack", "GET /v2/health/ready")
    asked += ("POST /v1/nowcast/predict", *(f"POST /v2/models/{name}/infer" for name in MODELS))
    assert {label for label in asked if mode is GenerationMode.POSITIVE or "POST" in label} <= tried.keys()
    assert all(status < 500 for statuses in tried.values() for status in statuses), tried
    if mode is GenerationMode.POSITIVE:
        assert 200 in tried["POST /v1/cellfree/predict"] and 200 in tried["GET /v1/models"]
        assert 200 in tried["POST /v2/models/cellfree-80/infer"]
