"""Lottery tickets (Frankle and Carbin 2019) on any task: train, prune the smallest weights, start again, repeat.

Every line of the experiment (a way to start again, with a seed) is a replica of one cohort, so tickets and their
controls see the same data at the same time. The first way leads: its trained weights decide the masks of its seed,
and the others are controls of the same size. What is reported is the state after the last step, never the best one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fewer.core.abilities import kind_of
from fewer.core.engines.base import Engine, Training
from fewer.core.engines.cohort import Cohort
from fewer.core.engines.evaluate import evaluate_cohort
from fewer.core.engines.loop import Loop, fit
from fewer.core.engines.plain import Plain
from fewer.core.engines.state import fresh_modules
from fewer.core.errors import UserError
from fewer.core.files.run_folder import METRICS, Folder
from fewer.core.mask import Mask, kept, total
from fewer.core.seed import Stream
from fewer.core.task import Task
from fewer.pruning.criteria.magnitude import magnitude
from fewer.pruning.criteria.scoring import Scores
from fewer.pruning.follow import followed
from fewer.pruning.schedules.survivors import shuffled_mask, smaller_mask

__all__ = ["STARTS", "Lottery", "lottery"]

STARTS = ("reset", "rewind", "fresh", "shuffled")
Figures = list[dict[str, Any]]
Snapshot = dict[str, dict[str, Tensor]]  # network -> "" (all weights) and buffers, each (replicas, ...)
Masks = dict[int, dict[str, dict[str, Tensor]]]  # by seed


@dataclass(frozen=True)
class Lottery:
    """How much is pruned in each round, and how each line starts again."""

    rounds: int = 12  # prunings; the unpruned network is round 0
    rate: float = 0.3  # of the survivors, each round
    scope: str = "layer"  # layer: every layer at this rate; global: all layers ranked together
    output_share: float = 1.0  # of the rate at each network's last layer, where scope is layer; Frankle: 0.5
    # reset: the first weights; rewind: those of an early step; fresh: new random ones, the same mask;
    # shuffled: the first weights, other positions, as many in each layer
    starts: tuple[str, ...] = ("reset", "fresh", "shuffled")
    rewind: int = 0  # the early step; a rewound line then trains as long as all others
    keep_weights: bool = True  # of every line and round on the disk

    def __post_init__(self) -> None:
        if not 0 < self.rate < 1 or not 0 <= self.output_share <= 1 or self.rounds < 0:
            raise UserError(
                f"{self.rounds} rounds at rate {self.rate}, output share {self.output_share}",
                "rounds >= 0, a rate between 0 and 1 and a share from 0 to 1",
            )
        if self.scope not in ("layer", "global"):
            raise UserError(f"scope {self.scope!r}", "layer or global")
        if not self.starts or set(self.starts) - set(STARTS) or len(set(self.starts)) < len(self.starts):
            raise UserError(f"starts {', '.join(self.starts) or 'none'}", f"different ones of {', '.join(STARTS)}")
        if "rewind" in self.starts and self.rewind < 1:
            raise UserError(
                f"rewind to step {self.rewind}", "a step after the first", "use reset for the first weights"
            )


def lottery(
    task: Task[Any],
    training: Training,
    settings: Lottery,
    *,
    seeds: Sequence[int],
    out: str | Path | None = None,
    measure: Callable[[Engine], Figures] | None = None,
    about: Mapping[str, Any] | None = None,
) -> Figures:
    """Figures of every line in every round, in order; with a folder, finished rounds are found again.

    `measure` gives each replica's metrics after a round (the task's own on the test split by default); `about` says
    what else the numbers depend on, such as a hardening, so that another experiment's folder is refused.
    """
    if "rewind" in settings.starts and settings.rewind >= training.steps:
        raise UserError(f"rewind to step {settings.rewind}", f"a step before the last, {training.steps}")
    lines = [(start, seed) for start in settings.starts for seed in seeds]
    folder = None if out is None else Folder(out)
    if folder is not None:
        folder.prepare()
        folder.claim(_config(task, training, settings, seeds) | dict(about or {}), {})
    game = _Game(task, training, settings, lines)
    rows: Figures = []
    masks: Masks = {}
    for number in range(settings.rounds + 1):
        part = None if folder is None else Folder(folder.path / f"round-{number:02d}")
        if part is not None and part.finished:
            rows += part.read_json(METRICS)
            masks = _read_masks(part)
            game.rewound = _read_snapshot(part) or game.rewound
            continue
        game.begin_(number, masks)
        game.train()
        found = (measure or (lambda engine: evaluate_cohort(engine.task, engine.state)))(game.engine)
        own = [game.row(replica, number) | metrics for replica, metrics in enumerate(found)]
        masks = game.next_masks(number + 1)
        if part is not None:
            _write(part, game, own, masks)
        rows += own
    return rows


def _config(task: Task[Any], training: Training, settings: Lottery, seeds: Sequence[int]) -> dict[str, Any]:
    """What the numbers depend on, the device apart."""
    described = {key: value for key, value in dataclasses.asdict(training).items() if key != "device"}
    about = repr(getattr(task, "settings", ""))
    return {
        "task": kind_of(task), "settings": about, "training": described,
        "lottery": dataclasses.asdict(settings), "seeds": list(seeds),
    }  # fmt: skip


class _Game:
    """The cohort of all lines, started again each round with its tensors in place, so that a captured graph stays."""

    def __init__(
        self, task: Task[Any], training: Training, settings: Lottery, lines: Sequence[tuple[str, int]]
    ) -> None:
        self.task, self.settings, self.lines = task, settings, lines
        own = [seed for _, seed in lines]
        alone = len(own) == 1 and training.device == "cpu"
        self.engine: Engine = Plain(task, training, own[0]) if alone else Cohort(task, training, own)
        self.first = self._snapshot()
        self.rewound: Snapshot = {}
        self.masks: list[Mask] = []

    def _snapshot(self) -> Snapshot:
        networks = self.engine.state.networks
        return {
            name: {"": network.weights.clone(), **{key: value.clone() for key, value in network.buffers.items()}}
            for name, network in networks.items()
        }

    @torch.no_grad()
    def begin_(self, number: int, masks: Masks) -> None:
        """Every line's weights and mask for this round; optimiser state, step and losses as at the very beginning."""
        state = self.engine.state
        for name, network in state.networks.items():
            network.weights.copy_(self.first[name][""])
            for key, buffer in network.buffers.items():
                buffer.copy_(self.first[name][key])
        for moments in state.moments:
            for tensors in moments.values():
                for tensor in tensors.values():
                    tensor.zero_()
        state.step.zero_()
        self.engine.losses.zero_()
        self.engine.count, self.engine.counted = 0, [0] * len(self.engine.counted)
        self.masks = []
        for replica, (start, seed) in enumerate(self.lines):
            if number:
                self._start_again_(replica, start, seed, number)
            mask = masks.get(seed) or self._whole(replica)
            if start == "shuffled" and number:
                mask = followed(self.task, shuffled_mask(mask, seed))
            state.mask_(replica, mask)
            self.masks.append(mask)

    def _start_again_(self, replica: int, start: str, seed: int, number: int) -> None:
        networks = self.engine.state.networks
        if start == "rewind":
            for name, network in networks.items():
                network.weights[replica] = self.rewound[name][""][replica]
                for key, buffer in network.buffers.items():
                    buffer[replica] = self.rewound[name][key][replica]
        elif start == "fresh":
            # the seed of the line with the round in its upper half: no two rounds draw the same weights
            for name, module in fresh_modules(self.task, seed + (number << 32)).items():
                network = networks[name]
                network.weights[replica] = network.flat(dict(module.named_parameters()), 0.0)
                for key, buffer in network.buffers.items():
                    buffer[replica] = module.get_buffer(key).to(buffer)

    def train(self) -> None:
        """To the last step; on the way of round 0 the weights to rewind to are noted."""
        rewinds = "rewind" in self.settings.starts and not self.rewound
        loop = Loop(log_every=max(1, self.engine.training.steps // 10))  # each look at the losses waits for a GPU
        fit(self.engine, events=[_Note(self, self.settings.rewind)] if rewinds else [], loop=loop)

    def _scores(self, replica: int) -> Scores:
        zero = torch.zeros((), dtype=torch.int64)
        return magnitude(self.task, self.engine.state.modules_of(replica), [], Stream(zero, zero))

    def _whole(self, replica: int) -> dict[str, dict[str, Tensor]]:
        scores = self._scores(replica)
        mask = {
            net: {key: torch.ones_like(s, dtype=torch.bool) for key, s in part.items()} for net, part in scores.items()
        }
        return followed(self.task, mask)

    def next_masks(self, number: int) -> Masks:
        """By the trained weights of each seed's first line."""
        found: Masks = {}
        for replica, (start, seed) in enumerate(self.lines):
            if start == self.settings.starts[0]:
                scores = self._scores(replica)
                found[seed] = followed(self.task, self._smaller(scores, self.masks[replica], number))
        return found

    def _smaller(self, scores: Scores, before: Mask, number: int) -> dict[str, dict[str, Tensor]]:
        settings = self.settings
        return smaller_mask(
            scores, before, number, rate=settings.rate, scope=settings.scope, output_share=settings.output_share
        )

    def row(self, replica: int, number: int) -> dict[str, Any]:
        """Which line and round, and how much was kept."""
        start, seed = self.lines[replica]
        own = {net: part for net, part in self.masks[replica].items() if net not in self.task.copies()}
        layers = {f"{net}.{key}": int(m.sum()) for net, part in own.items() for key, m in part.items()}
        return {
            "round": number, "start": start, "seed": seed, "kept": kept(own), "weights": total(own), "layers": layers,
        }  # fmt: skip


class _Note:
    """An event that only takes down the weights of one step."""

    def __init__(self, game: _Game, step: int) -> None:
        self.game, self.step = game, step

    def next(self, step: int) -> int | None:
        return self.step if step <= self.step else None

    def act(self, engine: Engine) -> None:
        self.game.rewound = self.game._snapshot()


def _write(part: Folder, game: _Game, rows: Figures, masks: Masks) -> None:
    """The metrics come last: their presence means that the round is finished."""
    part.path.mkdir(parents=True, exist_ok=True)
    # networks that share a mask hold the same tensor, which a file must not
    flat = {
        f"{seed}/{net}/{key}": kept.clone()
        for seed, mask in masks.items()
        for net, by_name in mask.items()
        for key, kept in by_name.items()
    }
    part.write_tensors("next_mask.safetensors", flat)
    if game.rewound and rows[0]["round"] == 0:
        part.write_networks("rewind.safetensors", game.rewound)
    if game.settings.keep_weights:
        for replica, (start, seed) in enumerate(game.lines):
            part.write_networks(f"{start}-seed{seed}.safetensors", game.engine.state.weights_of(replica))
    part.write_json(METRICS, rows)


def _read_masks(part: Folder) -> Masks:
    masks: Masks = {}
    for name, tensor in part.read_tensors("next_mask.safetensors").items():
        seed, net, key = name.split("/", 2)
        masks.setdefault(int(seed), {}).setdefault(net, {})[key] = tensor
    return masks


def _read_snapshot(part: Folder) -> Snapshot:
    there = (part.path / "rewind.safetensors").exists()
    return part.read_networks("rewind.safetensors") if there else {}
