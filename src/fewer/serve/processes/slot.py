"""One worker's place: the process that has it now, and when the next may take it."""

from __future__ import annotations

import mmap
import time
from collections.abc import Awaitable, Callable
from typing import Any

__all__ = ["Alive", "Slot", "Work"]

Alive = Callable[[], Awaitable[None]]
Work = Callable[[int, Alive], None]  # what a worker of this number does until told to stop

PAUSE = 0.5  # seconds from one start to the next
_LONGEST = 30.0  # seconds that a worker which ends again and again has to wait
_SETTLED = 10.0  # seconds after which a worker that ends is no longer one that cannot work


class Slot:
    """A process that is started anew when it ends: at once, or after ever longer pauses if that happens too often."""

    def __init__(self, number: int, start: Callable[[Slot], Any]) -> None:
        self.number, self._make = number, start
        self._works = mmap.mmap(-1, 1)  # a byte which the process itself sets; a fork shares it
        self.failed = 0  # times in a row that it ended before it worked
        self._ends = 0  # times in a row that it ended early
        self.start()

    def start(self) -> None:
        """Now; whoever asks has seen to signals."""
        self._works[0], self._since, self._due = 0, time.monotonic(), 0.0
        self.process = self._make(self)

    def mark(self) -> None:
        """It works; called by the process itself."""
        self._works[0] = 1

    @property
    def works(self) -> bool:
        """Whether it has come so far that it answers."""
        return bool(self._works[0])

    def ended(self) -> bool:
        """Whether it has just been found ended; from then on it is due again at some time."""
        if self._due or self.process.is_alive():
            return False
        now = time.monotonic()
        self.failed = 0 if self.works else self.failed + 1
        self._ends = 0 if self.works and now - self._since > _SETTLED else self._ends + 1
        self._due = max(now, self._since + min(PAUSE * 2.0 ** (self._ends - 1), _LONGEST))
        return True

    def hurry(self) -> None:
        """Somebody has to be there: no longer than the shortest pause."""
        self._due = min(self._due, self._since + PAUSE)

    @property
    def wait(self) -> float | None:
        """Seconds until it may be started anew; None while it runs."""
        return max(0.0, self._due - time.monotonic()) if self._due else None

    def ending(self) -> str:
        """How its process ended."""
        code = self.process.exitcode
        return f"by signal {-code}" if code < 0 else f"with exit code {code}"
