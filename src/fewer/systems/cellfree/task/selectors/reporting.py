"""How a true signal becomes a report, and how likely a report is where the signals are known.

A report is round((s + e) / q) q with a normal error e of deviation sigma and a resolution q; with probability p its
signal s is that of the place where the phone was before it moved on. So a report r has the likelihood
(1 - p) f(r | here) + p f(r | before) with f(r | s) = Phi((r - s + q / 2) / sigma) - Phi((r - s - q / 2) / sigma), which
is the normal density where q is 0. Reports that do not arrive say nothing of the place.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from fewer.systems.cellfree.task.arrays import Floats
from fewer.systems.cellfree.task.settings import Settings

__all__ = ["FLOOR_DB", "Reporting"]

FLOOR_DB = 0.25  # a million places are not all places: exact reports still need some width


@dataclass(frozen=True)
class Reporting:
    """What stands between a signal and its report."""

    error_db: float
    quantum_db: float = 0.0
    stale: float = 0.0

    @classmethod
    def of(cls, settings: Settings, error_db: float | None = None) -> Reporting:
        """As the settings say, or with another error."""
        error = settings.error_db if error_db is None else error_db
        return cls(max(FLOOR_DB, error), settings.quantum_db, settings.stale)

    @property
    def normal(self) -> bool:
        """Whether an error is all there is."""
        return not self.quantum_db and not self.stale

    def log_likelihood(self, apart_db: Floats, before_db: Floats | None) -> Floats:
        """Up to a constant, of reports that lie this far from the signals here, and from those before."""
        here = self._fresh(apart_db)
        if not self.stale or before_db is None:
            return here
        with np.errstate(divide="ignore"):
            fresh, old = np.log1p(-self.stale), math.log(self.stale)
        return np.asarray(np.logaddexp(fresh + here, old + self._fresh(before_db)))

    def _fresh(self, apart_db: Floats) -> Floats:
        if not self.quantum_db:
            return np.asarray(-0.5 * (apart_db / self.error_db) ** 2)
        # both ends in the tail where log Phi is exact, so that far places have a likelihood too
        away = np.abs(apart_db).astype(np.float64)
        near = log_ndtr(-(away - self.quantum_db / 2) / self.error_db)
        far = log_ndtr(-(away + self.quantum_db / 2) / self.error_db)
        return np.asarray(near + np.log1p(-np.exp(np.minimum(far - near, -1e-12))))
