"""How much stands under attack: robust accuracy per attack and in the worst case per image.

An image leaves the batch the moment it is fooled, inside an attack and between attacks, so a network that is not
robust is found out at a fraction of the cost, with the same answer.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from fewer.attack import attack_loss as attack_losses
from fewer.attack.iteration import Attack, Rows
from fewer.attack.layout import LAYOUTS, Layout, best_layout, layout
from fewer.attack.rough import Rough, exactly
from fewer.attack.threat import Threat, parse
from fewer.core.abilities import Attackable, Classifier, ability, perturbable_input
from fewer.core.data import batches, convert, place_constants_
from fewer.core.engines.nets import NetworkSet, frozen
from fewer.core.errors import UserError
from fewer.core.html_table import shown
from fewer.core.seed import Stream
from fewer.core.task import Predict, Task

__all__ = ["Audit", "Line", "Report", "attacked", "robust"]


@dataclass(frozen=True)
class Audit:
    """How to audit."""

    split: str = "test"
    limit: int | None = None  # only the first so many images
    per_batch: int | None = None  # None: 125 on a CPU, whose cache they fit, 4,000 on a GPU
    drop: bool = True  # False: every image faces every step, for comparison
    judge: str = "every"  # every visited point, or only the last, as other libraries do; then none is dropped early
    layout: str = "timed"  # or contiguous, channels_last, native
    seed: int = 0
    search: str = "exact"  # bfloat16: attacks search so, every success is confirmed in the networks' own precision

    def __post_init__(self) -> None:
        if self.search not in ("exact", "bfloat16"):
            raise UserError(f"search {self.search!r}", "exact or bfloat16")
        if self.search != "exact" and (self.judge != "every" or not self.drop):
            raise UserError(f"search {self.search!r} with every image in every step", "judge every, and drop")
        for name, value in (("limit", self.limit), ("per_batch", self.per_batch)):
            if value is not None and value < 1:
                raise UserError(f"{name} {value}", "at least 1 image")
        if self.judge not in ("every", "last"):
            raise UserError(f"judge {self.judge!r}", "every or last")
        if self.layout not in ("timed", *LAYOUTS):
            raise UserError(f"layout {self.layout!r}", f"timed, {', '.join(LAYOUTS)}")


@dataclass(frozen=True)
class Line:
    """One attack's result, as shares of all images.

    `alone` is what it leaves by itself, None where it faced only the survivors of those before; `standing` is what
    it and all before it leave, per image.
    """

    attack: str
    alone: float | None
    standing: float
    seconds: float


@dataclass(frozen=True)
class Report:
    """Accuracy under each attack, by the attack's name; `robust` is the worst case per image over all of them."""

    images: int
    clean: float
    lines: tuple[Line, ...]
    survived: Tensor = field(repr=False)  # (images,), bool
    layout: str = "contiguous"

    @property
    def robust(self) -> float:
        """Share of images that are right and stay right under every attack."""
        return float(self.survived.double().mean())

    def metrics(self) -> dict[str, float]:
        """Every number with the name of its attack; the first is the one that matters."""
        if not self.lines:
            return {"clean": self.clean}
        parts = [re.split(r", (?=L-inf |L2 |step )", line.attack) for line in self.lines]
        heads, balls = [part[0] for part in parts], list(dict.fromkeys(part[1] for part in parts))
        name = f"worst of {', '.join(heads)} at {' and '.join(balls)}" if len(heads) > 1 else self.lines[0].attack
        each: dict[str, float] = {}
        for line in self.lines:
            if line.alone is not None:
                each[line.attack] = line.alone
            else:
                each[f"{line.attack}, after all before"] = line.standing
        return {f"robust ({name})": self.robust, "clean": self.clean, **each}

    def _repr_html_(self) -> str:
        """For Jupyter."""
        rows: list[list[Any]] = [["none (clean)", f"{self.clean:.2%}", f"{self.clean:.2%}"]]
        for line in self.lines:
            rows.append([line.attack, "" if line.alone is None else f"{line.alone:.2%}", f"{line.standing:.2%}"])
        note = f"{self.robust:.2%} of {self.images} images stand under all of the above"
        return shown("accuracy under attack", ["attack", "alone", "after all before"], rows, [note])

    def text(self) -> str:
        """A plain table."""
        rows = [f"{'attack':<44} {'alone':>8} {'standing':>9} {'seconds':>8}"]
        rows.append(f"{'none (clean)':<44} {self.clean:>8.2%} {self.clean:>9.2%}")
        for line in self.lines:
            alone = "" if line.alone is None else f"{line.alone:.2%}"
            rows.append(f"{line.attack:<44} {alone:>8} {line.standing:>9.2%} {line.seconds:>8.1f}")
        rows.append(f"robust: {self.robust:.2%} of {self.images} images stand under all of the above")
        return "\n".join(rows)


