"""Schemathesis reads the description and tries what it allows and what it does not: no answer is a server error."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import HealthCheck, settings

from fewer.bench.serve import serving

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import schemathesis
    from schemathesis import Case


@pytest.fixture(scope="module")
def description(server: serving):  # type: ignore[no-untyped-def]
    return schemathesis.openapi.from_url(f"{server.url}/openapi.json")


schema = schemathesis.pytest.from_fixture("description")


@schema.parametrize()
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.filterwarnings("ignore")
def test_nothing_the_description_allows_or_forbids_makes_the_server_fail(case: Case) -> None:
    case.call_and_validate()
