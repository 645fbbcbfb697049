"""Forecasts of rain, served: an hour of satellite images in, the probability of rain for eight hours out.

The page plays generated weather, whose truth is known; making it needs torch, answering requests does not.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from fewer.packs.file.tensors import Array
from fewer.serve.fields import RequestField
from fewer.serve.limits import Gate
from fewer.serve.models import Model
from fewer.serve.service import Service
from fewer.systems.nowcast.showcase import DRAWN, RATE_STEPS, SHIPPED, WINDOWS, Drawing, Showcase

__all__ = ["NowcastService"]

_STEPS = 200  # in which a probability is sent
_TOLD = {
    "satellite": (
        "standard deviations from each channel's mean",
        "four images, 15 minutes apart, of eleven channels, the newest last",
    ),
    "missing": ("1 where there is no image, else 0", "nothing is missing if left out"),
}
_INFRARED = 4  # IR_108, the image that looks like clouds
_MINUTES, _PIXEL_KM = 15, 2.0  # between images, and of the radar's grid
_RAIN_MM_PER_HOUR = 0.2


class Look(BaseModel):
    """One of the windows; the typical one where none is named."""

    model_config = ConfigDict(extra="forbid", strict=True)
    window: Annotated[int | None, Field(ge=0, lt=WINDOWS)] = None


class NowcastService(Service):
    """`satellite` (4, 11, size, size), standardised; `missing` (4, size, size) may be left out. Best sent as npz."""

    title = "Watch eight hours of rain"

    def __init__(self, task: str, models: Sequence[Model]) -> None:
        super().__init__(task, models)
        self._weather: dict[int, Showcase | Drawing] = {}
        self._asking = threading.Lock()

    def fields(self, model: Model) -> tuple[RequestField, ...]:
        found = []
        for field in super().fields(model):
            unit, meaning = _TOLD.get(field.name, ("", ""))
            found.append(replace(field, optional=field.name == "missing", unit=unit, meaning=meaning))
        return tuple(found)

    def answers(self, model: Model) -> dict[str, str]:
        rain = f"{_RAIN_MM_PER_HOUR:g} mm/h or more"
        return {"output": f"probability of {rain}, from 0 to 1, for every 15 minutes and every place ahead"}

    def inputs(self, model: Model, given: Mapping[str, Array]) -> list[Array]:
        samples = len(next(iter(given.values())))
        nothing = {item.name: (samples, *item.shape) for item in model.inputs if item.name not in given}
        return [
            np.zeros(nothing[item.name], item.dtype) if item.name in nothing else given[item.name]
            for item in model.inputs
        ]

    def router(self, gate: Gate) -> APIRouter:
        router = APIRouter(prefix="/v1/nowcast", tags=["nowcast"])

        @router.post("/forecast", summary="A window of generated weather, every model's forecast, and what fell")
        async def forecast(look: Look) -> dict[str, Any]:
            async with gate.entered():
                return await run_in_threadpool(self.forecast, look)

        return router

    def forecast(self, look: Look) -> dict[str, Any]:
        """Bytes in base64: images 0 to 254, rain in tenths of mm/h (255: no radar), probabilities in 200 steps.

        While weather is being drawn the answer is how far that is.
        """
        size = next(iter(self.models.values())).inputs[0].shape[-1]
        weather = self._shown(size)
        if isinstance(weather, Drawing):
            return {"making": {"done": weather.done, "of": weather.of}}
        window = weather.opening if look.window is None else look.window
        satellite, missing = weather.satellite[window], weather.missing[window]
        infrared = satellite[:, _INFRARED]
        cold = (infrared.max() - infrared) / max(float(np.ptp(infrared)), 1e-6)  # high clouds are cold, and shown white
        return {
            "size": int(size),
            "leads": weather.fell.shape[1],
            "minutes": _MINUTES,
            "pixel_km": _PIXEL_KM,
            "rain_mm_per_hour": _RAIN_MM_PER_HOUR,
            "rate_steps": RATE_STEPS,
            "window": window,
            "windows": len(weather),
            "drawn": DRAWN,
            "seen": _bytes(cold * 254),
            "fell": _bytes(weather.fell[window]),
            "models": self._said(satellite, missing),
            "rivals": {name: _bytes(rain[window]) for name, rain in weather.rivals.items()},
        }

    def _said(self, satellite: Array, missing: Array) -> dict[str, str]:
        given, size, said = {"satellite": satellite[None], "missing": missing[None]}, satellite.shape[-1], {}
        for name, model in self.models.items():
            if model.inputs[0].shape[-1] == size and set(_names(model)) <= given.keys():
                share = model.predict([given[item.name].astype(item.dtype) for item in model.inputs])[0]
                said[name] = _bytes(np.nan_to_num(share) * _STEPS)
        return said

    def _shown(self, size: int) -> Showcase | Drawing:
        with self._asking:
            found = self._weather.get(size) or self._first(size)
            if isinstance(found, Drawing):
                if found.fault is not None:
                    del self._weather[size]  # who asks again lets it be tried again
                    raise found.fault
                found = found.showcase or found
            self._weather[size] = found
            return found

    def _first(self, size: int) -> Showcase | Drawing:
        shipped = Showcase.read(SHIPPED)
        self._weather[size] = found = shipped if shipped.fell.shape[-1] == size else Drawing(size)
        return found


def _bytes(values: Array) -> str:
    return base64.b64encode(np.clip(np.round(values), 0, 255).astype(np.uint8).tobytes()).decode()


def _names(model: Model) -> list[str]:
    return [item.name for item in model.inputs]
