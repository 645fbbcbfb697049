"""Record expert logs that no recipe was chosen on: what `fewer reproduce control/defaults --data LOGS` is judged on.

python scripts/record_unseen.py EXPERTS LOGS

EXPERTS holds hopper.zip, halfcheetah.zip and walker2d.zip: the TQC agents tqc/Hopper-v3_1/Hopper-v3.zip and so on of
the public collection rl-trained-agents (DLR-RM). Of each only the tensors in policy.pth are read, and not unpickled.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch_tensors import read_tensors

from fewer.systems.control.task.logs import d4rl
from fewer.systems.control.task.logs.experts import Policy, collect
from fewer.systems.control.task.logs.transitions import Transitions
from fewer.systems.control.task.worlds.environments import environment

STEPS, SEED = 40_000, 4242
_LOG_STD = -20.0, 2.0  # between which the collection's agents hold the logarithm of their deviation
NAMES = {"hopper": "Hopper", "halfcheetah": "HalfCheetah", "walker2d": "Walker2d"}


def sampler(agent: Path, seed: int) -> Policy:
    """The agent's actions, sampled from its squashed normal as it sampled them when it learned."""
    with zipfile.ZipFile(agent) as archive:
        tensors = read_tensors(archive.read("policy.pth"))
    layers = {
        name: (tensors[f"actor.{name}.weight"].T, tensors[f"actor.{name}.bias"])
        for name in ("latent_pi.0", "latent_pi.2", "mu", "log_std")
    }
    random = np.random.default_rng(seed)

    def act(observation: NDArray[np.float32]) -> NDArray[np.float32]:
        hidden = observation
        for name in ("latent_pi.0", "latent_pi.2"):
            weight, bias = layers[name]
            hidden = np.maximum(hidden @ weight + bias, 0)
        mean, log_std = (hidden @ weight + bias for weight, bias in (layers["mu"], layers["log_std"]))
        noise = random.standard_normal(mean.shape, dtype=np.float32)
        return np.asarray(np.tanh(mean + np.exp(np.clip(log_std, *_LOG_STD)) * noise), dtype=np.float32)

    return act


def summary(name: str, steps: Transitions) -> str:
    """Mean score, episodes and falls, for the note beside the numbers."""
    ends = np.flatnonzero(steps.terminal | steps.timeout)
    returns = np.add.reduceat(steps.reward.astype(np.float64), np.concatenate([[0], ends[:-1] + 1]))
    score = np.mean([environment(name).score(float(value)) for value in returns])
    return f"{score:.1f} ({NAMES[name]}, {len(ends)} episodes, {int(steps.terminal.sum())} falls)"


def main(experts: str, logs: str) -> None:
    """Three files of logs and ABOUT.txt, which the study prints under its table."""
    lines = []
    for name in NAMES:
        agent = sampler(Path(experts) / f"{name}.zip", SEED)
        steps = collect(name, STEPS, seed=SEED, noise=0.0, act=agent)
        d4rl.write(Path(logs) / f"{name}-expert.hdf5", steps)
        lines.append(summary(name, steps))
        print(lines[-1], flush=True)
    about = (
        f"The logs are {STEPS:,} steps for each environment in which the TQC experts of the public collection "
        "rl-trained-agents (DLR-RM) sample their actions in Gymnasium's v5 environments, made by "
        f"`python scripts/record_unseen.py EXPERTS LOGS` (seed {SEED}): mean scores {', '.join(lines)}; the last "
        "episode is cut where the log ends. Recipes were chosen on other roll-outs.\n"
    )
    (Path(logs) / "ABOUT.txt").write_text(about)


if __name__ == "__main__":
    main(*sys.argv[1:])
