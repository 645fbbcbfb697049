"""The server's application: pages, descriptions and health by FastAPI, predictions straight through."""

from __future__ import annotations

import asyncio
import hmac
import json
import platform
import sys
from collections.abc import AsyncIterator, MutableMapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from starlette.concurrency import run_in_threadpool

from fewer.core.errors import UserError
from fewer.core.machine.version import VERSION
from fewer.packs.compiled import missing
from fewer.serve.describe import REFUSALS, description
from fewer.serve.door import Door, checked_name, named_host
from fewer.serve.exchange import Exchange, Outgoing
from fewer.serve.fields import HERE, Deadline
from fewer.serve.limits import Gate, Limits, Refusal
from fewer.serve.models import Model
from fewer.serve.observe.access_log import AccessLog
from fewer.serve.observe.exposition import exposition
from fewer.serve.observe.metrics import Metrics, Series
from fewer.serve.open_inference.routes import OpenInference
from fewer.serve.pages import OPEN_PAGES, Pages, wants_page
from fewer.serve.predict import Predictions, Receive, Scope, Send, refuse, whole_body
from fewer.serve.service import Service, services_of

__all__ = ["Application"]

_OPEN = ("/healthz", "/readyz", "/static/", "/v2/health/")  # needs no token: says nothing about models
_TURN = 0.0005  # seconds that the event loop waits for a thread: a short answer should not wait for a long one


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
        access_log: str | None = None,
    ) -> None:
        self.limits, self._token = limits or Limits(), token
        self._names = names  # that a Host header may have; None: any
        self.ready = True  # until told to stop: whoever sends clients here should send them elsewhere
        self.services: dict[str, Service] = services_of(models)
        names_of_models = [model.name for model in models]
        self.metrics = Metrics(list(self.services), names_of_models, workers, facts=_facts(models))
        self.outgoing = Outgoing(AccessLog(access_log) if access_log else None)
        self.door = Door(self.limits, self.metrics)
        self.predictions = Predictions(self.services, self.limits, self.metrics)
        self.inference = OpenInference(self.predictions, lambda: self.ready)
        self._listed = [self.services[model.task].described(model) for model in models]
        self._paths = {f"/v1/{task}/predict": task for task in self.services}
        self._pages = Pages(self.services)
        self.web = self._built()
        _forget_routes()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Predictions here, all else by FastAPI."""
        if scope["type"] != "http":
            await self.web(scope, receive, send)
            return
        send = Exchange(scope, send, self.outgoing).send
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
            if refusal.status == 401 and wants_page(scope):
                await self._pages.asking_for_token(scope, receive, send)
                return
            await refuse(refusal, send)
            return
        if scope["method"] == "HEAD":  # as GET; the body is left out on its way
            scope = {**scope, "method": "GET"}
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
        page = path in OPEN_PAGES or path.lstrip("/") in self.services
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
            self.outgoing.open(self.metrics.worker)
            yield
            self.predictions.close()
            self.outgoing.close()
            sys.setswitchinterval(usual)

        # FastAPI's own pages of documentation load their scripts from elsewhere
        web = FastAPI(title="fewer", version=VERSION, docs_url=None, redoc_url=None, lifespan=lifespan,
                      openapi_url=None)  # fmt: skip
        web.add_exception_handler(RequestValidationError, _invalid)
        web.add_exception_handler(Refusal, _refused)
        web.add_exception_handler(UserError, _mistaken)
        web.add_exception_handler(404, self._pages.missing)
        self._add_health(web)
        self._add_descriptions(web)
        self._pages.add(web)
        for service in self.services.values():
            router = service.router(Gate())  # of its own: one task's page does not wait for another's
            if router is not None:
                web.include_router(router, responses=REFUSALS)
        return web

    def _add_health(self, web: FastAPI) -> None:
        @web.get("/healthz", summary="Whether the server answers: if not, start it anew")
        async def health() -> dict[str, str]:
            return {"status": "ok"}

        unready: dict[int | str, dict[str, Any]] = {503: {"description": "told to stop; ask another server"}}

        @web.get("/readyz", summary="Whether to send it requests: not when it is leaving", responses=unready)
        async def ready() -> Response:
            return JSONResponse({"status": "ready" if self.ready else "leaving"}, 200 if self.ready else 503)

        @web.get("/metrics", summary="Counters in Prometheus' format", response_class=PlainTextResponse)
        async def metrics() -> Response:
            return Response(exposition(self.metrics), media_type="text/plain; version=0.0.4")

    def _description(self, web: FastAPI) -> bytes:
        return _json(description(web.openapi(), self.services, token=self._token is not None, open_paths=_OPEN))

    def _add_descriptions(self, web: FastAPI) -> None:
        # written once: a client who asks for them again and again is to cost little
        listed = _json([_with_token(model) for model in self._listed] if self._token else self._listed)
        described: list[bytes] = []
        describing = asyncio.Lock()  # it takes a tenth of a second, in a thread, once

        @web.get("/v1/models", summary="What is served", response_model=list[dict[str, Any]], responses=REFUSALS)
        async def models(request: Request) -> Response:
            found = listed.replace(HERE.encode(), b"http://" + named_host(request.scope["headers"]))
            return Response(found, media_type="application/json")

        @web.get("/openapi.json", include_in_schema=False)
        async def openapi() -> Response:
            async with describing:
                if not described:
                    described.append(await run_in_threadpool(self._description, web))
            return Response(described[0], media_type="application/json")


def _forget_routes() -> None:
    """Empty FastAPI's caches: they keep every route's function, so an application and its packs, for good."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "fastapi"]:
        for value in list(vars(sys.modules[name]).values()):
            if callable(clear := getattr(value, "cache_clear", None)):
                clear()


def _with_token(model: dict[str, Any]) -> dict[str, Any]:
    """The same with an example that a server with a token answers."""
    example = model["example"]
    curl = example["curl"].replace("curl -s", 'curl -s -H "authorization: Bearer $FEWER_TOKEN"')
    return {**model, "example": {**example, "curl": curl}}


def _facts(models: Sequence[Model]) -> dict[Series, dict[str, str]]:
    kernels = "none" if missing() else "compiled"
    build = {"version": VERSION, "python": platform.python_version(), "kernels": kernels}
    each: dict[Series, dict[str, str]] = {
        ("fewer_model_info", m.name): {"model": m.name, "task": m.task, "version": m.version, "digest": m.digest}
        for m in models
    }
    return {("fewer_build_info",): build, **each}


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