def robust(
    task: Task[Any],
    nets: NetworkSet,
    attacks: str | Sequence[Threat],
    audit: Audit = Audit(),  # noqa: B008  frozen
    *,
    done: Report | None = None,
    after_each: Callable[[Report], None] | None = None,
) -> Report:
    """Attack a classifier's images with each attack in turn; a text such as `suite:0.3` names them.

    `after_each` sees the report so far whenever an attack is over; given as `done`, it goes on from there and ends the
    same.
    """
    threats = parse(attacks) if isinstance(attacks, str) else tuple(attacks)
    classifier = ability(task, Classifier, "robust accuracy")
    attackable = ability(task, Attackable, "robust accuracy")
    images = _Images(task, nets, audit)
    images.check(attackable, classifier)
    laid = images.laid_out(attackable, audit.layout)
    rough = Rough(task, laid.nets) if audit.search == "bfloat16" else None
    with laid.active() as ready, torch.no_grad(), rough.quickly() if rough else nullcontext():
        right = images.right(ready)
        lines = _finished(done, threats, len(right))
        survived = right.clone() if done is None else done.survived
        for threat in threats[len(lines) :]:
            start = time.perf_counter()
            facing = right if threat.every else survived
            fooled = images.fooled(threat.on(rough or task), ready, facing)
            survived = survived & ~fooled
            alone = float((right & ~fooled).double().mean()) if threat.every or bool((facing == right).all()) else None
            seconds = time.perf_counter() - start
            lines = (*lines, Line(threat.title, alone, float(survived.double().mean()), seconds))
            if after_each is not None:
                after_each(Report(len(right), float(right.double().mean()), lines, survived, laid.name))
    return Report(len(right), float(right.double().mean()), lines, survived, laid.name)


def _finished(done: Report | None, threats: Sequence[Threat], images: int) -> tuple[Line, ...]:
    """The lines of an audit that goes on, if it was of these attacks and as many images."""
    if done is None:
        return ()
    begun, asked = [line.attack for line in done.lines], [threat.title for threat in threats]
    if begun != asked[: len(begun)] or done.images != images:
        given = f"an audit of {done.images} images by {' + '.join(begun)}"
        raise UserError(given, f"one of {images} images that begins with {asked[0]}", "begin anew")
    return done.lines


