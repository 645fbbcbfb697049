"""`fewer data control`: as much of an expert's experience as wanted, or a look at your own logs."""

from __future__ import annotations

import argparse
from pathlib import Path

from fewer.core.errors import UserError


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("--env", metavar="NAME", help="halfcheetah, hopper or walker2d; with --check any Gymnasium id")
    parser.add_argument("--transitions", type=int, default=100_000, help="how many steps to collect (100000)")
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same file (0)")
    parser.add_argument(
        "--noise", type=float, help="deviation of the noise on each action, before it is squashed (as it bears)"
    )
    parser.add_argument("--out", metavar="FILE", help="HDF5 in D4RL's layout")
    parser.add_argument(
        "--check", metavar="PATH", help="read D4RL's or Minari's HDF5 or an npz; say what is in it or what is wrong"
    )


def run(arguments: argparse.Namespace) -> None:
    """Check or collect."""
    if arguments.check:
        _check(arguments)
    elif not arguments.out or not arguments.env:
        raise UserError(
            "no --env or no --out", "an environment and a file to write",
            "fewer data control --env hopper --transitions 100000 --out hopper.hdf5",
        )  # fmt: skip
    else:
        _collect(arguments)


def _check(arguments: argparse.Namespace) -> None:
    from fewer.cli.show import show
    from fewer.systems.control.task.logs import checks, files
    from fewer.systems.control.task.worlds.environments import environment

    steps = files.read(arguments.check, environment(arguments.env) if arguments.env else None)
    world = environment(arguments.env) if arguments.env else files.guess(arguments.check, steps)
    if world is not None:
        checks.check(arguments.check, steps, world)
    show(checks.summary(steps, world), arguments.json)


def _collect(arguments: argparse.Namespace) -> None:
    from time import perf_counter

    from fewer.cli.show import show
    from fewer.systems.control.task.logs import checks, d4rl, experts
    from fewer.systems.control.task.worlds.environments import environment

    if not 0 <= arguments.seed < 2**62:
        raise UserError(f"--seed {arguments.seed}", "0 to below 2^62")
    world = environment(arguments.env)
    noise = experts.NOISE.get(world.name, 0.0) if arguments.noise is None else arguments.noise
    d4rl.make_room(arguments.out)
    if Path(arguments.out).exists():
        raise UserError(f"{arguments.out}, which exists", "a file to write", "remove it, or choose another name")
    begun = perf_counter()
    steps = experts.collect(world, arguments.transitions, seed=arguments.seed, noise=noise)
    seconds = perf_counter() - begun
    about = {"environment": world.gymnasium, "seed": arguments.seed, "noise": noise}
    written = d4rl.write(arguments.out, steps, about)
    use = f"fewer train control --set environment={world.name} --set data={arguments.out} --out runs/{world.name}"
    pace = round(len(steps.reward) / seconds)
    said = {"out": arguments.out, "bytes": written, "transitions a second": pace, "use": use}
    show({**said, **checks.summary(steps, world)}, arguments.json)
