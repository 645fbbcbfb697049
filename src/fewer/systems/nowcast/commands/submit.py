"""`fewer submit`: from trained runs to the competition's zip, and the check of such a zip."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fewer.cli.words import DEVICES, add_changes, offer
from fewer.core.errors import Notice, UserError
from fewer.core.settings import either, nearest
from fewer.ensemble import HOW
from fewer.systems.nowcast.commands.data import add_layout
from fewer.systems.nowcast.task.files.layout import CONTESTS

_SPLITS = ("test", "heldout", "validation")

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fewer.core.task import Predict
    from fewer.run.load import Trained
    from fewer.systems.nowcast.task.files.archive import Archive
    from fewer.systems.nowcast.task.files.layout import Place
    from fewer.systems.nowcast.task.files.submission import Rules


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("run", nargs="*", help="finished nowcast runs; several vote")
    parser.add_argument("--data", metavar="DIR", help="folder in the competition's layout")
    parser.add_argument("--out", metavar="FILE.zip", help="the submission")
    parser.add_argument("--netcdf", metavar="DIR", help="the same as `fewer forecast DIR --pack RUN -o DIR`")
    parser.add_argument("--verify", metavar="FILE.zip", help="check a submission instead of writing one")
    contest = parser.add_argument(
        "--contest", default="all", help=f"{', '.join(CONTESTS)}, or all region-years that are there"
    )
    offer(contest, [*CONTESTS, "all"])
    rules = parser.add_argument(
        "--rules", default="2022", help="2022: decisions; 2023: mm/h; 2023-nowcasting: of 4 hours"
    )
    offer(rules, _rule_names)
    offer(parser.add_argument("--split", default="test", help="test or heldout (validation for a rehearsal)"), _SPLITS)
    offer(parser.add_argument("--how", default="majority", help=f"how several runs decide: {either(HOW)}"), HOW)
    parser.add_argument("--threshold", type=float, default=0.5, help="probability from which it rains")
    offer(
        parser.add_argument("--dtype", default="float32", help="float32 or, for decisions, uint8"), ("float32", "uint8")
    )
    add_layout(parser)
    parser.add_argument("--batch", type=int, default=4, help="forecasts computed at once")
    add_changes(parser)
    offer(parser.add_argument("--device", default="cpu", help=either(DEVICES)), DEVICES)


def _rule_names() -> list[str]:
    from fewer.systems.nowcast.task.files.submission import RULES

    return list(RULES)


def run(arguments: argparse.Namespace) -> None:
    """Write, then check what was written; or only check."""
    from fewer.cli.show import show

    _rules(arguments)
    if arguments.contest != "all":
        _places(arguments.contest)
    if arguments.verify:
        problems = _verified(Path(arguments.verify), arguments)
        if problems:
            if arguments.json:
                show({"problems": problems}, True)
            more = f" and {len(problems) - 1} more" if len(problems) > 1 else ""
            raise UserError(f"{problems[0]}{more}", "a submission that the competition takes", "--json lists all")
        show({"verified": arguments.verify}, arguments.json)
        return
    if not arguments.run or not arguments.data or not (arguments.out or arguments.netcdf):
        raise UserError("too little to go on", "RUN --data DIR and --out FILE.zip or --netcdf DIR", "or --verify FILE")
    if arguments.split not in _SPLITS:
        raise UserError(f"--split {arguments.split}", either(_SPLITS))
    if not 0 < arguments.threshold < 1 or arguments.batch < 1:
        raise UserError(f"threshold {arguments.threshold}, batch {arguments.batch}", "between 0 and 1; 1 or more")
    if arguments.netcdf:
        words = f"fewer forecast {arguments.data} --pack RUN -o {arguments.netcdf}"
        warnings.warn(f"submit --netcdf has moved: {words}", Notice, stacklevel=1)
    runs = _runs(arguments)
    archive = _archive(arguments, literal=_literal(runs[0]))
    predict = _predictor(arguments, runs, archive)
    written = _write(arguments, archive, predict)
    show(written, arguments.json)


def _rules(arguments: argparse.Namespace) -> Rules:
    from fewer.systems.nowcast.task.files.submission import RULES

    if arguments.rules not in RULES:
        raise UserError(f"rules {arguments.rules!r}", "a year's", nearest(arguments.rules, list(RULES)))
    return RULES[arguments.rules]


def _places(contest: str) -> tuple[Place, ...]:

    if contest not in CONTESTS:
        raise UserError(f"contest {contest!r}", "a contest or all", nearest(contest, [*CONTESTS, "all"]))
    return CONTESTS[contest]


def _archive(arguments: argparse.Namespace, *, literal: bool = False) -> Archive:
    """The pieces to forecast; every region-year of a named contest has to be there."""
    from fewer.systems.nowcast.task.files.archive import Archive, Reading, open_archive

    archive = open_archive(arguments.data, arguments.split, Reading(layout=arguments.layout, literal=literal))
    if arguments.contest == "all":
        return archive
    wanted, held = _places(arguments.contest), [archive.places[piece.place] for piece in archive.pieces]
    absent = [place for place in wanted if place not in held]
    if absent:
        raise UserError(f"{arguments.data} without {absent[0]}", f"all {len(wanted)} of {arguments.contest}")
    pieces = [piece for piece, place in zip(archive.pieces, held) if place in wanted]
    return Archive(pieces, archive.places, archive.size)


def _runs(arguments: argparse.Namespace) -> list[Trained]:
    """Of nowcast, all of which read missing pixels alike."""
    from fewer.run.load import load

    runs = [load(path, arguments.set) for path in arguments.run]
    for path, one in zip(arguments.run, runs):
        if one.job.task != "nowcast":
            raise UserError(f"{path} of {one.job.task}", "runs of nowcast")
    if len({_literal(one) for one in runs}) > 1:
        raise UserError("runs with and without literal", "runs that read missing pixels alike", "submit them apart")
    return runs


def _literal(run: Trained) -> bool:
    task: Any = run.task
    return bool(task.settings.literal)


def _predictor(arguments: argparse.Namespace, runs: list[Trained], archive: Archive) -> Predict:
    from fewer.core.engines.evaluate import predictor
    from fewer.ensemble.combine import combine

    rates = _rules(arguments).rates
    if rates and len(runs) > 1 and arguments.how != "mean":
        raise UserError(f"rates by {arguments.how}", "the mean of several runs' rates", "--how mean")
    members, size = [], archive.size
    for path, one in zip(arguments.run, runs):
        if (side := getattr(one.task, "size", size)) != size:
            raise UserError(f"{path} trained for {side} pixels", f"{size}, as {arguments.data} has", "train for it")
        networks = {name: net.to(arguments.device) for name, net in one.modules.items()}
        member = predictor(one.task, networks, one.job.seeds[0])
        members.append(_rated(one.task, member) if rates else member)
    if len(members) == 1:
        return members[0]
    if arguments.how == "majority":
        members = [_decided(member, arguments.threshold) for member in members]
    return _renumbered(combine(runs[0].task, members, arguments.how), runs[0].task, archive)


def _decided(member: Predict, threshold: float) -> Predict:
    """Rain or none, before votes are counted."""
    return lambda batch: (member(batch) >= threshold).float()


def _renumbered(predict: Predict, task: Any, archive: Archive) -> Predict:
    """Members were chosen by the places of their own data, which need not be numbered as those of the archive."""
    import torch

    known = task.places
    numbers = torch.tensor([known.index(place) if place in known else -1 for place in archive.places])
    return lambda batch: predict(batch._replace(place=numbers[batch.place]))


def _rated(task: Any, member: Predict) -> Predict:
    """Rates instead of probabilities."""
    return lambda batch: task.rates(member(batch))


def _write(arguments: argparse.Namespace, archive: Archive, predict: Predict) -> dict[str, Any]:
    import tempfile

    import numpy as np

    from fewer.systems.nowcast.commands.region_years import write_region_year
    from fewer.systems.nowcast.task.files.submission import Expected, write_forecast, write_zip

    out, rules = Path(arguments.out) if arguments.out else None, _rules(arguments)
    voted = len(arguments.run) > 1 and arguments.how == "majority"
    cut = 0.5 if voted else arguments.threshold  # voters have decided by the threshold, and a tie is rain
    written: dict[str, Any] = {"forecasts": len(archive), "region-years": len(archive.pieces)}
    with tempfile.TemporaryDirectory(
        dir=out.absolute().parent if out and out.absolute().parent.is_dir() else None
    ) as held:
        for number, piece in enumerate(archive.pieces):
            place, samples = archive.places[piece.place], archive.samples(number)
            parts = _predictions(arguments, archive, samples, predict)
            if arguments.netcdf:
                values = np.concatenate(list(parts))
                write_region_year(
                    Path(arguments.netcdf), archive, number, values, split=arguments.split, rates=rules.rates
                )
                parts = iter([values])
            if out:
                if not rules.rates:
                    parts = ((part >= cut).astype(np.uint8) for part in parts)
                first = (part[:, : rules.slots] for part in parts)
                expected = Expected(len(samples), archive.size, rules)
                write_forecast(Path(held), place, first, expected, dtype=arguments.dtype)
        if out:
            write_zip(Path(held), out)
            problems = _verified(out, arguments)
            if problems:
                raise UserError(problems[0], "a submission that the competition takes", "--contest or --data differs")
    return written | {key: getattr(arguments, key) for key in ("out", "netcdf") if getattr(arguments, key)}


def _predictions(
    arguments: argparse.Namespace, archive: Archive, samples: range, predict: Predict
) -> Iterator[NDArray[np.float32]]:
    import torch

    for index in torch.tensor(samples).split(arguments.batch):
        yield predict(archive.take(index)).float().cpu().numpy()


def _verified(path: Path, arguments: argparse.Namespace) -> list[str]:
    """Against the folder's own blocks if it is named, else against the competition's 60 of 252 pixels."""
    from fewer.systems.nowcast.task.files.submission import Expected, verify

    rules = _rules(arguments)
    if not arguments.data:
        contest = "core" if arguments.contest == "all" else arguments.contest
        return verify(path, {place: Expected(rules=rules) for place in _places(contest)})
    archive = _archive(arguments)
    counts = {archive.places[piece.place]: len(piece.rows.starts) for piece in archive.pieces}
    return verify(path, {place: Expected(count, archive.size, rules) for place, count in counts.items()})
