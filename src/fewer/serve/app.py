"""The server's application: pages, descriptions and health by FastAPI, predictions straight through."""

from __future__ import annotations

import hmac
import json
import sys
from collections.abc import AsyncIterator, MutableMapping, Sequence
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from fastapi.staticfiles import StaticFiles

from fewer.core.errors import UserError
from fewer.core.machine.version import VERSION
from fewer.core.registry import system_of
from fewer.serve.describe import REFUSALS, described_task, prediction_paths
from fewer.serve.door import Door, checked_name
from fewer.serve.fields import Deadline
from fewer.serve.limits import Gate, Limits, Refusal
from fewer.serve.metrics import Metrics
from fewer.serve.models import Model
from fewer.serve.open_inference.routes import OpenInference
from fewer.serve.predict import Predictions, Receive, Scope, Send, refuse, whole_body
from fewer.serve.service import Service, services_of

__all__ = ["Application"]

STATIC = Path(__file__).parent / "static"
_OPEN = ("/healthz", "/static/", "/v2/health/")  # needs no token: says nothing about models
_TURN = 0.0005  # seconds that the event loop waits for a thread: a short answer should not wait for a long one
_HEADERS = {
    # pages load nothing from elsewhere and cannot be framed
    "content-security-policy": "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}


class Application:
    """An ASGI application around the models; token and limits hold for everything in it."""

    def __init__(
        self,
        models: Sequence[Model],
        *,
        limits: Limits | None = None,
        token: str | None = None,
        workers: int = 1,
        names: frozenset[str] | None = None,
    ) -> None:
        self.limits, self._token = limits or Limits(), token
        self._names = names  # that a Host header may have; None: any
        self.services: dict[str, Service] = services_of(models)
        self.metrics = Metrics(list(self.services), [model.name for model in models], workers)
        self.door = Door(self.limits, self.metrics)
        self.predictions = Predictions(self.services, self.limits, self.metrics)
        self.inference = OpenInference(self.predictions, lambda: True)
        self._listed = [self.services[model.task].described(model) for model in models]
        self._paths = {f"/v1/{task}/predict": task for task in self.services}
        self.web = self._built()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Predictions here, all else by FastAPI."""
        if scope["type"] != "http":
            await self.web(scope, receive, send)
            return
        path = scope["path"]
        try:
            self._admit(path, scope)
            if path == "/v2" or path.startswith("/v2/"):
                await self.inference.answer(scope, receive, send)
                return
            task = self._paths.get(path)
            if task is not None:
                await self.predictions.answer(task, scope, receive, send)
                return
            if scope["method"] not in ("GET", "HEAD"):
                receive = await self._read(scope, receive)
        except Refusal as refusal:
            await refuse(refusal, send)
            return
        await self.web(scope, receive, _relative(send))

    def _admit(self, path: str, scope: Scope) -> None:
        try:
            if self._names is not None:
                checked_name(scope["headers"], self._names)
            if self._token is not None:
                self._check_token(path, dict(scope["headers"]).get(b"authorization", b""), self._token)
        except Refusal as refusal:
            asked = f"{scope['method']} {path[:80]!r}: {refusal.reason}"
            self.door.sent_away(refusal.status, scope.get("client"), asked)
            if path in self._paths:
                self.metrics.request(self._paths[path], refusal.status, 0.0)
            raise

    def _check_token(self, path: str, given: bytes, token: str) -> None:
        page = path == "/" or path.lstrip("/") in self.services
        if path.startswith(_OPEN) or page:
            return
        scheme, _, word = given.partition(b" ")
        if scheme.lower() != b"bearer" or not hmac.compare_digest(word.strip(), token.encode()):
            reason = "no token, or a wrong one; send Authorization: Bearer TOKEN"
            raise Refusal(401, reason, (("www-authenticate", "Bearer"),))

    async def _read(self, scope: Scope, receive: Receive) -> Receive:
        """The whole body, bounded, as something FastAPI can receive; it is parsed in the event loop, so it is short."""
        length = dict(scope["headers"]).get(b"content-length", b"0")
        most = min(self.limits.body_bytes, max((s.page_bytes for s in self.services.values()), default=1 << 16))
        if length.isdigit() and int(length) > most:
            raise Refusal(413, f"{int(length)} bytes; expected at most {most}")
        body = await whole_body(receive, most, Deadline.after(self.limits.seconds))
        waiting = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Any:
            return waiting.pop() if waiting else await receive()

        return again

    def _built(self) -> FastAPI:
        @asynccontextmanager
        async def lifespan(_: FastAPI) -> AsyncIterator[None]:
            usual = sys.getswitchinterval()
            sys.setswitchinterval(_TURN)
            yield
            self.predictions.close()
            sys.setswitchinterval(usual)

        # FastAPI's own pages of documentation load their scripts from elsewhere
        web = FastAPI(title="fewer", version=VERSION, docs_url=None, redoc_url=None, lifespan=lifespan,
                      openapi_url=None)  # fmt: skip
        web.add_exception_handler(RequestValidationError, _invalid)
        web.add_exception_handler(Refusal, _refused)
        web.add_exception_handler(UserError, _mistaken)
        self._add_routes(web)
        self._add_pages(web)
        gate = Gate()
        for service in self.services.values():
            router = service.router(gate)
            if router is not None:
                web.include_router(router, responses=REFUSALS)
        return web

    def _add_routes(self, web: FastAPI) -> None:
        # written once: a client who asks for them again and again is to cost little
        listed = _json(self._listed)
        described: list[bytes] = []

        @web.get("/healthz", summary="Whether the server answers")
        async def health() -> dict[str, str]:
            return {"status": "ok"}

        @web.get("/v1/models", summary="What is served", response_model=list[dict[str, Any]], responses=REFUSALS)
        async def models() -> Response:
            return Response(listed, media_type="application/json")

        @web.get("/metrics", summary="Counters in Prometheus' format", response_class=PlainTextResponse)
        async def metrics() -> Response:
            return Response(self.metrics.text(), media_type="text/plain; version=0.0.4")

        @web.get("/openapi.json", include_in_schema=False)
        async def openapi() -> Response:
            if not described:
                found = web.openapi()
                described.append(_json({**found, "paths": {**prediction_paths(self.services), **found["paths"]}}))
            return Response(described[0], media_type="application/json")

    def _add_pages(self, web: FastAPI) -> None:
        @web.get("/", include_in_schema=False)
        async def first() -> Response:
            return FileResponse(STATIC / "index.html", headers=_HEADERS)

        pages = {task: folder for task in self.services if (folder := _page_folder(task)) is not None}
        for task, folder in pages.items():
            web.get(f"/{task}", include_in_schema=False)(_page(folder / "index.html"))
            web.mount(f"/static/{task}", StaticFiles(directory=folder))

        @web.get("/v1/tasks", include_in_schema=False)
        async def tasks() -> list[dict[str, Any]]:
            return [described_task(task, service, pages.get(task)) for task, service in self.services.items()]

        web.mount("/static", StaticFiles(directory=STATIC))


def _json(value: Any) -> bytes:
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def _relative(send: Send) -> Send:
    """Redirects by path alone: what scheme and name the client used, only a proxy before this server knows."""

    async def sent(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start" and 300 <= message["status"] < 400:
            message["headers"] = [(n, _path(v) if n == b"location" else v) for n, v in message["headers"]]
        await send(message)

    return sent


def _path(location: bytes) -> bytes:
    parts = urlsplit(location)
    query = b"?" + parts.query if parts.query else b""
    return b"/" + parts.path.lstrip(b"/") + query  # two slashes would begin another server's name


def _page_folder(task: str) -> Path | None:
    package = system_of(task).page
    return Path(str(files(package))) if package else None


def _page(file: Path) -> Any:
    async def page() -> Response:
        return FileResponse(file, headers=_HEADERS)

    return page


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return JSONResponse({"detail": error.reason}, error.status, dict(error.headers))


async def _mistaken(request: Request, error: Exception) -> Response:
    return JSONResponse({"detail": str(error)}, 422)


async def _invalid(request: Request, error: Exception) -> Response:
    """One line, without echoing what was sent: it may hold what JSON cannot."""
    assert isinstance(error, RequestValidationError)
    places = ["".join(f".{part}" for part in fault["loc"][1:]) for fault in error.errors()]
    faults = [f"body{place}: {fault['msg']}" for place, fault in zip(places, error.errors())]
    status = 400 if any(fault["type"] == "json_invalid" for fault in error.errors()) else 422
    return Response(json.dumps({"detail": "; ".join(faults[:5])[:400]}), status, media_type="application/json")
