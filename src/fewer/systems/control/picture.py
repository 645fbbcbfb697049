"""A policy at work as an animated picture, rendered by MuJoCo without a screen."""

from __future__ import annotations

import importlib
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewer.systems.control.task.logs.experts import Policy
from fewer.systems.control.task.worlds.environments import Environment
from fewer.systems.control.task.worlds.environments import environment as find
from fewer.systems.control.task.worlds.rollout import episode_seed
from fewer.systems.control.task.worlds.simulator import make, missing, quiet

__all__ = ["WHY_NOT", "film"]

WHY_NOT = "MuJoCo cannot draw here (no EGL, or MUJOCO_GL says otherwise), so there is no moving picture."
_FRAMES_A_SECOND = 20
_WIDTH, _HEIGHT = 160, 120
_COLOURS = 64  # enough for a chequered floor and a lit body, at fewer bytes than 256


def film(
    policy: Policy, environment: str | Environment, *, seed: int = 0, seconds: float = 3.0, skip: float = 0.5
) -> bytes | None:
    """An animated GIF of the policy's first episode under this seed, at its own pace; None where nothing can draw.

    It starts `skip` seconds into the episode, when the policy is under way, and stops where it falls.
    """
    with missing():
        from PIL import Image
    world = find(environment) if isinstance(environment, str) else environment
    with quiet(), _without_screen():
        if not _can_draw():
            return None
        frames = _frames(policy, world, seed=seed, window=(skip, skip + seconds))
    if not frames:  # it fell before the film began
        return film(policy, world, seed=seed, seconds=seconds, skip=0.0)
    # one palette for all frames: what does not change then costs no bytes
    pictures = [Image.fromarray(frame) for frame in frames]
    palette = pictures[len(pictures) // 2].quantize(_COLOURS, method=Image.Quantize.MEDIANCUT)
    reduced = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    memory = io.BytesIO()
    reduced[0].save(
        memory,
        "GIF",
        save_all=True,
        append_images=reduced[1:],
        duration=1000 // _FRAMES_A_SECOND,
        loop=0,
        optimize=True,
    )
    return memory.getvalue()


def _frames(policy: Policy, world: Environment, *, seed: int, window: tuple[float, float]) -> list[NDArray[np.uint8]]:
    try:
        simulator = make(world.gymnasium, render_mode="rgb_array", width=_WIDTH, height=_HEIGHT)
    except TypeError:  # a world that does not let its picture's size be chosen
        simulator = make(world.gymnasium, render_mode="rgb_array")
    model = getattr(simulator.unwrapped, "model", None)
    if model is not None:
        # without a graphics card shadows, mirrors and smooth edges are most of the time, and too small to see
        model.vis.quality.shadowsize, model.vis.quality.offsamples = 0, 0
        model.mat_reflectance[:] = 0
        if model.ncam:  # the model's own camera runs along; the default one is left behind
            simulator.unwrapped.mujoco_renderer.camera_id = 0
    try:
        return list(_drawn(policy, simulator, episode_seed(seed, 0), window))
    finally:
        simulator.close()


def _can_draw() -> bool:
    """Whether MuJoCo gets a place to draw in; drivers fail in ways of their own, and a report goes on without."""
    try:
        place = importlib.import_module(f"mujoco.{os.environ['MUJOCO_GL']}").GLContext(_WIDTH, _HEIGHT)
        place.make_current()
        place.free()
    except Exception:
        return False
    return True


def _drawn(policy: Policy, simulator: Any, seed: int, window: tuple[float, float]) -> Iterator[NDArray[np.uint8]]:
    """Frames between these seconds of the episode, as many a second as a GIF shows well."""
    rate = float(simulator.metadata.get("render_fps") or _FRAMES_A_SECOND)  # steps a second
    low, high = simulator.action_space.low, simulator.action_space.high
    seen, _ = simulator.reset(seed=seed)
    shown = int(window[0] * _FRAMES_A_SECOND)
    for step in range(int(window[1] * rate)):
        if step / rate >= shown / _FRAMES_A_SECOND:
            shown += 1
            yield np.asarray(simulator.render(), dtype=np.uint8)
        action = np.clip(policy(np.asarray(seen, dtype=np.float32)[None])[0], low, high)
        seen, _, ended, cut, _ = simulator.step(action)
        if ended or cut:
            return


@contextmanager
def _without_screen() -> Iterator[None]:
    """EGL, unless the user has chosen how MuJoCo draws."""
    chosen = os.environ.get("MUJOCO_GL")
    os.environ["MUJOCO_GL"] = chosen or "egl"
    try:
        yield
    finally:
        if chosen is None:
            del os.environ["MUJOCO_GL"]
