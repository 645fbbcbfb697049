"""Policies, served: an observation in, an action out; and whole episodes for the page, simulated here by MuJoCo."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from fewer.packs.file.tensors import Array
from fewer.serve.fields import RequestField
from fewer.serve.limits import Gate, Refusal
from fewer.serve.models import Model
from fewer.serve.service import Row, Schema, Service, object_schema
from fewer.systems.control.task.worlds.environments import ENVIRONMENTS, environment

__all__ = ["ControlService", "environment_of"]

_FRAMES_A_SECOND = 25
_LIMP_SECONDS = 1.6  # that are shown of a robot that fell, its motors off: by then it hardly moves
_CAPSULE = 3  # MuJoCo's number for it
_FARTHEST = 1e9  # of an observation, in its own units


class Push(BaseModel):
    """A blow that changes the speed of the whole robot."""

    model_config = ConfigDict(extra="forbid", strict=True)
    at_s: Annotated[float, Field(ge=0, le=12, allow_inf_nan=False)]
    metres_per_second: Annotated[float, Field(ge=-5, le=5, allow_inf_nan=False)]


class Wish(BaseModel):
    """An episode to watch."""

    model_config = ConfigDict(extra="forbid", strict=True)
    model: str | None = None
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    seconds: Annotated[float, Field(gt=0, le=12, allow_inf_nan=False)] = 6.0
    pushes: Annotated[list[Push], Field(max_length=20)] = []


class ControlService(Service):
    """`{"observation": [...]}` in the environment's own units; the answer is the action."""

    title = "Race the robots"
    reads_rows = True

    def fields(self, model: Model) -> tuple[RequestField, ...]:
        shape, dtype, world = model.inputs[0].shape, model.inputs[0].dtype, environment_of(model)
        return (RequestField("observation", shape, dtype, unit=f"{world}'s own", meaning="as the simulator gives it"),)

    def answers(self, model: Model) -> dict[str, str]:
        return {"action": f"torques for {environment_of(model)}, in its own units"}

    def inputs(self, model: Model, given: Mapping[str, Array]) -> list[Array]:
        return [given["observation"]]

    def row(self, model: Model, fields: Mapping[str, Any]) -> Row | None:
        seen = fields.get("observation")
        if len(fields) != 1 or type(seen) is not list or len(seen) != model.inputs[0].shape[0]:
            return None
        good = all(type(value) in (float, int) and -_FARTHEST <= value <= _FARTHEST for value in seen)
        return (seen,) if good else None

    def row_answer(self, model: Model, row: Row, output: Any) -> bytes:
        action = [round(value, 6) if math.isfinite(value) else None for value in output]
        return json.dumps({"action": action}, separators=(",", ":")).encode()

    def answer(self, model: Model, arrays: Sequence[Array], output: Array, single: bool) -> dict[str, Any]:
        return {"action": np.round(output.astype(np.float64), 6)[0 if single else slice(None)]}

    def answer_schema(self) -> Schema:
        return object_schema({"action": {"type": "array", "description": "numbers, or a list of them a sample"}})

    def note(self, model: Model) -> str:
        """Whose recordings the others learnt from."""
        return f"{'expert' if _expert(model) else 'learnt from recordings'}, {environment_of(model)}"

    def router(self, gate: Gate) -> APIRouter:
        router = APIRouter(prefix="/v1/control", tags=["control"])

        @router.get("/experts", summary="Which policies are the experts that the others learnt from")
        async def experts() -> list[str]:
            return [name for name, model in self.models.items() if _expert(model)]

        @router.get("/worlds", summary="Which environment each policy was learned for")
        async def worlds() -> dict[str, str]:
            return {name: environment_of(model) for name, model in self.models.items()}

        @router.post("/episode", summary="A policy's episode as the places of its limbs, and what it brought")
        async def episode(wish: Wish) -> dict[str, Any]:
            async with gate.entered():
                return await run_in_threadpool(self.episode, wish)

        return router

    def episode(self, wish: Wish) -> dict[str, Any]:
        """Simulate; the same seed starts the same episode for every policy."""
        model = self.model(wish.model)
        from fewer.systems.control.task.worlds.simulator import make, quiet

        world = environment(environment_of(model))
        if (world.observations,) != model.inputs[0].shape:
            raise Refusal(
                422, f"{model.name} sees {model.inputs[0].shape[0]} numbers, {world.name} shows {world.observations}"
            )
        simulator = make(world.gymnasium)
        try:
            if not hasattr(simulator.unwrapped, "data"):
                raise Refusal(422, f"{world.name} is not simulated by MuJoCo, so there are no limbs to draw")
            with quiet():
                found = _filmed(model, simulator, wish)
        finally:
            simulator.close()
        return {"model": model.name, "environment": world.name, **found}


