"""The eleven bands of the satellite in file order, with the competition's clip ranges and training statistics."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["BANDS", "Band"]


class Band(NamedTuple):
    """Reflectance (0 to about 1) or brightness temperature in K."""

    name: str
    highest: float  # clipped from 0 to here
    mean: float
    deviation: float
    reflectance: bool


BANDS = (
    Band("IR_016", 1.02, 0.06605569, 0.09920627, True),
    Band("IR_039", 350.0, 273.2187, 15.98847, False),
    Band("IR_087", 350.0, 268.3977, 17.49075, False),
    Band("IR_097", 350.0, 246.1366, 10.81174, False),
    Band("IR_108", 350.0, 270.1535, 18.49373, False),
    Band("IR_120", 350.0, 268.7993, 18.42736, False),
    Band("IR_134", 350.0, 250.6491, 11.70623, False),
    Band("VIS006", 1.02, 0.06711527, 0.1101766, True),
    Band("VIS008", 1.2, 0.08736397, 0.1326554, True),
    Band("WV_062", 300.0, 232.1964, 5.531017, False),
    Band("WV_073", 300.0, 248.0414, 9.495061, False),
)
