"""`fewer submit`: from trained runs to the competition's zip or to NetCDF, and the check of such a zip."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fewer.core.errors import UserError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fewer.core.task import Predict
    from fewer.tasks.nowcast.archive import Archive
    from fewer.tasks.nowcast.layout import Place


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("run", nargs="*", help="finished nowcast runs; several vote")
    parser.add_argument("--data", metavar="DIR", help="folder in the competition's layout")
    parser.add_argument("--out", metavar="FILE.zip", help="the submission")
    parser.add_argument("--netcdf", metavar="DIR", help="probabilities, one CF-NetCDF file a region-year")
    parser.add_argument("--verify", metavar="FILE.zip", help="check a submission instead of writing one")
    parser.add_argument("--contest", default="all", help="core, transfer, stage1, or all region-years that are there")
    parser.add_argument("--split", default="test", help="test or heldout (validation for a rehearsal)")
    parser.add_argument("--how", default="majority", help="how several runs decide: best, majority, mean or weighted")
    parser.add_argument("--threshold", type=float, default=0.5, help="probability from which it rains")
    parser.add_argument("--dtype", default="float32", help="float32 or uint8")
    parser.add_argument(
        "--layout", default="", help="2022, 2023, 2024 or a .toml file with other names; else as DIR looks"
    )
    parser.add_argument("--batch", type=int, default=4, help="forecasts computed at once")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")


def run(arguments: argparse.Namespace) -> None:
    """Write, then check what was written; or only check."""
    from fewer.cli.show import say

    if arguments.contest != "all":
        _places(arguments.contest)
    if arguments.verify:
        problems = _verified(Path(arguments.verify), arguments)
        if problems:
            if arguments.json:
                say({"problems": problems}, True)
            more = f" and {len(problems) - 1} more" if len(problems) > 1 else ""
            raise UserError(f"{problems[0]}{more}", "a submission that the competition takes", "--json lists all")
        say({"verified": arguments.verify}, arguments.json)
        return
    if not arguments.run or not arguments.data or not (arguments.out or arguments.netcdf):
        raise UserError("too little to go on", "RUN --data DIR and --out FILE.zip or --netcdf DIR", "or --verify FILE")
    if not 0 < arguments.threshold < 1 or arguments.batch < 1:
        raise UserError(f"threshold {arguments.threshold}, batch {arguments.batch}", "between 0 and 1; 1 or more")
    archive = _archive(arguments)
    predict = _predictor(arguments, archive.size)
    written = _write(arguments, archive, predict)
    say(written, arguments.json)


def _places(contest: str) -> tuple[Place, ...]:
    from fewer.core.settings import nearest
    from fewer.tasks.nowcast.layout import CONTESTS

    if contest not in CONTESTS:
        raise UserError(f"contest {contest!r}", "a contest or all", nearest(contest, [*CONTESTS, "all"]))
    return CONTESTS[contest]


def _archive(arguments: argparse.Namespace) -> Archive:
    """The pieces to forecast; every region-year of a named contest has to be there."""
    from fewer.tasks.nowcast.archive import Archive, Reading, open_archive

    archive = open_archive(arguments.data, arguments.split, Reading(layout=arguments.layout))
    if arguments.contest == "all":
        return archive
    wanted, held = _places(arguments.contest), [archive.places[piece.place] for piece in archive.pieces]
    absent = [place for place in wanted if place not in held]
    if absent:
        raise UserError(f"{arguments.data} without {absent[0]}", f"all {len(wanted)} of {arguments.contest}")
    pieces = [piece for piece, place in zip(archive.pieces, held) if place in wanted]
    return Archive(pieces, archive.places, archive.size)


def _predictor(arguments: argparse.Namespace, size: int) -> Predict:
    from fewer.core.evaluate import predictor
    from fewer.ensemble.combine import combine
    from fewer.job import load

    runs = [load(path) for path in arguments.run]
    for path, one in zip(arguments.run, runs):
        if one.job.task != "nowcast":
            raise UserError(f"{path} of {one.job.task}", "runs of nowcast")
        if (side := getattr(one.task, "size", size)) != size:
            raise UserError(f"{path} trained for {side} pixels", f"{size}, as {arguments.data} has", "train for it")
    members = [
        predictor(one.task, {name: net.to(arguments.device) for name, net in one.modules.items()}, one.job.seeds[0])
        for one in runs
    ]
    return members[0] if len(members) == 1 else combine(runs[0].task, members, arguments.how)


def _write(arguments: argparse.Namespace, archive: Archive, predict: Predict) -> dict[str, Any]:
    import tempfile

    import numpy as np

    from fewer.tasks.nowcast.netcdf import Forecast, write_netcdf
    from fewer.tasks.nowcast.submission import Expected, write_forecast, write_zip

    out = Path(arguments.out) if arguments.out else None
    written: dict[str, Any] = {"forecasts": len(archive), "region-years": len(archive.pieces)}
    with tempfile.TemporaryDirectory(
        dir=out.absolute().parent if out and out.absolute().parent.is_dir() else None
    ) as held:
        for number, piece in enumerate(archive.pieces):
            place, samples = archive.places[piece.place], archive.samples(number)
            parts = _probabilities(arguments, archive, samples, predict)
            if arguments.netcdf:
                values = np.concatenate(list(parts))
                times = np.array([archive.time(sample) for sample in samples])
                name = Path(arguments.netcdf) / f"{place.year}.{place.region}.{arguments.split}.nc"
                write_netcdf(name, Forecast(values, times), title=f"Probability of rain, {place}")
                parts = iter([values])
            if out:
                decided = ((part >= arguments.threshold).astype(np.uint8) for part in parts)
                expected = Expected(len(samples), archive.size)
                write_forecast(Path(held), place, decided, expected, dtype=arguments.dtype)
        if out:
            write_zip(Path(held), out)
            problems = _verified(out, arguments)
            if problems:
                raise UserError(problems[0], "a submission that the competition takes", "--contest or --data differs")
    return written | {key: getattr(arguments, key) for key in ("out", "netcdf") if getattr(arguments, key)}


def _probabilities(
    arguments: argparse.Namespace, archive: Archive, samples: range, predict: Predict
) -> Iterator[NDArray[np.float32]]:
    import torch

    for index in torch.tensor(samples).split(arguments.batch):
        yield predict(archive.take(index)).float().cpu().numpy()


def _verified(path: Path, arguments: argparse.Namespace) -> list[str]:
    """Against the folder's own blocks if it is named, else against the competition's 60 of 252 pixels."""
    from fewer.tasks.nowcast.submission import Expected, verify

    if not arguments.data:
        contest = "core" if arguments.contest == "all" else arguments.contest
        return verify(path, {place: Expected() for place in _places(contest)})
    archive = _archive(arguments)
    return verify(
        path,
        {archive.places[piece.place]: Expected(len(piece.rows.starts), archive.size) for piece in archive.pieces},
    )
