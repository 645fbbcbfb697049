"""What others forecast from the same radar images, through pysteps, as its own examples call it.

Everybody gets rates with nothing unknown (unknown is dry, as pysteps wants it) and says rates; ensembles also say
probabilities. What a method cannot say is not made up for it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewer.core.errors import MissingExtra
from fewer.systems.nowcast.task.baselines.extrapolation import decision, outlook
from fewer.systems.nowcast.task.baselines.motion import Field
from fewer.systems.nowcast.task.baselines.prognosis import THRESHOLDS

__all__ = ["RIVALS", "CannotForecast", "Said", "decisions", "ours", "persistence", "pysteps_installed"]

Rates = NDArray[np.floating[Any]]
Method = Callable[[Rates, Sequence[float], float], "Said"]

_PIXEL_KM = 2.0
_DRY_DECIBELS, _FAINT_DECIBELS = -15.0, -10.0
_CASCADE = 6
_MEMBERS = 8
_SPREAD_KM_PER_MINUTE = 0.2  # of "Lucas-Kanade with our decision": blurred as our own was before


class CannotForecast(Exception):
    """These images are none that a method works on."""


@dataclass(frozen=True)
class Said:
    """One forecast, (leads, height, width): the output that each score is made for."""

    rate: Field  # for FSS
    decided: dict[float, NDArray[np.bool_]]  # for IoU, by mm/h
    exceedance: Field | None = None  # for CRPS and reliability, (THRESHOLDS, leads, height, width)


def ours(rates: Rates, ahead: Sequence[float], step_minutes: float) -> Said:
    """Extrapolation: decisions from the probabilities of each rate, rates from all of them."""
    minutes = [step_minutes * k for k in range(len(rates))]
    found = outlook(rates, minutes, ahead, pixel_km=_PIXEL_KM)
    probability = np.nan_to_num(found.probability)
    decided = {least: decisions(probability[k]) for k, least in enumerate(THRESHOLDS)}
    return Said(np.nan_to_num(found.rate), decided, probability)


def persistence(rates: Rates, ahead: Sequence[float], step_minutes: float) -> Said:
    """As it is now."""
    return _plain(np.repeat(np.nan_to_num(rates[-1:]), len(ahead), axis=0))


def _plain(rate: Field) -> Said:
    return Said(rate, {least: rate >= least for least in THRESHOLDS})


def decisions(probability: Field) -> NDArray[np.bool_]:
    """Of each lead time, from the probability on that has the largest expected IoU."""
    return np.stack([field >= decision(field) for field in probability])


def pysteps_installed() -> bool:
    """With opencv, which it installs without and needs for motion."""
    return all(importlib.util.find_spec(name) is not None for name in ("pysteps", "cv2"))


def _decibels(rates: Rates) -> NDArray[np.float64]:
    filled = np.nan_to_num(np.asarray(rates, np.float64))
    return np.where(filled < 0.1, _DRY_DECIBELS, 10 * np.log10(np.maximum(filled, 0.1)))


def _rates(decibels: Any) -> Field:
    found = np.nan_to_num(np.asarray(decibels), nan=_DRY_DECIBELS)
    return np.where(found <= _FAINT_DECIBELS, 0.0, 10.0 ** (found / 10)).astype(np.float32)


def _motion(rates: Rates) -> Any:
    if not pysteps_installed():
        raise MissingExtra(
            "pysteps is not installed", "pysteps and opencv", "pip install pysteps opencv-python-headless"
        )
    from pysteps.motion.lucaskanade import dense_lucaskanade

    return dense_lucaskanade(_decibels(rates), verbose=False)


def lucas_kanade(rates: Rates, ahead: Sequence[float], step_minutes: float) -> Said:
    """Motion from decibels, then the rates themselves are carried."""
    moving = _motion(rates[-3:])
    from pysteps.extrapolation.semilagrangian import extrapolate

    filled = np.nan_to_num(np.asarray(rates[-1], np.float64))
    return _plain(np.nan_to_num(extrapolate(filled, moving, len(ahead))).astype(np.float32))


def lucas_kanade_decided(rates: Rates, ahead: Sequence[float], step_minutes: float) -> Said:
    """The same blurred ever more, each rate decided as ours are."""
    from scipy.ndimage import gaussian_filter

    rate = lucas_kanade(rates, ahead, step_minutes).rate
    widths = [_SPREAD_KM_PER_MINUTE * lead / _PIXEL_KM for lead in ahead]
    share = np.stack([
        [gaussian_filter((one >= least).astype(np.float32), width) for one, width in zip(rate, widths)]
        for least in THRESHOLDS
    ])  # fmt: skip
    return Said(rate, {least: decisions(share[k]) for k, least in enumerate(THRESHOLDS)}, share)


def sprog(rates: Rates, ahead: Sequence[float], step_minutes: float) -> Said:
    """Spectral prognosis."""
    moving = _motion(rates[-3:])
    from pysteps.nowcasts.sprog import forecast

    with contextlib.redirect_stdout(io.StringIO()):
        found = forecast(
            _decibels(rates[-3:]), moving, len(ahead), precip_thr=_FAINT_DECIBELS, n_cascade_levels=_CASCADE
        )
    return _plain(_rates(found))


def steps(rates: Rates, ahead: Sequence[float], step_minutes: float) -> Said:
    """The mean of a few members as rates, their share as probabilities, each rate decided as ours are."""
    moving = _motion(rates[-3:])
    from pysteps.nowcasts.steps import forecast

    with contextlib.redirect_stdout(io.StringIO()):
        found = forecast(
            _decibels(rates[-3:]), moving, len(ahead), n_ens_members=_MEMBERS, n_cascade_levels=_CASCADE,
            precip_thr=_FAINT_DECIBELS, kmperpixel=_PIXEL_KM, timestep=step_minutes, seed=1, num_workers=1,
        )  # fmt: skip
    members = _rates(found)  # (members, leads, height, width)
    share = np.stack([(members >= least).mean(0) for least in THRESHOLDS]).astype(np.float32)
    return Said(members.mean(0), {least: decisions(share[k]) for k, least in enumerate(THRESHOLDS)}, share)


def anvil(rates: Rates, ahead: Sequence[float], step_minutes: float) -> Said:
    """Its integrated model, on rates."""
    moving = _motion(rates[-3:])
    from pysteps.nowcasts.anvil import forecast

    filled = np.nan_to_num(np.asarray(rates[-4:], np.float64))
    with contextlib.redirect_stdout(io.StringIO()):
        found = forecast(filled, moving, len(ahead), ar_window_radius=50, ar_order=2, n_cascade_levels=_CASCADE)
    return _plain(np.nan_to_num(found).clip(0).astype(np.float32))


def linda(rates: Rates, ahead: Sequence[float], step_minutes: float) -> Said:
    """Its deterministic form, which follows features of the rain and wants some."""
    moving = _motion(rates[-3:])
    from pysteps.nowcasts.linda import forecast

    filled = np.nan_to_num(np.asarray(rates[-3:], np.float64))
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            found = forecast(
                filled, moving, len(ahead), kmperpixel=_PIXEL_KM, timestep=step_minutes, add_perturbations=False,
                num_workers=1, measure_time=False,
            )  # fmt: skip
    except ValueError as error:  # as it says that it found no features
        raise CannotForecast(str(error)) from None
    return _plain(np.nan_to_num(found).clip(0).astype(np.float32))


RIVALS: dict[str, Method] = {
    "Lucas-Kanade": lucas_kanade,
    "Lucas-Kanade, decided": lucas_kanade_decided,
    "S-PROG": sprog,
    "STEPS": steps,
    "ANVIL": anvil,
    "LINDA": linda,
}
