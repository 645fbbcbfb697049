"""A line of JSON for every request, written by a thread of its own: a log that nobody reads holds up no answer."""

from __future__ import annotations

import json
import os
import threading
from collections import deque
from collections.abc import Mapping
from typing import Any

from fewer.core.errors import UserError

__all__ = ["AccessLog"]

_MOST_LINES = 20_000  # that wait to be written; beyond, they are counted instead
_WHOLE = 4096  # bytes that a pipe takes in one piece: lines of two processes do not mix
_STANDARD_ERROR = "-"


class AccessLog:
    """`write` from the event loop, `open` and `close` once per process. Lines of several processes do not mix."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._lines: deque[bytes] = deque()
        self._dropped = 0
        self._some, self._done = threading.Event(), False
        if place != _STANDARD_ERROR:
            os.close(self._opened())  # a place that cannot be written is told at the start

    def _opened(self) -> int:
        if self._place == _STANDARD_ERROR:
            return os.dup(2)
        try:
            return os.open(self._place, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o640)
        except OSError as error:
            raise UserError(f"--access-log {self._place} ({error.strerror})", "a file that can be written") from None

    def open(self) -> None:
        """Begin to write; a file that was moved away in the meantime is made anew."""
        self._file, self._done = self._opened(), False
        self._thread = threading.Thread(target=self._run, name="access log", daemon=True)
        self._thread.start()

    def write(self, entry: Mapping[str, Any]) -> None:
        """One request."""
        if len(self._lines) >= _MOST_LINES:
            self._dropped += 1
            return
        self._lines.append(json.dumps(entry, separators=(",", ":")).encode() + b"\n")
        self._some.set()

    def _run(self) -> None:
        while not (self._done and not self._lines):
            self._some.wait()
            self._some.clear()
            self._drain()

    def _drain(self) -> None:
        while self._lines:
            part = [self._lines.popleft()]
            while self._lines and sum(map(len, part)) + len(self._lines[0]) <= _WHOLE:
                part.append(self._lines.popleft())
            if self._dropped:
                dropped, self._dropped = self._dropped, 0
                part.append(b'{"dropped":%d}\n' % dropped)
            try:
                os.write(self._file, b"".join(part))
            except OSError:  # a full disk, a reader that has gone: answers matter more
                self._dropped += len(part)

    def close(self, seconds: float = 2.0) -> None:
        """Write what is there, if that takes no longer than this."""
        self._done = True
        self._some.set()
        self._thread.join(seconds)
