"""Who is sent away before any task is asked, and what all connections of one process share."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterable
from typing import Protocol

from fewer.serve.limits import Limits, Refusal
from fewer.serve.observe.metrics import Metrics

__all__ = ["LOCAL", "NAME", "Door", "checked_name", "named_host"]

LOCAL = ("localhost", "127.0.0.1", "[::1]")  # the names under which a browser on this machine finds it
NAME = re.compile(r"\[[0-9a-fA-F:.]+\]|[\w.-]+")  # or an address
_PORT = re.compile(r":\d*$")
_log = logging.getLogger("fewer.serve")


class Waits(Protocol):
    """A connection whose client has to send something next."""

    def leave(self) -> None:
        """Make room for another."""


class Door:
    """Limits, whose bytes are waited for and who asks ahead, the longest first, and a count and a log of those sent
    away."""

    def __init__(self, limits: Limits, metrics: Metrics) -> None:
        self.limits, self._metrics = limits, metrics
        self.waiting: dict[Waits, None] = {}
        self.ahead: dict[Waits, None] = {}  # those with requests that wait for an earlier one's answer
        self.silence: float | None = None  # seconds that the silent may stay; None: this process is not leaving
        self._unsaid, self._silent_until = 0, 0.0

    def sent_away(self, status: int, client: tuple[str, int] | None, reason: str) -> None:
        """Count it; say it, but at most once a second: a flood of requests is to be no flood of lines."""
        self._metrics.sent_away(status)
        now = time.monotonic()
        if now < self._silent_until:
            self._unsaid += 1
            return
        others = f" ({self._unsaid} more since the last such line)" if self._unsaid else ""
        _log.warning("%d to %s: %s%s", status, client[0] if client else "a client", reason, others)
        self._unsaid, self._silent_until = 0, now + 1.0

    def made_room(self, newest: Waits) -> bool:
        """Whether somebody else left: whoever has been waited for longest, else whoever has asked ahead longest."""
        oldest = next(iter(self.waiting))
        if oldest is newest:  # all others are being answered
            oldest = next(iter(self.ahead), newest)
        if oldest is newest:
            return False
        self.waiting.pop(oldest, None)
        self.ahead.pop(oldest, None)
        oldest.leave()
        return True


def checked_name(headers: Iterable[tuple[bytes, bytes]], names: frozenset[str]) -> None:
    """Refuse a Host that is none of these: a page from elsewhere may have had its own name point here."""
    given = [value.decode("latin-1").strip().lower() for name, value in headers if name == b"host"]
    if len(given) != 1 or _PORT.sub("", given[0]) not in names:
        told = repr(", ".join(given)[:80]) if given else "none"
        raise Refusal(421, f"Host {told}; expected {', '.join(sorted(names))} (--host-name adds one)")


def named_host(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The name and port under which a client knows this server, if they can be one."""
    for name, value in headers:
        if name == b"host" and NAME.fullmatch(_PORT.sub("", value.decode("latin-1"))):
            return value
    return b"localhost"
