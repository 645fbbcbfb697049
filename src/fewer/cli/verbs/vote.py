"""`fewer vote`: several runs as one ensemble."""

from __future__ import annotations

import argparse

from fewer.cli.words import SPLITS, offer
from fewer.core.errors import UserError
from fewer.core.settings import either
from fewer.ensemble import HOW


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("run", nargs="+", help="finished runs of the same task and settings' data")
    offer(parser.add_argument("--how", default="mean", help=f"{either(HOW)}; best is by group if a task has such"), HOW)
    offer(parser.add_argument("--split", default="test", help="where to count"), SPLITS)
    choose = parser.add_argument(
        "--choose-on", default="validation", help="where weights or the best member are chosen"
    )
    offer(choose, SPLITS)


def _question(run, member, split: str):  # type: ignore[no-untyped-def]
    """What must be equal if answers are to be counted together: the shapes of both sides, and the labels."""
    import torch
    from torch.utils import _pytree as pytree

    from fewer.core.abilities import Classifier

    data = run.task.data(split)
    batch = data.take(torch.linspace(0, len(data) - 1, min(64, len(data))).long())
    inputs = run.task.inputs(batch)
    labels = run.task.labels(batch).tolist() if isinstance(run.task, Classifier) else None
    return [tuple(leaf.shape) for leaf in pytree.tree_leaves(inputs)], tuple(member(batch).shape), labels


def run(arguments: argparse.Namespace) -> None:
    """Metrics of each member and of the ensemble."""
    from fewer.cli.show import show
    from fewer.core.engines.evaluate import evaluate, predictor
    from fewer.ensemble.combine import combine
    from fewer.run.load import load

    runs = [load(path) for path in arguments.run]
    task = runs[0].task
    for path, one in zip(arguments.run, runs):
        if one.job.task != runs[0].job.task:
            raise UserError(f"{path} of {one.job.task}", f"runs of one task, {runs[0].job.task}")
    members = [predictor(one.task, one.modules, one.job.seeds[0]) for one in runs]
    questions = [_question(one, member, arguments.split) for one, member in zip(runs, members)]
    for path, question in zip(arguments.run, questions):
        if question != questions[0]:
            raise UserError(f"{path}, which answers another question than {arguments.run[0]}", "runs on the same data")
    each = {
        path: evaluate(one.task, member, arguments.split) for path, one, member in zip(arguments.run, runs, members)
    }
    together = evaluate(task, combine(task, members, arguments.how, split=arguments.choose_on), arguments.split)
    if arguments.how in ("best", "weighted") and arguments.choose_on == arguments.split:
        together["chosen_on_the_split_it_is_counted_on"] = 1.0
    if any("trained_on_validation" in found for found in each.values()):
        together["trained_on_validation"] = 1.0
    if arguments.json:
        show({"members": each, arguments.how: together}, True)
        return
    for path, found in [*each.items(), (arguments.how, together)]:
        print(f"{path}: " + "  ".join(f"{name} {value:.4f}" for name, value in found.items()))
