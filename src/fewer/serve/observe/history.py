"""Figures that outlive the workers who counted them: each generation goes on where the one before stands."""

from __future__ import annotations

from fewer.serve.observe.metrics import Metrics
from fewer.serve.processes.workers import Events

__all__ = ["History"]


class History(Events):
    """The metrics of the generation that works, and of the one that is to take over."""

    def __init__(self, first: Metrics) -> None:
        self._running = first
        self._coming: Metrics | None = None

    def follow(self, coming: Metrics) -> None:
        """These are to take over."""
        coming.follow(self._running)
        self._coming = coming

    def started(self) -> None:
        (self._coming or self._running).count("starts")

    def ended(self, worker: int) -> None:
        self._running.gone(worker)

    def renewed(self, good: bool) -> None:
        if good and self._coming is not None:
            self._running = self._coming
        self._coming = None
        self._running.count("reloads", "good" if good else "failed")
