"""Train the three experts that come with the package from logged expert episodes, prune and pack them.

python scripts/train_experts.py FOLDER [NAME ...]

FOLDER holds NAME-expert.hdf5 in D4RL's layout. The loss is close to an absolute error: the actions are samples, and
the median of a squashed normal is the squashed mean, where its mean is drawn to the middle.
"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
import torch
from torch import Tensor, nn

from fewer.packs import pack
from fewer.packs.trace.trace import trace
from fewer.systems.control.task.logs import d4rl
from fewer.systems.control.task.logs.transitions import Transitions
from fewer.systems.control.task.worlds.environments import ENVIRONMENTS

UNITS, RATE = 256, 1e-3
AVERAGE = 0.999  # the weights that ship are a running mean of those trained


@dataclass(frozen=True)
class Recipe:
    """How long, and how many of each layer's weights go, the smallest first, between a sixth and half of the time."""

    steps: int
    removed: tuple[float, float, float]
    batch: int = 256
    bend: float = 0.1  # error at which the loss turns from squares to absolute values
    blur: float = 0.0  # noise on observations in training, in their deviations: what keeps samples from being learnt


DENSE, SPARSE = (0.0, 0.0, 0.0), (0.5, 0.85, 0.5)
RECIPES = {
    "halfcheetah": Recipe(8_000, DENSE, bend=1.0, blur=0.02),
    "hopper": Recipe(30_000, SPARSE),
    # sampled from a policy without noise: there is no floor, and every weight brings it nearer to that policy
    "walker2d": Recipe(40_000, DENSE, batch=128),
}


class Policy(nn.Module):
    """Normalised observations to actions within -1 and 1."""

    mean: Tensor
    spread: Tensor

    def __init__(self, mean: Tensor, spread: Tensor, actions: int) -> None:
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("spread", spread)
        self.first, self.second = nn.Linear(len(mean), UNITS), nn.Linear(UNITS, UNITS)
        self.last = nn.Linear(UNITS, actions)

    def forward(self, observation: Tensor) -> Tensor:
        x = (observation - self.mean) / self.spread
        return torch.tanh(self.last(torch.relu(self.second(torch.relu(self.first(x))))))

    def layers(self) -> dict[str, nn.Linear]:
        """Those with weights to remove, by name."""
        return {"first": self.first, "second": self.second, "last": self.last}


def good_episodes(steps: Transitions) -> tuple[Tensor, Tensor]:
    """Observations and actions of the episodes that reached the clock with nearly the usual return."""
    ends = np.flatnonzero(steps.terminal | steps.timeout)
    starts = np.concatenate([[0], ends[:-1] + 1])
    returns = np.array([steps.reward[a : b + 1].sum() for a, b in zip(starts, ends)])
    whole = steps.timeout[ends] & (ends - starts + 1 == 1000)
    chosen = whole & (returns > 0.9 * np.median(returns[whole]))
    rows = np.concatenate([np.arange(a, b + 1) for a, b in zip(starts[chosen], ends[chosen])])
    return torch.from_numpy(steps.observation[rows]), torch.from_numpy(steps.action[rows])


def smallest_removed_(policy: Policy, masks: list[Tensor], along: float, recipe: Recipe) -> None:
    """Renew the masks when this part of the training is done; a cubic from nothing to all that go."""
    force = 1 - (1 - min(max(3 * along - 0.5, 0.0), 1.0)) ** 3
    for layer, mask, share in zip(policy.layers().values(), masks, recipe.removed):
        count = round(share * force * mask.numel())
        mask.fill_(1).view(-1)[layer.weight.detach().abs().view(-1).argsort()[:count]] = 0


def trained(observation: Tensor, action: Tensor, recipe: Recipe) -> tuple[Policy, list[Tensor], float]:
    """The averaged policy, its masks, and its last loss."""
    torch.manual_seed(0)
    policy = Policy(observation.mean(0), observation.std(0) + 1e-3, action.shape[1])
    average = [parameter.detach().clone() for parameter in policy.parameters()]
    masks = [torch.ones_like(layer.weight) for layer in policy.layers().values()]
    optimizer, usual = torch.optim.Adam(policy.parameters(), lr=RATE, fused=True), 0.0
    for step in range(recipe.steps):
        optimizer.param_groups[0]["lr"] = RATE * 0.5 * (1 + math.cos(math.pi * step / recipe.steps)) + 1e-6
        rows = torch.randint(len(observation), (recipe.batch,))
        seen = observation[rows]
        if recipe.blur:
            seen = seen + recipe.blur * policy.spread * torch.randn_like(seen)
        loss = nn.functional.smooth_l1_loss(policy(seen), action[rows], beta=recipe.bend)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0 and step <= recipe.steps // 2:
            smallest_removed_(policy, masks, step / recipe.steps, recipe)
        with torch.no_grad():
            for layer, mask in zip(policy.layers().values(), masks):
                layer.weight.mul_(mask)
            torch._foreach_lerp_(average, list(policy.parameters()), 1 - AVERAGE)
        usual = 0.999 * usual + 0.001 * loss.item()
        if (step + 1) % 2_000 == 0:
            print(f"step {step + 1}: loss {usual:.4f}", flush=True)
    with torch.no_grad():
        for parameter, mean in zip(policy.parameters(), average):
            parameter.copy_(mean)
        for layer, mask in zip(policy.layers().values(), masks):
            layer.weight.mul_(mask)
    return policy, masks, usual


def ship(name: str, policy: Policy, masks: list[Tensor], samples: int, loss: float) -> int:
    """Write the pack; its length in bytes."""
    with torch.no_grad():
        program, tensors = trace(policy, {"observation": torch.zeros(2, len(policy.mean))})
    settings = {
        "task": "control", "environment": ENVIRONMENTS[name].gymnasium, "units": UNITS, "trained on": samples,
        "removed": list(RECIPES[name].removed), "loss": round(loss, 5),
    }  # fmt: skip
    by_name = {f"{layer}.weight": mask.bool().numpy() for layer, mask in zip(policy.layers(), masks)}
    zoo = Path(__file__).parents[1] / "src/fewer/zoo"
    return pack.write(zoo / f"control-{name}.pack", program, tensors, masks=by_name, settings=settings)


def main() -> None:
    """One pack an environment."""
    for name in sys.argv[2:] or ENVIRONMENTS:
        with h5py.File(Path(sys.argv[1]) / f"{name}-expert.hdf5") as file:
            steps = d4rl.from_file(name, file)
        observation, action = good_episodes(steps)
        policy, masks, loss = trained(observation, action, RECIPES[name])
        written = ship(name, policy, masks, len(observation), loss)
        print(json.dumps({"pack": f"control-{name}", "bytes": written, "steps": len(observation)}), flush=True)


if __name__ == "__main__":
    main()
