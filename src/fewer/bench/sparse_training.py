"""Training of pruned networks: kept weights only against the same masked network in ordinary torch.

The networks and losses are those of BCQ (papers/control.txt) at the dimensions of HalfCheetah, each written
once; the two sides differ in `convert` alone. One thread, both sides measured in turns in one run.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim.adam import adam

from fewer.bench.control import random_logs
from fewer.bench.row import Row, interleaved_seconds
from fewer.core.engine import Engine, Training
from fewer.core.plain import Plain
from fewer.prune.pruning import Pruning, prune_
from fewer.sparse.convert import convert
from fewer.sparse.engine import sparse_engine
from fewer.sparse.linear import SparseLinear
from fewer.tasks.control.settings import Settings
from fewer.tasks.control.task import Control

__all__ = ["run"]

STATE, ACTION, LATENT, BATCH, CANDIDATES = 17, 6, 12, 100, 10
SPARSITY = 0.95
MASKED = "the same masked networks in torch, fused Adam"


def _layers(*sizes: int) -> nn.Sequential:
    modules: list[nn.Module] = []
    for before, after in pairwise(sizes):
        modules += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*modules[:-1])


class Encoder(nn.Module):
    """State and action to mean and logarithmic deviation of the latent variable."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(*_layers(STATE + ACTION, 750, 750), nn.ReLU())
        self.mean, self.log_std = nn.Linear(750, LATENT), nn.Linear(750, LATENT)

    def forward(self, state: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.trunk(torch.cat([state, action], 1))
        return self.mean(hidden), self.log_std(hidden).clamp(-4, 15).exp()


class Decoder(nn.Module):
    """State and latent variable to action."""

    def __init__(self) -> None:
        super().__init__()
        self.body = _layers(STATE + LATENT, 750, 750, ACTION)

    def forward(self, state: Tensor, latent: Tensor) -> Tensor:
        return torch.tanh(self.body(torch.cat([state, latent], 1)))


class Actor(nn.Module):
    """A small change of a proposed action."""

    def __init__(self) -> None:
        super().__init__()
        self.body = _layers(STATE + ACTION, 400, 300, ACTION)

    def forward(self, state: Tensor, action: Tensor) -> Tensor:
        change = 0.05 * torch.tanh(self.body(torch.cat([state, action], 1)))
        return (action + change).clamp(-1, 1)


class Critic(nn.Module):
    """The value of an action in a state."""

    def __init__(self) -> None:
        super().__init__()
        self.body = _layers(STATE + ACTION, 400, 300, 1)

    def forward(self, state: Tensor, action: Tensor) -> Tensor:
        value: Tensor = self.body(torch.cat([state, action], 1))
        return value


Nets = dict[str, nn.Module]
Batch = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]  # state, action, next state, reward, not done


def networks(seed: int) -> Nets:
    """Fresh networks; the second critic has its own weights."""
    torch.manual_seed(seed)
    return {"encoder": Encoder(), "decoder": Decoder(), "critic": Critic(), "critic2": Critic(), "actor": Actor()}


def autoencoder_loss(nets: Nets, batch: Batch) -> Tensor:
    """Reconstruction of the logged actions, and half the divergence of the latent variable."""
    state, action = batch[:2]
    mean, std = nets["encoder"](state, action)
    recon: Tensor = nets["decoder"](state, mean + std * torch.randn(std.shape, dtype=std.dtype))
    divergence: Tensor = -0.5 * (1 + std.pow(2).log() - mean.pow(2) - std.pow(2)).mean()
    return F.mse_loss(recon, action) + 0.5 * divergence


def critic_loss(nets: Nets, batch: Batch) -> Tensor:
    """Both critics against the best of ten perturbed candidates of the next state."""
    state, action, following, reward, alive = batch
    with torch.no_grad():
        repeated = following.repeat_interleave(CANDIDATES, 0)
        latent = torch.randn(len(repeated), LATENT, dtype=state.dtype).clamp(-0.5, 0.5)
        candidate = nets["actor_target"](repeated, nets["decoder"](repeated, latent))
        q1 = nets["critic_target"](repeated, candidate)
        q2 = nets["critic2_target"](repeated, candidate)
        q = 0.75 * torch.min(q1, q2) + 0.25 * torch.max(q1, q2)
        target = reward + alive * 0.99 * q.reshape(-1, CANDIDATES).max(1, keepdim=True)[0]
    return F.mse_loss(nets["critic"](state, action), target) + F.mse_loss(nets["critic2"](state, action), target)


