"""Schemathesis reads the description and tries what it allows and what it does not: no answer is a server error."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import HealthCheck, given, settings

from fewer.bench.load import serving

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import schemathesis
    from schemathesis import Case, GenerationMode
    from schemathesis.checks import not_a_server_error

pytestmark = pytest.mark.filterwarnings("ignore")  # of schemathesis and what it stands on
EXAMPLES = 6  # of each operation, allowed and forbidden


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["allowed", "forbidden"])
def test_nothing_the_description_allows_or_forbids_makes_the_server_fail(server: serving, mode: GenerationMode) -> None:
    description = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    tried: dict[str, set[int]] = {}
    for found in description.get_all_operations():
        operation = found.ok()
        cases = operation.as_strategy(generation_mode=mode)

        @settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @given(cases)
        def attempt(case: Case) -> None:
            answer = case.call_and_validate(checks=[not_a_server_error])
            tried.setdefault(case.operation.label, set()).add(answer.status_code)

        # an operation that takes nothing has nothing forbidden
        if mode is GenerationMode.POSITIVE or operation.body or operation.query:
            attempt()
    assert {"POST /v1/cellfree/predict", "POST /v1/vision/predict", "POST /v1/vision/attack"} <= tried.keys()
    assert all(status < 500 for statuses in tried.values() for status in statuses), tried
    if mode is GenerationMode.POSITIVE:
        assert 200 in tried["POST /v1/cellfree/predict"] and 200 in tried["GET /v1/models"]
