"""Who asked: a request's id, and its place in a trace (W3C Trace Context)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Trace"]

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:+/=@-]{1,128}")
_PARENT = re.compile(rb"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?")


@dataclass(frozen=True)
class Trace:
    """The client's own id where it sent one that can be logged, one drawn here otherwise."""

    request_id: bytes
    trace_id: bytes = b""  # none: nobody traces this
    parent_id: bytes = b""
    span_id: bytes = b""  # this answer's own
    flags: bytes = b""

    @classmethod
    def of(cls, headers: Iterable[tuple[bytes, bytes]]) -> Trace:
        """As a request's headers say."""
        given, parent = b"", None
        for name, value in headers:
            if name == b"x-request-id" and _REQUEST_ID.fullmatch(value):
                given = value
            elif name == b"traceparent":
                parent = _PARENT.fullmatch(value)
        own = given or os.urandom(8).hex().encode()
        if parent is None:
            return cls(own)
        return cls(own, parent[1], parent[2], os.urandom(8).hex().encode(), parent[3])

    def headers(self) -> list[tuple[bytes, bytes]]:
        """For the answer."""
        own = [(b"x-request-id", self.request_id)]
        if self.trace_id:
            own.append((b"traceparent", b"-".join([b"00", self.trace_id, self.span_id, self.flags])))
        return own

    def entry(self) -> dict[str, str]:
        """For the log."""
        found = {"request_id": self.request_id.decode()}
        if self.trace_id:
            found |= {
                "trace_id": self.trace_id.decode(),
                "parent_id": self.parent_id.decode(),
                "span_id": self.span_id.decode(),
            }
        return found
