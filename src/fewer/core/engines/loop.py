"""The loop around an engine: advance, log, prune when it is time, save, and go on after a kill.

Nothing here depends on when a checkpoint was taken, so a run that was killed at any moment and started again ends
with the same bits as one that was not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from torch import nn

from fewer.core.engines.base import Engine
from fewer.core.errors import Diverged, UserError
from fewer.core.files import checkpoint
from fewer.core.files.best_checkpoint import BestCheckpoint
from fewer.core.files.run_folder import MASK, WEIGHTS, Folder

__all__ = ["Event", "Loop", "Watch", "diverged_", "fit", "not_finite", "save_results"]

_PORTION = 0.5  # seconds of training between two ticks


class Event(Protocol):
    """Something that happens to the state between two steps: gradual pruning, dropping and growing, a check."""

    def next(self, step: int) -> int | None:
        """The first step >= `step` before which it wants to act; None: never again."""

    def act(self, engine: Engine) -> None:
        """Change the state; must be a function of the state, the step and the seeds alone."""


class Watch(Protocol):
    """Somebody who also wants to know what the log says, such as TensorBoard; must change nothing."""

    def __call__(self, engine: Engine, folder: Folder | None, line: Mapping[str, Any]) -> None: ...


@dataclass(frozen=True)
class Loop:
    """How often to log and to save; neither changes the result."""

    log_every: int = 50
    save_seconds: float = 20.0
    on_log: Callable[[dict[str, Any]], None] | None = None
    on_tick: Callable[[dict[str, Any]], None] | None = None  # told by time, from the first second on
    watch: Watch | None = None


def fit(
    engine: Engine, folder: Folder | None = None, *, events: Sequence[Event] = (), loop: Loop | None = None
) -> None:
    """Train to the engine's last step, from a saved state if the folder has one; validation may choose an earlier."""
    loop = loop or Loop()
    _refuse_rounded_volumes(engine)
    if folder is not None:
        if engine.count == 0:
            checkpoint.restore_(engine, folder)
        folder.forget_after(engine.count)  # also where a kill came before the first state: the log is there already
    total, saved, clock = engine.training.steps, time.monotonic(), _Clock(loop, engine)
    best = BestCheckpoint(engine, folder) if engine.training.validate_every else None
    while engine.count < total and not (best is not None and best.done(engine.count)):
        later = _act(engine, events)
        log_at = (engine.count // loop.log_every + 1) * loop.log_every
        validate_at = total if best is None else best.next(engine.count)
        clock.advance(engine, min([total, log_at, validate_at, *later]))
        if engine.count in (log_at, total):
            _log_losses(engine, folder, loop)
        if best is not None and engine.count in (validate_at, total):
            _tell(engine, folder, loop, best.validate(engine))
        if folder is not None and time.monotonic() - saved > loop.save_seconds and engine.count % loop.log_every == 0:
            checkpoint.save(engine, folder)
            saved = time.monotonic()
    if best is not None:
        engine.chosen = best.restore_(engine)
    _refuse_diverged(engine)


class _Clock:
    """Steps in portions of about half a second, after each of which somebody is told how it goes."""

    def __init__(self, loop: Loop, engine: Engine) -> None:
        self.tell, self.begin, self.first = loop.on_tick, engine.count, time.monotonic()

    def advance(self, engine: Engine, until: int) -> None:
        while engine.count < until:
            rest = until - engine.count
            engine.advance(rest if self.tell is None else min(rest, max(1, int(_PORTION * self._speed(engine)))))
            if self.tell is not None:
                speed = self._speed(engine)
                left = (engine.training.steps - engine.count) / max(speed, 1e-9)
                self.tell(
                    {"step": engine.count, "steps_per_second": speed, "density": engine.density(), "seconds_left": left}
                )

    def _speed(self, engine: Engine) -> float:
        """Steps a second since the training began, or went on."""
        return (engine.count - self.begin) / max(time.monotonic() - self.first, 1e-6)


def _act(engine: Engine, events: Sequence[Event]) -> list[int]:
    """Let those act whose step it is; the steps at which they will act again."""
    for event in events:
        if event.next(engine.count) == engine.count:
            event.act(engine)
    return [step for event in events if (step := event.next(engine.count + 1)) is not None]


def _refuse_rounded_volumes(engine: Engine) -> None:
    """In bfloat16 torch's CPU kernels now and then give huge or NaN gradients of 3D convolutions."""
    if engine.training.precision != "bfloat16" or engine.device.type != "cpu":
        return
    for name, network in engine.state.networks.items():
        if any(isinstance(part, nn.Conv3d | nn.ConvTranspose3d) for part in network.module.modules()):
            raise UserError(
                f"bfloat16 on a CPU for {name}, a network with 3D convolutions", "float32, or a GPU",
                "leave --precision out, or --device cuda",
            )  # fmt: skip


def _log_losses(engine: Engine, folder: Folder | None, loop: Loop) -> None:
    losses = engine.mean_losses()
    line: dict[str, Any] = {"step": engine.count}
    for objective, row in zip(engine.objectives, losses.tolist()):
        values = [value if math.isfinite(value) else None for value in row]  # JSON knows no NaN and no infinity
        line["loss/" + "+".join(objective.trains)] = values if len(values) > 1 else values[0]
    if folder is not None:
        folder.log(line)
    _tell(engine, folder, loop, line)
    _refuse_diverged(engine)


def _tell(engine: Engine, folder: Folder | None, loop: Loop, line: dict[str, Any]) -> None:
    """A line of the log, losses or validation, to whoever follows the training."""
    if loop.on_log is not None:
        loop.on_log(line)
    if loop.watch is not None:
        loop.watch(engine, folder, line)


def _refuse_diverged(engine: Engine) -> None:
    """Stop where no replica is left to train; one that diverged among others stays alone."""
    if not bool(engine.agreed(engine.state.finite().double()).any()):
        raise not_finite(engine.count)


def not_finite(steps: int, whose: str = "") -> Diverged:
    """What a training that diverged says of itself."""
    return Diverged(
        f"weights that are not finite after {steps} steps{whose}", "a training that converges",
        "lower the learning rate, or check the data for extreme values",
    )  # fmt: skip


def diverged_(engine: Engine) -> list[int]:
    """Replicas whose weights are not finite; they are emptied, so that the others can be judged beside them."""
    found: list[int] = (~engine.state.finite()).nonzero().flatten().tolist()
    for network in engine.state.networks.values():
        for row in (network.weights, *network.buffers.values()):
            row[found] = 0
    return found


def save_results(engine: Engine, replica: int, folder: Folder) -> None:
    """Weights and mask of one replica, as anybody may read them."""
    folder.write_networks(WEIGHTS, engine.state.weights_of(replica))
    folder.write_networks(MASK, engine.state.mask_of(replica))
