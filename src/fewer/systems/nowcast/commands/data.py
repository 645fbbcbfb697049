"""`fewer data nowcast`: check a folder in the competition's layout, generate or pack one, look at a radar event."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from fewer.cli.words import DEVICES, offer
from fewer.core.errors import NoFiles, UserError
from fewer.core.settings import either, nearest
from fewer.systems.nowcast.task.files.layout import CONTESTS, LAYOUTS, is_competition


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", metavar="DIR", help="say what is in a folder and what is wrong with it")
    what.add_argument("--generate", metavar="DIR", help="write generated weather there, as the competition's files")
    what.add_argument("--pack", metavar="DIR", help="read a folder once into --cache, so that training need not")
    what.add_argument("--radar", metavar="PATH", help="an npz event, an ODIM file or a folder of them: what it holds")
    parser.add_argument("--cache", metavar="DIR", help="where packed frames go; the same as in --set cache=DIR")
    add_layout(parser)
    parser.add_argument("--frames", type=int, default=48, help="frames of each file that --check looks at; 0: all")
    parser.add_argument("--size", type=int, default=252, help="pixels of --generate, a multiple of 6")
    parser.add_argument("--seed", type=int, default=0, help="of --generate")
    contest = parser.add_argument("--contest", default="core", help=f"region-years of --generate: {either(CONTESTS)}")
    offer(contest, CONTESTS)
    parser.add_argument("--windows", type=int, default=1, help="blocks of each split of --generate, 1 to 90")
    device = parser.add_argument("--device", default="cpu", help=f"where --generate computes: {either(DEVICES)}")
    offer(device, DEVICES)


def add_layout(parser: argparse.ArgumentParser) -> None:
    """`--layout`, for `layout_of`."""
    layout = parser.add_argument(
        "--layout", default="", help=f"{', '.join(LAYOUTS)} or a .toml file with other names; else as DIR looks"
    )
    offer(layout, LAYOUTS, or_file=True)


def run(arguments: argparse.Namespace) -> None:
    """Whichever was asked for."""
    if arguments.check:
        _check(arguments)
    elif arguments.generate:
        _generate(arguments)
    elif arguments.pack:
        _pack(arguments)
    elif arguments.radar:
        _radar(arguments)
    else:
        raise UserError("nothing to do", "--check, --generate, --pack or --radar", "fewer data nowcast --check DIR")


def _check(arguments: argparse.Namespace) -> None:
    from fewer.cli.show import show
    from fewer.systems.nowcast.task.files.check import check
    from fewer.systems.nowcast.task.files.layout import layout_of

    if arguments.frames < 0:
        raise UserError(f"--frames {arguments.frames}", "0 or more")
    root = Path(arguments.check)
    if root.is_dir() and not is_competition(root):
        _check_own(arguments)
        return
    report = check(root, layout_of(root, arguments.layout), frames=arguments.frames)
    if not report.found:
        raise UserError(report.problems[0], "at least one region-year that can be read")
    if arguments.json:
        found: list[dict[str, Any]] = [{**vars(one), "place": list(one.place)} for one in report.found]
        show({"found": found, "problems": report.problems, "contests": report.contests}, True)
        return
    for one in report.found:
        print(one.line())
    for line in report.contests:
        print(line)
    for line in report.problems or ["nothing wrong"]:
        print(f"problem: {line}" if report.problems else line)


def _check_own(arguments: argparse.Namespace) -> None:
    from fewer.cli.show import show
    from fewer.systems.nowcast.task.files.own.windows import opened
    from fewer.systems.nowcast.task.settings import Settings

    windows = opened(Settings(data=arguments.check))
    found, problems = list(windows.described()), list(windows.problems())
    if arguments.json:
        show({"found": found, "problems": problems}, True)
        return
    last = [f"problem: {line}" for line in problems]
    print("\n".join([*found, *(last or [f"use: fewer train nowcast --set data={arguments.check} --out runs/nowcast"])]))


def _generate(arguments: argparse.Namespace) -> None:
    from fewer.cli.show import show
    from fewer.systems.nowcast.task.generated.archive import write_archive

    if arguments.contest not in CONTESTS:
        raise UserError(f"contest {arguments.contest!r}", "a contest", nearest(arguments.contest, list(CONTESTS)))
    written = write_archive(
        arguments.generate, size=arguments.size, seed=arguments.seed, places=CONTESTS[arguments.contest],
        windows=arguments.windows, device=arguments.device,
    )  # fmt: skip
    use = f"fewer train nowcast --set data={arguments.generate} --out runs/nowcast"
    show({"out": arguments.generate, "files": len(written), "use": use}, arguments.json)


def _pack(arguments: argparse.Namespace) -> None:
    from fewer.cli.show import progress, show
    from fewer.systems.nowcast.task.files.archive import Reading, open_archive
    from fewer.systems.nowcast.task.files.layout import SPLITS
    from fewer.systems.nowcast.task.files.packed import Cached

    if not arguments.cache:
        raise UserError("--pack without --cache", "a folder for the packed frames", "--cache DIR")
    reading = Reading(layout=arguments.layout, cache=arguments.cache)
    readers = []
    for split in SPLITS:
        try:
            pieces = open_archive(arguments.pack, split, reading).pieces
        except NoFiles:
            continue
        readers += [piece.reader for piece in pieces if isinstance(piece.reader, Cached)]
    if not readers:
        raise UserError(f"{arguments.pack} without any split's files", f"files of {', '.join(SPLITS)}")
    read = total = 0
    with progress(sum(reader.rows for reader in readers), "packing", arguments.json) as tick:
        for reader in readers:
            for row in range(reader.rows):
                read += reader.fill(row, row + 1)
                total += 1
                tick({"step": total})
    show({"rows": total, "records_read": read, "cache": arguments.cache}, arguments.json)


def _radar(arguments: argparse.Namespace) -> None:
    import numpy as np

    from fewer.cli.show import show
    from fewer.systems.nowcast.task.files.radar import read

    event = read(arguments.radar)
    seen = np.isfinite(event.rates)
    wet = event.rates[seen] >= np.float32(0.2)
    show(
        {
            "frames": len(event.rates), "rows": event.rates.shape[1], "columns": event.rates.shape[2],
            "kilometres": event.kilometres, "minutes": float(event.minutes[-1]), "seen": float(seen.mean()),
            "wet": float(wet.mean()) if seen.any() else 0.0,
            "largest_mm_per_hour": float(event.rates[seen].max()) if seen.any() else 0.0,
        },
        arguments.json,
    )  # fmt: skip
