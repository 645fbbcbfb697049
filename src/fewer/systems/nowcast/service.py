"""Forecasts of rain, served: an hour of satellite images in, the probability of rain for eight hours out.

The page plays generated weather, whose truth is known; making it needs torch, answering requests does not.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from fewer.packs.file.tensors import Array
from fewer.serve.fields import RequestField
from fewer.serve.limits import Gate, Refusal
from fewer.serve.models import Model
from fewer.serve.service import Service

__all__ = ["NowcastService"]

_WINDOWS, _DRAWN = 6, 12  # the page can look at those of the drawn that have most rain soon: most weather is dry
_SOON = 16  # lead times, four hours: beyond them little can be forecast
_RAIN_MM_PER_HOUR = 0.2
_STEPS = 200  # in which a probability is sent
_RATE_STEPS = 10  # in which a mm/h is sent
_BLIND = 255  # no radar looked
_TOLD = {
    "satellite": (
        "standard deviations from each channel's mean",
        "four images, 15 minutes apart, of eleven channels, the newest last",
    ),
    "missing": ("1 where there is no image, else 0", "nothing is missing if left out"),
}
_INFRARED = 4  # IR_108, the image that looks like clouds


class Look(BaseModel):
    """One of the windows."""

    model_config = ConfigDict(extra="forbid", strict=True)
    window: Annotated[int, Field(ge=0, lt=_WINDOWS)] = 0


class NowcastService(Service):
    """`satellite` (4, 11, size, size), standardised; `missing` (4, size, size) may be left out. Best sent as npz."""

    title = "Eight hours of rain from one hour of images"
    _weather: dict[int, Any]

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
        """Bytes in base64: images 0 to 254, rain in tenths of mm/h (255: no radar), probabilities in 200 steps."""
        size = next(iter(self.models.values())).inputs[0].shape[-1]
        satellite, missing, rate, valid = self._window(size, look.window)
        given = {"satellite": satellite[None], "missing": missing[None]}
        said = {}
        for name, model in self.models.items():
            if model.inputs[0].shape[-1] == size and set(_names(model)) <= given.keys():
                share = model.predict([given[item.name].astype(item.dtype) for item in model.inputs])[0]
                said[name] = _bytes(np.nan_to_num(share) * _STEPS)
        infrared = satellite[:, _INFRARED]
        cold = (infrared.max() - infrared) / max(float(np.ptp(infrared)), 1e-6)  # high clouds are cold, and shown white
        fell = np.where(valid > 0, np.minimum(np.ceil(rate * _RATE_STEPS), _BLIND - 1), _BLIND)
        return {
            "size": int(size),
            "leads": len(rate),
            "minutes": 15,
            "windows": _WINDOWS,
            "seen": _bytes(cold * 254),
            "fell": _bytes(fell),
            "models": said,
        }

    def _window(self, size: int, index: int) -> tuple[Array, ...]:
        with _making:
            if not hasattr(self, "_weather"):
                self._weather = {}
            if size not in self._weather:
                self._weather[size] = _generated(size)
        return tuple(leaf[index] for leaf in self._weather[size])


_making = threading.Lock()


def _generated(size: int) -> tuple[Array, ...]:
    try:
        import torch

        from fewer.systems.nowcast.task.generated.windows import generated
    except ModuleNotFoundError as error:
        reason = f"weather is generated with {error.name}, which is not installed; pip install 'fewer[nowcast]'"
        raise Refusal(404, reason) from None
    drawn = generated("test", count=_DRAWN, size=size).take(torch.arange(_DRAWN))
    raining = (drawn.rate >= _RAIN_MM_PER_HOUR) & (drawn.valid > 0)
    wettest = raining[:, :_SOON].sum((1, 2, 3)).argsort(descending=True, stable=True)[:_WINDOWS]
    windows = type(drawn)(*(leaf[wettest] for leaf in drawn))
    return tuple(leaf.numpy() for leaf in (windows.satellite, windows.missing, windows.rate, windows.valid))


def _bytes(values: Array) -> str:
    return base64.b64encode(np.clip(np.round(values), 0, 255).astype(np.uint8).tobytes()).decode()


def _names(model: Model) -> list[str]:
    return [item.name for item in model.inputs]