def _filmed(model: Model, simulator: Any, wish: Wish) -> dict[str, Any]:
    inner = simulator.unwrapped
    limbs = np.flatnonzero(inner.model.geom_type == _CAPSULE)
    radius, half = inner.model.geom_size[limbs, 0], inner.model.geom_size[limbs, 1]
    low, high = simulator.action_space.low, simulator.action_space.high
    seen, _ = simulator.reset(seed=wish.seed)
    frames: list[list[list[float]]] = []
    total, steps, ended = 0.0, 0, False
    pushes = sorted(wish.pushes, key=lambda push: push.at_s)
    for _ in range(math.ceil(wish.seconds / inner.dt)):
        if steps * inner.dt * _FRAMES_A_SECOND >= len(frames):
            frames.append(_limbs(inner.data, limbs, half))
        while pushes and pushes[0].at_s <= steps * inner.dt:
            inner.data.qvel[0] += pushes.pop(0).metres_per_second  # of the root along x, and so of every limb
        action = model.predict([np.asarray(seen, dtype=np.float32)[None]])[0, : len(low)]
        seen, reward, ended, cut, _ = simulator.step(np.clip(np.nan_to_num(action), low, high))
        total, steps = total + float(reward), steps + 1
        if ended or cut:
            break
    if ended:
        frames += _lying_down(inner, limbs, half, begun=steps, shown=len(frames))
    else:
        frames.append(_limbs(inner.data, limbs, half))
    return {
        "frames_per_second": _FRAMES_A_SECOND,
        "radius": np.round(radius, 4).tolist(),
        "frames": frames,
        "return": round(total, 2),
        "steps": steps,
        "seconds": round(steps * inner.dt, 3),
        "fell": bool(ended),
        "mass_kg": round(float(inner.model.body_mass.sum()), 2),
    }


def _lying_down(inner: Any, limbs: Array, half: Array, *, begun: int, shown: int) -> list[list[list[float]]]:
    """What becomes of a robot after `begun` steps once its motors are off.

    Gymnasium calls it fallen as soon as it leans too far or is too low, and that may be in the air.
    """
    frames: list[list[list[float]]] = []
    for step in range(begun, begun + math.ceil(_LIMP_SECONDS / inner.dt)):
        if step * inner.dt * _FRAMES_A_SECOND >= shown + len(frames):
            frames.append(_limbs(inner.data, limbs, half))
        inner.do_simulation(np.zeros(inner.model.nu), inner.frame_skip)
    return frames


def _limbs(data: Any, limbs: Array, half: Array) -> list[list[float]]:
    """Both ends of every capsule as x, z, x, z in metres; a capsule lies along its own z axis."""
    centre = data.geom_xpos[limbs][:, [0, 2]]
    reach = half[:, None] * data.geom_xmat[limbs].reshape(-1, 3, 3)[:, [0, 2], 2]
    ends: list[list[float]] = np.round(np.concatenate([centre - reach, centre + reach], axis=1), 3).tolist()
    return ends


def _expert(model: Model) -> bool:
    """Experts were trained by themselves, not by one of the algorithms here, and say on how many steps."""
    return "trained on" in model.pack.settings


def environment_of(model: Model) -> str:
    """As the pack says, by itself or among the settings of its run; one name for what has two."""
    settings = model.pack.settings
    words = dict(str(word).split("=", 1) for word in settings.get("settings", []) if "=" in str(word))
    name = str(settings.get("environment") or words.get("environment", "hopper"))
    return ENVIRONMENTS[name].gymnasium if name in ENVIRONMENTS else name
