"""One application in this process for requests, one server of its own for load, browsers and schemas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from fewer.bench.load import serving
from fewer.serve.app import Application
from fewer.serve.limits import Limits
from fewer.serve.models import open_models
from tests.serve.browsing import CHROMIUM
from tests.serve.sockets import PATIENT
from tests.waiting import GIVE_UP_SECONDS


@pytest.fixture(scope="package")
def application() -> Application:
    return Application(open_models(["cellfree-80", "digits-dense", "digits-3197"]), limits=Limits(body_bytes=1 << 20))


@pytest.fixture(scope="package")
def client(application: Application) -> Iterator[TestClient]:
    with TestClient(application) as found:
        yield found


@pytest.fixture(scope="package")
def server() -> Iterator[serving]:
    with serving(["cellfree-80", "digits-dense", "digits-3197"], *PATIENT) as found:
        yield found


@pytest.fixture(scope="module")  # its event loop runs as long as it lives, and other tests run loops of their own
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="no playwright: pip install playwright")
    with sync_api.sync_playwright() as play:
        patience = 1000 * GIVE_UP_SECONDS  # ms
        found = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], timeout=patience)
        yield found
        found.close()
