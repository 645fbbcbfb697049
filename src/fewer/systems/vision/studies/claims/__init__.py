"""Every sentence of "Towards lighter adversarially robust model" that can be tested, section by section."""

from __future__ import annotations

from fewer.studies.claims import Claim
from fewer.systems.vision.studies.claims.capacity import CAPACITY
from fewer.systems.vision.studies.claims.features import FEATURES
from fewer.systems.vision.studies.claims.tickets import TICKETS

__all__ = ["CLAIMS"]

CLAIMS: tuple[Claim, ...] = (*CAPACITY, *FEATURES, *TICKETS)
