"""From arrays as somebody logged them to checked transitions; whatever is wrong is one line with its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewer.core.errors import UserError
from fewer.systems.control.task.logs.episodes import take
from fewer.systems.control.task.logs.transitions import Transitions

__all__ = ["CLOCK", "assemble", "numbers"]

CLOCK = 1000  # steps after which D4RL's locomotion environments end an episode; older files do not say where
_NEEDED = ("observation", "action", "reward", "terminal")


def assemble(source: str, arrays: Mapping[str, Any], *, clock: int = CLOCK) -> Transitions:
    """Transitions from arrays by the names of their fields; `next_observation` and `timeout` may be absent.

    Without `timeout` the clock ends an episode `clock` steps after the last end. Without `next_observation` it is the
    observation of the step that follows; the last step of an episode that was cut off has none and is left out, and
    at a terminal, beyond which nothing is asked, the observation itself stands in.
    """
    if absent := [name for name in _NEEDED if name not in arrays]:
        raise UserError(f"{source} without {', '.join(absent)}", f"arrays for {', '.join(_NEEDED)}")
    seen, action = (numbers(source, name, arrays[name], rank=2) for name in ("observation", "action"))
    reward = numbers(source, "reward", arrays["reward"], rank=1)
    steps = len(seen)
    terminal = _flags(source, "terminal", arrays["terminal"])
    timeout = _flags(source, "timeout", arrays["timeout"]) if "timeout" in arrays else _clocked(terminal, clock)
    following = (
        numbers(source, "next_observation", arrays["next_observation"], 2) if "next_observation" in arrays else None
    )
    lengths = {"action": len(action), "reward": len(reward), "terminal": len(terminal), "timeout": len(timeout)}
    if following is not None:
        lengths["next_observation"] = len(following)
        if following.shape[1] != seen.shape[1]:
            raise UserError(
                f"{source} with next observations of width {following.shape[1]}",
                f"width {seen.shape[1]} like observations",
            )
    for name, length in lengths.items():
        if length != steps:
            raise UserError(f"{source} with {length} of {name} for {steps} of observation", "as many of each")
    if steps == 0:
        raise UserError(f"{source} without a single step", "logged experience")
    timeout = timeout & ~terminal  # where both are said, the world ended
    if following is None:
        return _followed(source, Transitions(seen, action, reward, seen, terminal, timeout))
    timeout[-1] = not terminal[-1]  # the file ends in the middle of an episode: cut off, and there is value beyond
    return Transitions(seen, action, reward, following, terminal, timeout)


def numbers(source: str, name: str, given: Any, rank: int) -> NDArray[np.float32]:
    """An array of finite numbers of this rank; (steps, 1) serves as (steps,)."""
    try:
        array = np.asarray(given)
    except ValueError as error:
        raise UserError(f"{source}: {name} cannot be read ({error})", "an array of numbers") from None
    if array.dtype.kind not in "fiub":
        raise UserError(f"{source}: {name} of type {array.dtype}", "numbers")
    if rank == 1 and array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != rank or (rank == 2 and array.shape[1] == 0):
        raise UserError(f"{source}: {name} of shape {array.shape}", "(steps, width)" if rank == 2 else "(steps,)")
    # a number too large for float32 becomes infinite and is refused like one
    with np.errstate(over="ignore"):
        array = np.ascontiguousarray(array, dtype=np.float32)
    if not np.isfinite(array).all():
        place = np.argwhere(~np.isfinite(array))[0]
        where = f"step {place[0]}" + (f", feature {place[1]}" if rank == 2 else "")
        count = int((~np.isfinite(array)).reshape(len(array), -1).any(axis=1).sum())
        raise UserError(
            f"{source}: {name} is {array[tuple(place)]} at {where} ({count} such steps)", "finite numbers",
            "leave these episodes out",
        )  # fmt: skip
    return array


def _flags(source: str, name: str, given: Any) -> NDArray[np.bool_]:
    values = numbers(source, name, given, rank=1)
    if wrong := sorted(set(np.unique(values).tolist()) - {0.0, 1.0}):
        raise UserError(f"{source}: {name} of {wrong[0]:g}", "0 or 1, false or true")
    return values.astype(np.bool_)


def _clocked(terminal: NDArray[np.bool_], clock: int) -> NDArray[np.bool_]:
    """Where the clock ended an episode, counting from the last end."""
    timeout, since = np.zeros(len(terminal), dtype=np.bool_), 0
    for end in [*np.flatnonzero(terminal).tolist(), len(terminal)]:
        timeout[since + clock - 1 : end : clock] = True
        since = end + 1
    return timeout


def _followed(source: str, steps: Transitions) -> Transitions:
    """Next observations from the following step, and without the steps that have none."""
    following = np.concatenate([steps.observation[1:], steps.observation[-1:]])
    following[steps.terminal] = steps.observation[steps.terminal]
    cut = steps.timeout.copy()
    cut[-1] = not steps.terminal[-1]
    # the step before a cut now ends its episode, unless it ended one already
    ends = np.concatenate([cut[1:], [False]]) & ~steps.terminal & ~cut
    if cut.all():
        raise UserError(f"{source} with episodes of one step and no next observation", "longer episodes")
    kept = steps._replace(next_observation=following, timeout=ends)
    return take(kept, ~cut)
