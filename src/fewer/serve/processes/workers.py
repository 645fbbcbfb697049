"""Processes that share the work: one that ends is started anew, all can be replaced by others, and all end together."""

from __future__ import annotations

import logging
import multiprocessing.connection
import os
import signal
import socket
from collections.abc import Callable, Sequence
from typing import Any

from fewer.core.errors import UserError
from fewer.core.machine.memory import let_go
from fewer.serve.processes.slot import Slot, Work

__all__ = ["RENEW", "STOP", "Events", "Workers", "obey"]

STOP = (signal.SIGINT, signal.SIGTERM)
RENEW = getattr(signal, "SIGHUP", signal.SIGTERM)  # not on Windows, where nothing is forked either
_TRIES = 3  # starts in a row that may fail before anybody has worked
_LOOK = 0.05  # seconds between two looks at processes that are starting
_log = logging.getLogger("fewer.serve")


class Events:
    """What happens to workers, for whoever counts it."""

    def started(self) -> None:
        """A process was started."""

    def ended(self, worker: int) -> None:
        """A process of this generation ended by itself."""

    def renewed(self, good: bool) -> None:
        """All were replaced, or could not be."""


class Workers:
    """`work(number, alive)` in so many processes; each awaits `alive()` once it works, and now and then after that.

    Told to renew, it asks `renewed` for other work, starts as many processes with it, and only when all of them answer
    tells the old ones to retire. What cannot be opened or does not start leaves everything as it was.
    """

    def __init__(
        self,
        count: int,
        work: Work,
        *,
        renewed: Callable[[], Work] | None = None,
        events: Events | None = None,
        leave: Callable[[], None] = lambda: None,
    ) -> None:
        # forked, so that models lie in memory once and counters are shared
        self._context: Any = multiprocessing.get_context("fork")
        self._count, self._renewed, self._events = count, renewed, events or Events()
        self._first = [work]  # until it is started: afterwards those who do it hold it alone
        self._leave = leave  # called when told to stop: what is held for workers is let go of
        self._parent = os.getpid()
        self._slots: list[Slot] = []
        self._next: list[Slot] = []  # those who are to take over
        self._retired: list[Any] = []
        self._stopped = self._asked = self._worked = False
        self._told, self._tells = socket.socketpair()

    def run(self) -> None:
        """Until told to stop; if workers cannot even start, an error."""
        signal.pthread_sigmask(signal.SIG_BLOCK, (*STOP, RENEW))  # until somebody is there who knows what to stop
        self._told.setblocking(False)
        self._tells.setblocking(False)
        before = signal.set_wakeup_fd(self._tells.fileno(), warn_on_full_buffer=False)
        self._slots = self._made(self._first.pop())
        signal.signal(RENEW, self._renew)
        obey(self._stop)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (RENEW,))
        while not self._stopped and not self._hopeless():
            self._look()
            self._wait()
        failed = not self._stopped
        self._stop(0, None)
        signal.set_wakeup_fd(before)
        for process in self._processes():
            process.join()
        if failed:
            given = f"{_TRIES} workers in a row that ended while they started"
            raise UserError(given, "workers that stay", "see their last lines above")

    def _made(self, work: Work) -> list[Slot]:
        def start(slot: Slot) -> Any:
            process = self._context.Process(target=self._begin, args=(work, slot))
            process.start()
            self._events.started()
            return process

        return [Slot(number, start) for number in range(self._count)]

    def _begin(self, work: Work, slot: Slot) -> None:
        """In the new process: signals are its own from now on."""
        signal.set_wakeup_fd(-1)
        self._told.close()
        self._tells.close()
        self._slots, self._next = [], []  # others' work, which may be that of packs this one does not serve

        async def alive() -> None:
            slot.mark()
            if os.getppid() != self._parent:  # killed: nobody is left who could stop this worker
                signal.raise_signal(signal.SIGTERM)

        work(slot.number, alive)

    def _processes(self) -> list[Any]:
        return [*(slot.process for slot in (*self._slots, *self._next)), *self._retired]

    def _wait(self) -> None:
        """Until a process ends, a signal comes, or somebody is due."""
        waits = [slot.wait for slot in self._slots]
        running = [slot.process.sentinel for slot, wait in zip(self._slots, waits) if wait is None]
        others = [process.sentinel for process in self._retired]
        due = [wait for wait in waits if wait is not None] + [_LOOK] * bool(self._next)
        multiprocessing.connection.wait([self._told, *running, *others], min(due, default=None))
        try:
            self._told.recv(4096)
        except BlockingIOError:
            return

    def _look(self) -> None:
        self._retired = [process for process in self._retired if process.is_alive()]
        self._worked = self._worked or any(slot.works for slot in self._slots)
        self._keep_all(self._slots, give_up=self._hopeless)
        if all(slot.wait is not None for slot in self._slots):
            min(self._slots, key=lambda slot: slot.wait or 0.0).hurry()
        if self._next:
            self._take_over()
            if not self._next:
                let_go()  # of the work of those who leave, which is full of circles and holds packs
        elif self._asked:
            self._asked = False
            self._open()

    def _keep_all(self, slots: Sequence[Slot], give_up: Callable[[], bool]) -> None:
        for slot in slots:
            self._keep(slot, give_up)

    def _keep(self, slot: Slot, give_up: Callable[[], bool]) -> None:
        """Start it anew if it has ended and may be."""
        if not self._stopped and slot.ended():
            if slot in self._slots:
                self._events.ended(slot.number)
            if not give_up():
                _log.warning("worker %d ended %s; it is started anew", slot.number, slot.ending())
        if slot.wait == 0.0 and not give_up():
            self._quietly(slot.start)

    def _hopeless(self) -> bool:
        """Whether nobody ever worked, and that will not change."""
        return not self._worked and sum(slot.failed for slot in self._slots) >= _TRIES

    def _unfit(self) -> bool:
        """The same of those who are to take over."""
        return sum(slot.failed for slot in self._next) >= _TRIES

    def _quietly(self, start: Callable[[], None]) -> None:
        """Nobody is told to stop between a process's start and our knowing of it."""
        signal.pthread_sigmask(signal.SIG_BLOCK, (*STOP, RENEW))
        if not self._stopped:
            start()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (*STOP, RENEW))

    def _open(self) -> None:
        if self._renewed is None:
            return
        try:
            work = self._renewed()
        except Exception as error:
            _log.error("not reloaded: %s", " ".join(str(error).split()) or type(error).__name__)
            self._events.renewed(False)
            return

        def begin() -> None:
            self._next = self._made(work)

        self._quietly(begin)

    def _take_over(self) -> None:
        """The old ones go when all of the new ones are there; if those end again and again, they go."""
        self._keep_all(self._next, give_up=self._unfit)
        good = all(slot.works and slot.wait is None for slot in self._next)
        if not good and not self._unfit():
            return
        leaving = self._slots if good else self._next
        if good:
            self._slots = self._next
        else:
            _log.error("not reloaded: %d new workers in a row ended while they started", _TRIES)
        self._next = []
        for slot in leaving:
            if slot.process.is_alive():
                os.kill(slot.process.pid, RENEW if good else signal.SIGTERM)
                self._retired.append(slot.process)
        self._events.renewed(good)

    def _renew(self, number: int, _: Any) -> None:
        self._asked = True

    def _stop(self, number: int, _: Any) -> None:
        self._stopped = True
        self._leave()
        for process in self._processes():
            if process.is_alive():
                process.terminate()


def obey(stop: Callable[[int, Any], None]) -> None:
    """Call it when told to stop, from now on."""
    for number in STOP:
        signal.signal(number, stop)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP)
