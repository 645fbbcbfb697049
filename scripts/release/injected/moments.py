"""Every moment at which a process changes the disk: before, within and after each call, one number each."""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable
from typing import Any

from scripts.release.injected.training import ENDED

__all__ = ["Moments", "end", "fail"]

CALLS = ("fsync", "replace", "rename", "unlink", "mkdir", "rmdir")
Fault = Callable[[], None]


def end() -> None:
    """As a kill or a power cut would."""
    os._exit(ENDED)


def fail(number: int) -> Fault:
    """As a disk that is full, broken or not to be written would."""

    def raised() -> None:
        raise OSError(number, os.strerror(number))

    return raised


class Written:
    """A file whose writes are moments; half of a content is one of them."""

    def __init__(self, file: Any, passed: Callable[[], None]) -> None:
        self._file, self._passed = file, passed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> Written:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, content: Any) -> int:
        self._passed()
        half = len(content) // 2
        self._file.write(content[:half])
        self._file.flush()
        self._passed()
        self._file.write(content[half:])
        self._file.flush()
        self._passed()
        return len(content)


class Moments:
    """Counts moments in this process, and does something wrong at one of them, or from it on."""

    def __init__(self, fault: Fault, at: int = -1, *, lasting: bool = False) -> None:
        self.count, self._fault, self._at, self._lasting = 0, fault, at, lasting

    def passed(self) -> None:
        number, self.count = self.count, self.count + 1
        if number == self._at or (self._lasting and 0 <= self._at < number):
            self._fault()

    def inject(self) -> None:
        """From now on, for good: meant for a process that ends soon."""
        for name in CALLS:
            setattr(os, name, self._around(getattr(os, name)))
        plain = builtins.open

        def opened(file: Any, mode: str = "r", *words: Any, **named: Any) -> Any:
            if not set(mode) & set("wax+"):
                return plain(file, mode, *words, **named)
            self.passed()
            return Written(plain(file, mode, *words, **named), self.passed)

        builtins.open = opened

    def _around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def instead(*words: Any, **named: Any) -> Any:
            self.passed()
            found = call(*words, **named)
            self.passed()
            return found

        return instead
