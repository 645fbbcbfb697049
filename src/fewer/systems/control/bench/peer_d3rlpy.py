"""The other side of `fewer bench offline`: trains with d3rlpy and rolls its policy out, in a Python of its own.

It is run as a file by a Python that has d3rlpy, gymnasium and mujoco, and knows nothing of this package: one JSON
object in on standard input, one out on standard output.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np


def main() -> None:
    """Read what is asked, train, roll out, answer."""
    asked: dict[str, Any] = json.load(sys.stdin)
    import d3rlpy
    import torch

    torch.set_num_threads(1)
    d3rlpy.seed(asked["seed"])
    with np.load(asked["logs"], allow_pickle=False) as logs:
        dataset = d3rlpy.dataset.MDPDataset(
            observations=logs["observation"], actions=logs["action"], rewards=logs["reward"],
            terminals=logs["terminal"].astype(np.float32), timeouts=logs["timeout"].astype(np.float32),
        )  # fmt: skip
    algorithm = _algorithm(d3rlpy, asked["algorithm"], tuple(asked["hidden"]))
    algorithm.build_with_dataset(dataset)
    begin = time.process_time()
    algorithm.fit(
        dataset, n_steps=asked["updates"], n_steps_per_epoch=asked["updates"], show_progress=False, save_interval=10**9,
        logger_adapter=d3rlpy.logging.NoopAdapterFactory(),
    )  # fmt: skip
    seconds = time.process_time() - begin
    answer = {"returns": _returns(algorithm, asked), "seconds": seconds, "version": d3rlpy.__version__}
    print("\n" + json.dumps(answer))


def _algorithm(d3rlpy: Any, name: str, hidden: tuple[int, ...]) -> Any:
    """With the networks, the batch and the normalisation of ours, and d3rlpy's own rates."""
    encoder = d3rlpy.models.encoders.VectorEncoderFactory(list(hidden))
    common = {"batch_size": 100, "observation_scaler": d3rlpy.preprocessing.StandardObservationScaler()}
    kinds = {
        "plain-bc": lambda: d3rlpy.algos.BCConfig(encoder_factory=encoder, **common),
        "bcq": lambda: d3rlpy.algos.BCQConfig(
            actor_encoder_factory=encoder, critic_encoder_factory=encoder, n_action_samples=10,
            imitator_encoder_factory=d3rlpy.models.encoders.VectorEncoderFactory([750, 750]), **common,
        ),
        "iql": lambda: d3rlpy.algos.IQLConfig(
            actor_encoder_factory=encoder, critic_encoder_factory=encoder, value_encoder_factory=encoder, **common
        ),
    }  # fmt: skip
    return kinds[name]().create(device="cpu:0")


def _returns(algorithm: Any, asked: dict[str, Any]) -> list[float]:
    import gymnasium

    world, found = gymnasium.make(asked["environment"]), []
    for seed in asked["episode_seeds"]:
        seen, _ = world.reset(seed=seed)
        total, done = 0.0, False
        while not done:
            action = algorithm.predict(seen[None].astype(np.float32))[0]
            seen, reward, fallen, cut, _ = world.step(np.clip(action, -1, 1))
            total, done = total + float(reward), fallen or cut
        found.append(total)
    return found


if __name__ == "__main__":
    main()
