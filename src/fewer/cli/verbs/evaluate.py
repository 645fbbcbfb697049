"""`fewer evaluate`: a run's metrics on a split, clean or attacked."""

from __future__ import annotations

import argparse

from fewer.cli.words import DEVICES, SPLITS, add_attack, add_changes, offer
from fewer.core.errors import UserError
from fewer.core.settings import either


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("run", nargs="+", help="finished run folders")
    add_attack(parser, "repeatable, or several with + between")
    offer(parser.add_argument("--split", default="test", help=either(SPLITS)), SPLITS)
    parser.add_argument("--limit", type=int, help="attack only the first so many samples")
    offer(parser.add_argument("--device", default="cpu", help=either(DEVICES)), DEVICES)
    add_changes(parser)


def run(arguments: argparse.Namespace) -> None:
    """Metrics of each run."""
    from fewer.cli.show import show
    from fewer.pruning.reach import count
    from fewer.run.load import load

    results = {}
    for path in arguments.run:
        run = load(path, arguments.set)
        results[path] = {**metrics_of(run, arguments), **count(run.task, run.modules, run.mask).metrics()}
    one = next(iter(results.values()))
    if len(results) == 1:
        show(one, arguments.json)
    elif arguments.json:
        show(results, True)
    else:
        for path, found in results.items():
            print(f"{path}\n" + "\n".join(f"  {name} {value:.4g}" for name, value in found.items()))


def metrics_of(run, arguments: argparse.Namespace) -> dict[str, float]:  # type: ignore[no-untyped-def]
    """Clean metrics, or under attack."""
    from fewer.core.engines.evaluate import evaluate, predictor

    modules = {name: module.to(arguments.device) for name, module in run.modules.items()}
    seed = run.job.seeds[0]
    if arguments.attack is None:
        if arguments.limit is not None:
            raise UserError(f"--limit {arguments.limit} without --attack", "both or neither", "add --attack")
        return evaluate(run.task, predictor(run.task, modules, seed), arguments.split)
    from fewer.attack.metrics import under_attack
    from fewer.core.abilities import Classifier

    attacks, classifier = "+".join(arguments.attack), isinstance(run.task, Classifier)
    found = under_attack(run.task, modules, attacks, split=arguments.split, limit=arguments.limit, seed=seed)
    return found if classifier else {f"{name} under {attacks}": value for name, value in found.items()}
