"""The pages: a shell for each task, one that asks for a token, one for what is not there."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles

from fewer.core.registry import system_of
from fewer.serve.describe import described_task
from fewer.serve.service import Service

__all__ = ["OPEN_PAGES", "STATIC", "Pages", "wants_page"]

STATIC = Path(__file__).parent / "static"
OPEN_PAGES = ("/", "/token")  # shells that say nothing of models
_HEADERS = {
    # pages load nothing from elsewhere and cannot be framed
    "content-security-policy": "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}


def wants_page(scope: Mapping[str, Any]) -> bool:
    """Whether somebody looks at the answer in a browser."""
    accepted = b",".join(value for name, value in scope["headers"] if name == b"accept")
    return scope["method"] in ("GET", "HEAD") and b"text/html" in accepted


class Pages:
    """Of the tasks that are served and have one."""

    def __init__(self, services: Mapping[str, Service]) -> None:
        self._services = services
        self._folders = {task: folder for task in services if (folder := _folder(task)) is not None}

    def add(self, web: FastAPI) -> None:
        """All of them, what they load, and the list of them."""
        web.get("/", include_in_schema=False)(_page(STATIC / "index.html"))
        web.get("/token", include_in_schema=False)(_page(STATIC / "token.html"))
        for task, folder in self._folders.items():
            web.get(f"/{task}", include_in_schema=False)(_page(folder / "index.html"))
            web.mount(f"/static/{task}", _Files(directory=folder))

        @web.get("/v1/tasks", include_in_schema=False)
        async def tasks() -> list[dict[str, Any]]:
            return [described_task(task, s, self._folders.get(task)) for task, s in self._services.items()]

        web.mount("/static", StaticFiles(directory=STATIC))

    async def asking_for_token(self, scope: Any, receive: Any, send: Any) -> None:
        """Instead of a refusal in JSON, for people."""
        headers = {**_HEADERS, "www-authenticate": "Bearer"}
        await FileResponse(STATIC / "token.html", 401, headers=headers)(scope, receive, send)

    async def missing(self, request: Request, error: Exception) -> Response:
        """A page for people, one line of JSON for programs."""
        if wants_page(request.scope):
            return FileResponse(STATIC / "missing.html", 404, headers=_HEADERS)
        return JSONResponse({"detail": "no such path; /openapi.json lists them"}, 404)


class _Files(StaticFiles):
    """What a page loads; its folder is also a package."""

    def lookup_path(self, path: str) -> tuple[str, os.stat_result | None]:
        return ("", None) if path.endswith((".py", ".pyc")) else super().lookup_path(path)


def _folder(task: str) -> Path | None:
    package = system_of(task).page
    return Path(str(files(package))) if package else None


def _page(file: Path) -> Callable[[], Awaitable[Response]]:
    async def page() -> Response:
        return FileResponse(file, headers=_HEADERS)

    return page