class _Images:
    """The audited images, batch by batch, each with its own stream of randomness."""

    def __init__(self, task: Task[Any], nets: NetworkSet, audit: Audit) -> None:
        self.device, self.dtype = _home(nets)
        place_constants_(task, self.device, self.dtype)
        self.task, self.nets, self.data = task, frozen(nets), task.data(audit.split)
        self.count = len(self.data) if audit.limit is None else min(audit.limit, len(self.data))
        if self.count == 0:
            raise UserError(f"an empty {audit.split} split", "at least 1 image")
        self.per_batch = audit.per_batch or (125 if self.device.type == "cpu" else 4000)
        self.audit, self.scores = audit, attack_losses.logits_and_labels(task, "robust accuracy")

    def take(self, index: Tensor) -> tuple[Any, Rows]:
        batch = convert(self.data.take(index), self.device, self.dtype)
        seeds = (index + (self.audit.seed << 32)).to(self.device)
        return batch, Rows(seeds, torch.zeros((), dtype=torch.int64, device=self.device), self.dtype)

    def all_batches(self) -> list[Tensor]:
        return batches(self.data, self.per_batch, self.count)

    def check(self, attackable: Attackable, classifier: Classifier) -> None:
        """Images outside the bounds and labels outside the classes would make every number meaningless."""
        for index in self.all_batches():
            batch, noise = self.take(index)
            perturbable, labels = perturbable_input(attackable, batch), classifier.labels(batch)
            low, high = (bound.to(perturbable) for bound in attackable.bounds)
            if not bool(((perturbable >= low) & (perturbable <= high)).all()):
                found = f"inputs from {float(perturbable.min()):g} to {float(perturbable.max()):g}"
                inside = f"inputs inside the task's bounds, {float(low.min()):g} to {float(high.max()):g}"
                raise UserError(found, inside, "scale them; normalise inside the network")
            if index[0] == 0:
                classes = self.scores(self.nets, batch, noise)[0].shape[1]
            if not bool(((labels >= 0) & (labels < classes)).all()):
                raise UserError(f"labels from {int(labels.min())} to {int(labels.max())}", f"0 to {classes - 1}")

    def laid_out(self, attackable: Attackable, name: str) -> Layout:
        """The networks in the layout asked for, or the one in which an attack step is fastest."""
        if name != "timed":
            return layout(self.nets, name)
        batch, noise = self.take(torch.arange(min(128, self.count)))
        perturbable, attack_loss = attackable.perturbable(batch), attack_losses.cross_entropy(self.task)

        def step(nets: NetworkSet) -> Tensor:
            return attack_losses.input_gradient(
                attack_loss, nets, lambda x: attackable.replace(batch, x), noise, perturbable
            )[0]

        return best_layout(self.nets, self.device, step)

    def right(self, nets: NetworkSet) -> Tensor:
        """(images,): the clean ones that are classified rightly."""
        with exactly() if self.audit.search != "exact" else nullcontext():
            parts = [~attack_losses.wrong(*self.scores(nets, *self.take(index))) for index in self.all_batches()]
        return torch.cat(parts).cpu()

    def fooled(self, attack: Attack, nets: NetworkSet, facing: Tensor) -> Tensor:
        """(images,): those of the facing ones that some judged point of the attack fools."""
        found = torch.zeros(self.count, dtype=torch.bool)
        # without dropping, also the wrongly classified images go through every step
        asked = facing.nonzero()[:, 0] if self.audit.drop else torch.arange(self.count)
        for index in asked.split(self.per_batch) if len(asked) else ():
            found[index] = self._run(attack, nets, index).cpu()
        return found & facing

    def _run(self, attack: Attack, nets: NetworkSet, index: Tensor) -> Tensor:
        batch, noise = self.take(index)
        every = self.audit.judge == "every"
        place = torch.arange(len(index), device=self.device)  # where each remaining sample belongs
        fooled = torch.zeros(len(index), dtype=torch.bool, device=self.device)
        running = attack.rounds(nets, attack.begin(batch, noise))
        state = next(running)
        while True:
            if every and self.audit.drop:
                kept = (~state.fooled).nonzero()[:, 0]
                if len(kept) < len(place):
                    fooled[place[state.fooled]] = True
                    place, state = place[kept], state.take(kept)
                if not len(kept):
                    running.close()
                    return fooled
            try:
                state = running.send(state)
            except StopIteration as stop:
                state = stop.value
                break
        # the rounds judge a point when they leave it; the last one is still to be judged
        with exactly() if self.audit.search != "exact" else nullcontext():
            at_last = attack.task.replace(state.batch, state.perturbable)
            last = attack_losses.wrong(*self.scores(nets, at_last, state.noise))
        fooled[place] = state.fooled | last if every else last
        return fooled


def attacked(
    task: Task[Any], nets: NetworkSet, attack: Attack | str, *, predict: Predict | None = None, seed: int = 0
) -> Predict:
    """A Predict that attacks each batch before answering, so that any task's own metrics come out under attack.

    With another `predict` (a packed or voting model) the attack is carried over from `nets` to it.
    """
    aimed = _one(task, attack) if isinstance(attack, str) else attack
    device, dtype = _home(nets)
    zero = torch.zeros((), dtype=torch.int64, device=device)
    noise = Stream(zero + seed, zero, dtype)

    def answer(batch: Any) -> Tensor:
        place_constants_(task, device, dtype)
        changed = aimed(nets, convert(batch, device, dtype), noise)
        if predict is not None:
            perturbable = aimed.task.perturbable(batch)
            return predict(convert(changed, perturbable.device, perturbable.dtype))
        with torch.no_grad():
            return task.predict(frozen(nets), task.inputs(changed), noise)

    return answer


def _home(nets: NetworkSet) -> tuple[torch.device, torch.dtype]:
    """Where the weights lie, and how precise they are."""
    tensors: list[Tensor] = [p for module in nets.modules.values() for p in module.parameters()]
    if nets.state is not None:
        tensors = [value for part in nets.state.values() for value in part.values()]
    weight = next((tensor for tensor in tensors if tensor.is_floating_point()), torch.zeros(0))
    return weight.device, weight.dtype


def _one(task: Task[Any], text: str) -> Attack:
    threats = parse(text)
    if len(threats) != 1:
        raise UserError(f"attack {text!r} on a {type(task).__name__}", "a single attack", "write for example pgd:0.3")
    return threats[0].on(task)