def actor_loss(nets: Nets, batch: Batch) -> Tensor:
    """The value of perturbed candidates."""
    state = batch[0]
    with torch.no_grad():
        latent = torch.randn(len(state), LATENT, dtype=state.dtype).clamp(-0.5, 0.5)
        candidate = nets["decoder"](state, latent)
    value: Tensor = nets["critic"](state, nets["actor"](state, candidate))
    return -value.mean()


OBJECTIVES: dict[tuple[str, ...], Callable[[Nets, Batch], Tensor]] = {
    ("encoder", "decoder"): autoencoder_loss,
    ("critic", "critic2"): critic_loss,
    ("actor",): actor_loss,
}


def random_batch(samples: int, dtype: torch.dtype = torch.float32) -> Batch:
    """Normalised states and actions in range."""
    state, following = torch.randn(2, samples, STATE, dtype=dtype).unbind(0)
    reward = torch.randn(samples, 1, dtype=dtype)
    return state, torch.tanh(torch.randn(samples, ACTION, dtype=dtype)), following, reward, torch.ones_like(reward)


def with_targets(nets: Nets) -> Nets:
    """The networks and the slow copies that targets are computed from."""
    targets = {f"{name}_target": copy.deepcopy(nets[name]) for name in ("actor", "critic", "critic2")}
    return {**nets, **targets}


def snip_masks(nets: Nets, sparsity: float) -> dict[str, dict[str, Tensor]]:
    """The largest |weight * gradient| of each network on one batch; the second critic has the first one's mask."""
    nets, batch = with_targets(nets), random_batch(BATCH)
    masks: dict[str, dict[str, Tensor]] = {}
    for names, loss in OBJECTIVES.items():
        value = loss(nets, batch)
        for name in names:
            weights = {key: p for key, p in nets[name].named_parameters() if p.dim() == 2}
            gradients = torch.autograd.grad(value, list(weights.values()), retain_graph=True)
            scores = [(weight * gradient).abs().flatten() for weight, gradient in zip(weights.values(), gradients)]
            flat = torch.cat(scores)
            kept = torch.zeros_like(flat, dtype=torch.bool)
            kept[flat.topk(round((1 - sparsity) * len(flat))).indices] = True
            parts = kept.split([len(score) for score in scores])
            masks[name] = {key: part.view_as(weights[key]) for key, part in zip(weights, parts)}
    masks["critic2"] = masks["critic"]
    return masks


class Group:
    """The parameters of some networks as views of one flat tensor, with one optimiser state."""

    def __init__(self, modules: Sequence[nn.Module], masks: Sequence[dict[str, Tensor]] | None) -> None:
        named = [(i, key, p) for i, module in enumerate(modules) for key, p in module.named_parameters()]
        self.parameters = [p for _, _, p in named]
        self.flat = torch.cat([p.detach().flatten() for p in self.parameters])
        for p, part in zip(self.parameters, self.flat.split([p.numel() for p in self.parameters])):
            p.data = part.view_as(p)
        self.mask: Tensor | None = None
        if masks is not None:
            ones = [masks[i].get(key, torch.ones(p.shape, dtype=torch.bool)) for i, key, p in named]
            self.mask = torch.cat([part.flatten() for part in ones])
            self.flat.mul_(self.mask)
        self.gradient, self.mean, self.square = (torch.zeros_like(self.flat) for _ in range(3))
        self.count = torch.zeros(())

    def step(self, loss: Tensor) -> None:
        """One step of Adam; masks on the gradients and after the step."""
        gradients = torch.autograd.grad(loss, self.parameters)
        torch.cat([gradient.flatten() for gradient in gradients], out=self.gradient)
        if self.mask is not None:
            self.gradient.mul_(self.mask)
        adam(
            [self.flat], [self.gradient], [self.mean], [self.square], [], [self.count], fused=True,
            amsgrad=False, beta1=0.9, beta2=0.999, lr=1e-3, weight_decay=0.0, eps=1e-8, maximize=False,
        )  # fmt: skip
        if self.mask is not None:
            self.flat.mul_(self.mask)

    def bytes(self) -> int:
        """Weights, gradients and optimiser state."""
        tensors = [self.flat, self.gradient, self.mean, self.square]
        return sum(t.numel() * t.element_size() for t in tensors)


class Learner:
    """One training run of BCQ, or of its autoencoder alone (BC)."""

    def __init__(self, nets: Nets, masks: dict[str, dict[str, Tensor]], *, sparse: bool, objectives: int = 3) -> None:
        nets = {name: copy.deepcopy(nets[name]) for names in list(OBJECTIVES)[:objectives] for name in names}
        if sparse:
            nets = {name: convert(net, masks[name]) for name, net in nets.items()}
        self.groups = {
            names: Group([nets[name] for name in names], None if sparse else [masks[name] for name in names])
            for names in list(OBJECTIVES)[:objectives]
        }
        self.nets = with_targets(nets) if objectives == 3 else nets
        self.copies = [
            (Group([self.nets[f"{name}_target"] for name in names], None).flat, self.groups[names].flat)
            for names in list(self.groups)[1:]
        ]

    def update(self, batch: Batch) -> None:
        """All objectives in turn, then the slow copies."""
        for names, group in self.groups.items():
            group.step(OBJECTIVES[names](self.nets, batch))
        for slow, fast in self.copies:
            slow.lerp_(fast, 0.005)

    def bytes(self) -> tuple[int, int]:
        """Weights, gradients and optimiser state; and the masks or positions, which slow copies share."""
        layers = [m for net in self.nets.values() for m in net.modules() if isinstance(m, SparseLinear)]
        where = sum({id(layer.pattern): layer.pattern.index_bytes for layer in layers}.values())
        where += sum(group.mask.numel() for group in self.groups.values() if group.mask is not None)
        return sum(group.bytes() for group in self.groups.values()), where


def run(quick: bool = False) -> list[Row]:
    """Updates per second of BCQ and of BC, and the memory of training, at 95 % sparsity."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        rounds = 3 if quick else 15
        return _rows(rounds) + _task_rows(rounds)
    finally:
        torch.set_num_threads(threads)


def _rows(rounds: int) -> list[Row]:
    nets = networks(0)
    masks = snip_masks(nets, SPARSITY)
    batch = random_batch(BATCH)
    rows = []
    for what, objectives, required in (("BCQ", 3, 6.0), ("BC", 1, 5.0)):
        sides = [Learner(nets, masks, sparse=sparse, objectives=objectives) for sparse in (True, False)]
        calls = {name: partial(side.update, batch) for name, side in zip(("ours", "theirs"), sides)}
        seconds = interleaved_seconds(calls, rounds=rounds, repeats=4)
        speed = {name: 1 / value for name, value in seconds.items()}
        ratio = speed["ours"] / speed["theirs"]
        what_row = f"{what} training, 95 % sparse, batch {BATCH}"
        rows.append(Row(what_row, speed["ours"], speed["theirs"], "updates/s", ratio, MASKED, required))
        if objectives == 3:
            (ours, ours_where), (theirs, theirs_where) = (side.bytes() for side in sides)
            for name, mine, other in (
                ("BCQ weights, gradients, optimiser state", ours, theirs),
                ("the same with masks or positions", ours + ours_where, theirs + theirs_where),
            ):
                rows.append(Row(name, mine / 1e6, other / 1e6, "MB", other / mine, MASKED, 12.0))
    return rows


def _task_rows(rounds: int) -> list[Row]:
    """The control task itself by the two engines: sampling, noise and logging of losses included on both sides."""
    logs = random_logs(5000)
    rows = []
    for algorithm in ("bcq", "bc"):
        task = Control(Settings(environment="halfcheetah", algorithm=algorithm), logs=logs)
        sides: dict[str, Engine] = {}
        for name in ("ours", "theirs"):
            plain = Plain(task, Training(steps=1_000_000, batch=BATCH), 0)
            prune_(plain, Pruning("snip", SPARSITY, samples=BATCH))
            sides[name] = sparse_engine(plain) if name == "ours" else plain
        calls = {name: partial(side.advance, 1) for name, side in sides.items()}
        speed = {name: 1 / value for name, value in interleaved_seconds(calls, rounds=rounds, repeats=4).items()}
        what = f"control task, {algorithm}, 95 % sparse, batch {BATCH}"
        against = "the same masked networks, engine plain"
        rows.append(Row(what, speed["ours"], speed["theirs"], "updates/s", speed["ours"] / speed["theirs"], against))
    return rows
